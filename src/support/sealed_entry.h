// Entries of folders of compiled code. An entry lies under the digest of its key, contains the
// whole key and ends with a digest of all of it: one that is damaged, or lies under another's name,
// is known for what it is.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace ricci {

/// Characters of a digest in names and seals.
inline constexpr std::size_t SealSize = 64;

/// The name of the file that holds the entry of a key; `ending` is `.kernel` and the like.
[[nodiscard]] std::string entry_name(std::string_view key, std::string_view ending);
/// Is it the digest of something with this ending?
[[nodiscard]] bool is_entry_name(std::string_view name, std::string_view ending);

/// What is written for a key. `kind` says what the content is, and which version of it.
[[nodiscard]] std::string seal_entry(std::string_view kind, std::string_view key,
                                     std::string_view content);
/// The content, in `entry`; nothing when it is not what was sealed for this kind and key.
[[nodiscard]] std::optional<std::string_view> open_entry(std::string_view entry,
                                                         std::string_view kind,
                                                         std::string_view key);

}  // namespace ricci
