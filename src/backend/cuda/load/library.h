// Shared libraries that are looked for when they are wanted: the build needs none of them, and the
// same binary runs where they are missing.
#pragma once

#include <span>
#include <string>

namespace ricci::cuda {

/// The folders of RICCI_CUDA_LIBRARIES, a list with colons.
[[nodiscard]] std::string library_folders();

/// A library that stays loaded until the process ends.
class Library {
 public:
  /// The first of several names that is found, in one of `folders` (a list with colons, of absolute
  /// paths: others are not looked into) or where the loader looks.
  Library(std::span<const char* const> names, const std::string& folders);

  [[nodiscard]] bool found() const noexcept { return handle_ != nullptr; }
  /// Why there is none, in the loader's words for the last name.
  [[nodiscard]] const std::string& why_not() const noexcept { return why_not_; }
  /// Null when the library has no such function.
  [[nodiscard]] void* find(const char* name) const;

 private:
  void* handle_ = nullptr;
  std::string why_not_;
};

}  // namespace ricci::cuda
