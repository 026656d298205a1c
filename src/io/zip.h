// Zip archives, as far as NPZ needs them: entries stored or deflated, with or without zip64, found
// through the central directory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/fault.h"

namespace ricci::io {

struct ZipEntry {
  std::string name;  ///< bytes, never used as a path
  bool deflated = false;
  std::uint32_t crc = 0;
  std::uint64_t size = 0;       ///< uncompressed, as the directory declares
  ByteSpan data;                ///< what the archive holds
  std::size_t data_offset = 0;  ///< of `data` in the archive
};

/// The entries in the directory's order. Every range is inside the archive and overlaps no other;
/// names are unique. Nothing is decompressed.
[[nodiscard]] std::vector<ZipEntry> read_zip_directory(ByteSpan archive);

/// The first bytes of an entry's content: `count` of them, or all when there are fewer.
[[nodiscard]] std::vector<std::byte> first_bytes(const ZipEntry& entry, std::size_t count);

/// All bytes of a deflated entry. Size and checksum must be as declared.
[[nodiscard]] std::vector<std::byte> extract(const ZipEntry& entry);

/// UserError(file.zip_crc) unless the bytes have the entry's checksum.
void check_crc(const ZipEntry& entry, ByteSpan bytes);

/// Writes an archive of stored entries front to back.
class ZipWriter {
 public:
  using Sink = std::function<void(ByteSpan)>;
  /// Sizes and offsets from `zip64_from` on use the 64-bit fields.
  explicit ZipWriter(Sink sink, std::uint64_t zip64_from = 0xFFFFFFFFU)
      : sink_(std::move(sink)), zip64_from_(zip64_from) {}

  void add(std::string_view name, ByteSpan bytes);
  void finish();

 private:
  void put(std::string_view bytes);

  Sink sink_;
  std::uint64_t zip64_from_;
  std::uint64_t at_ = 0;
  std::uint64_t count_ = 0;
  std::string directory_;
};

}  // namespace ricci::io
