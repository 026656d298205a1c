// The bytes of a file without a copy of them: the system brings in the pages that are looked at.
//
//   io::MappedFile file("model.gguf");
//   parse(file.bytes());             // views stay valid while file.owner() is held
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace ricci::io {

/// The largest file that is mapped unless a reader says otherwise: 16 TiB. It takes addresses, not
/// memory.
inline constexpr std::int64_t MaxMappedBytes = std::int64_t{1} << 44;

class MappedFile {
 public:
  /// Maps a plain file; pipes and devices are read into memory, as `read_file` does.
  /// UserError(file) when it cannot be opened, is a folder, or has more than `max_bytes`. Who cuts
  /// a mapped file short ends the processes that look at what is gone: map files that are replaced,
  /// not overwritten.
  explicit MappedFile(const std::string& path, std::int64_t max_bytes = MaxMappedBytes);

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }
  /// What keeps the bytes where they are.
  [[nodiscard]] std::shared_ptr<const void> owner() const noexcept { return owner_; }

 private:
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
};

}  // namespace ricci::io
