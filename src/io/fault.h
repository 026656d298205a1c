// Faults of files, and a cursor that cannot leave the bytes it was given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ricci/support/error.h"

namespace ricci::io {

using ByteSpan = std::span<const std::byte>;

/// Throws UserError(file.<detail>) with a note on where in the file the fault lies.
[[noreturn]] void file_fault(std::string detail, std::string message, std::size_t offset,
                             std::string help = {});

/// Throws UserError(file.<detail>) for what a format cannot hold.
[[noreturn]] void unwritable(std::string detail, std::string message, std::string help = {});

/// The error with a file name added, for readers that know bytes only.
[[nodiscard]] UserError in_file(const UserError& error, const std::string& path);
/// The error with one more note.
[[nodiscard]] UserError with_note(const UserError& error, const std::string& note);

/// Reads little-endian numbers front to back; every read is checked against the bytes left.
class ByteCursor {
 public:
  /// `what` names the structure in messages; `base` is the file offset of bytes[0].
  ByteCursor(ByteSpan bytes, std::string_view what, std::size_t base = 0)
      : bytes_(bytes), what_(what), base_(base) {}

  [[nodiscard]] std::size_t left() const noexcept { return bytes_.size() - at_; }
  [[nodiscard]] std::size_t offset() const noexcept { return base_ + at_; }
  ByteSpan take(std::size_t count);
  std::uint16_t u16() { return static_cast<std::uint16_t>(number(2)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(number(4)); }
  std::uint64_t u64() { return number(8); }

 private:
  std::uint64_t number(std::size_t size);

  ByteSpan bytes_;
  std::string_view what_;
  std::size_t base_ = 0;
  std::size_t at_ = 0;
};

[[nodiscard]] std::string_view as_text(ByteSpan bytes) noexcept;

}  // namespace ricci::io
