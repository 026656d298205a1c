// Whole files: reading them, and writing them so that a crash leaves the old one in place.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ricci::io {

/// All bytes of a file (or pipe); UserError(file) when it cannot be read.
[[nodiscard]] std::vector<std::byte> read_file(const std::string& path);

/// A file that appears under its name only when it is complete: bytes go to a temporary file in
/// the same folder, which `commit` syncs and renames. Without `commit` nothing is left behind.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void commit();

 private:
  [[noreturn]] void fail(const char* action) const;

  std::string path_;       // what the caller named, with links followed
  std::string temporary_;  // empty when the target is a device or pipe and is written directly
  int descriptor_ = -1;
};

/// Writes a file in one go, atomically.
void write_file(const std::string& path, std::span<const std::byte> bytes);
void write_file(const std::string& path, std::string_view text);

}  // namespace ricci::io
