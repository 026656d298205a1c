// Shared libraries that are looked for when they are wanted: the build needs none of them, and the
// same binary runs where they are missing.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace ricci::cuda {

/// The folders of RICCI_CUDA_LIBRARIES, a list with colons.
[[nodiscard]] std::string library_folders();

/// A library that stays loaded until the process ends.
class Library {
 public:
  /// Why a library that was found will not do; empty: it will.
  using Check = std::function<std::string(const Library&)>;

  /// The first of several names that is found and will do, in one of `folders` (a list with colons,
  /// of absolute paths: others are not looked into) or where the loader looks.
  Library(std::span<const std::string> names, const std::string& folders, const Check& check);

  [[nodiscard]] bool found() const noexcept { return handle_ != nullptr; }
  /// Why there is none: what is wrong with those that were found, or the loader's words for the
  /// last name.
  [[nodiscard]] const std::string& why_not() const noexcept { return why_not_; }
  /// Null when the library has no such function.
  [[nodiscard]] void* find(const char* name) const;

 private:
  [[nodiscard]] bool open(const std::string& path, const Check& check);

  void* handle_ = nullptr;
  std::string why_not_;
  bool refused_ = false;  // one was found that will not do
};

/// The names of a library of CUDA's toolkit whose code a driver takes, best first: `libX.so.13` for
/// drivers of CUDA 13 alone. `driver` is its version, 12040 for 12.4; 0: there is none to ask.
[[nodiscard]] std::vector<std::string> toolkit_names(const std::string& stem, int driver);

}  // namespace ricci::cuda
