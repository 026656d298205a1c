#include "support/sealed_entry.h"

#include <fmt/format.h>

#include "support/sha256.h"

namespace ricci {
namespace {

// All before the content. With its length no key is the beginning of another one's entry.
std::string head_of(std::string_view kind, std::string_view key) {
  return fmt::format("{}\n{}\n{}\n", kind, key.size(), key);
}

}  // namespace

std::string entry_name(std::string_view key, std::string_view ending) {
  return sha256_hex(key).append(ending);
}

bool is_entry_name(std::string_view name, std::string_view ending) {
  return name.size() == SealSize + ending.size() && name.ends_with(ending) &&
         name.substr(0, SealSize).find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string seal_entry(std::string_view kind, std::string_view key, std::string_view content) {
  std::string text = head_of(kind, key);
  text += content;
  return text + sha256_hex(text);
}

std::optional<std::string_view> open_entry(std::string_view entry, std::string_view kind,
                                           std::string_view key) {
  const std::string head = head_of(kind, key);
  if (entry.size() < head.size() + SealSize || !entry.starts_with(head)) return std::nullopt;
  const std::string_view sealed = entry.substr(0, entry.size() - SealSize);
  if (sha256_hex(sealed) != entry.substr(sealed.size())) return std::nullopt;
  return sealed.substr(head.size());
}

}  // namespace ricci
