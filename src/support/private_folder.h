// A folder whose files only the user of this process can have written: for what is trusted because
// of where it lies. Names are looked up in the folder that was checked, links are not followed, and
// what is not a plain file of this user is not there. Several processes may use it at once: files
// appear whole, and one that vanishes while it is read is read to its end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "support/descriptor.h"

namespace ricci {

class PrivateFolder {
 public:
  /// Makes the folder when there is none. Nothing when it cannot be made or opened.
  /// UserError(file.folder) when it belongs to someone else, or others may write to it.
  [[nodiscard]] static std::optional<PrivateFolder> open(const std::string& path);

  /// All of a file, which counts as used now. Nothing when it is larger than `max_bytes`, or no
  /// plain file that this user alone may write.
  [[nodiscard]] std::optional<std::string> read(const std::string& name,
                                                std::int64_t max_bytes) const;
  /// Puts a file in place of what has the name; nothing happens when that fails.
  void replace(const std::string& name, std::string_view text) const;

  /// When the files whose names `is_ours` accepts take more than `max_bytes`, removes those that
  /// were used longest ago until they take an eighth less. Removes what processes that were killed
  /// have left behind. Other files stay.
  void trim(std::int64_t max_bytes, bool (*is_ours)(std::string_view name)) const;

 private:
  explicit PrivateFolder(Descriptor folder) : folder_(std::move(folder)) {}
  Descriptor folder_;
};

}  // namespace ricci
