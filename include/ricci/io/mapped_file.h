// The bytes of a file without a copy of them: the system brings in the pages that are looked at.
//
//   io::MappedFile file("model.gguf");
//   parse(file.bytes());             // views stay valid while file.owner() is held
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace ricci::io {

/// The largest file that is mapped unless a reader says otherwise: 16 TiB. It takes addresses, not
/// memory.
inline constexpr std::int64_t MaxMappedBytes = std::int64_t{1} << 44;

/// How the bytes of a plain file come: mapped where they lie, or read into memory, which nobody
/// else can change or cut short. Processes that are to go on whatever happens to their files read
/// them.
enum class FileBytes : std::uint8_t { Mapped, Read };

class MappedFile {
 public:
  /// Maps a plain file; pipes and devices are read into memory, as `read_file` does.
  /// UserError(file) when it cannot be opened, is a folder, or has more than `max_bytes`. Who cuts
  /// a mapped file short ends the processes that look at what is gone: map files that are replaced,
  /// not overwritten. Of what is read `front` sees the first 16 bytes before the others are: it
  /// throws when they are of no file that is wanted.
  explicit MappedFile(const std::string& path, std::int64_t max_bytes = MaxMappedBytes,
                      FileBytes how = FileBytes::Mapped,
                      const std::function<void(std::span<const std::byte>)>& front = {});

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }
  /// What keeps the bytes where they are.
  [[nodiscard]] std::shared_ptr<const void> owner() const noexcept { return owner_; }

 private:
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
};

}  // namespace ricci::io
