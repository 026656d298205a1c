// Machine code of kernels in a folder, for the next process, as sealed entries: damage, or a file
// under another's name, is taken for one that is missing and replaced.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/private_folder.h"

namespace ricci::cuda {

class KeptCode {
 public:
  /// UserError(file.folder) when others own the folder or may write to it.
  KeptCode(const std::string& path, std::int64_t max_bytes);

  [[nodiscard]] std::optional<std::vector<char>> load(std::string_view key) const;
  void store(std::string_view key, std::string_view code) const;
  /// When all is stored: the files used longest ago go where there are too many.
  void trim() const;

 private:
  std::optional<PrivateFolder> folder_;  // none: it cannot be made or opened
  std::int64_t max_bytes_;
};

/// The name of the file that holds the code for a key.
[[nodiscard]] std::string kept_file_name(std::string_view key);

}  // namespace ricci::cuda
