#include <algorithm>
#include <limits>
#include <new>

#include <fmt/format.h>
#include <zlib.h>

#include "ricci/support/stop.h"
#include "ricci/support/text.h"

#include "io/zip.h"

namespace ricci::io {
namespace {

/// A raw deflate stream (no zlib header), read piece by piece.
class Inflater {
 public:
  explicit Inflater(const ZipEntry& entry) : entry_(entry), input_(entry.data) {
    check_internal(inflateInit2(&stream_, -MAX_WBITS) == Z_OK, "zlib does not start");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  /// Fills `out` as far as the stream reaches; the number of bytes written.
  std::size_t read(std::span<std::byte> out) {
    std::size_t filled = 0;
    while (filled < out.size() && !ended_) {
      throw_if_stopped();
      refill();
      const std::size_t room = std::min(out.size() - filled, MaxPiece);
      stream_.next_out = reinterpret_cast<Bytef*>(out.data() + filled);
      stream_.avail_out = static_cast<uInt>(room);
      const int status = ::inflate(&stream_, Z_NO_FLUSH);
      const std::size_t produced = room - stream_.avail_out;
      filled += produced;
      ended_ = status == Z_STREAM_END;
      const bool stuck = produced == 0 && stream_.avail_in == 0 && input_.empty();
      if (!ended_ && (stuck || (status != Z_OK && status != Z_BUF_ERROR))) {
        fail(stuck ? "ends early" : "is damaged");
      }
    }
    return filled;
  }

  /// The stream must end here, with all input used.
  void finish() {
    std::byte beyond{};
    if (!ended_ && read({&beyond, 1}) != 0) fail("holds more than its declared size");
    if (!ended_ || stream_.avail_in != 0 || !input_.empty()) {
      fail("has bytes after its compressed data");
    }
  }

  [[noreturn]] void fail(const char* how) const {
    file_fault("zip_deflate", fmt::format("entry {} {}", quote(entry_.name.substr(0, 80)), how),
               entry_.data_offset + (entry_.data.size() - input_.size() - stream_.avail_in));
  }

 private:
  static constexpr std::size_t MaxPiece = std::size_t{1} << 24;  // zlib counts in 32 bits

  void refill() {
    if (stream_.avail_in != 0 || input_.empty()) return;
    const std::size_t piece = std::min(input_.size(), MaxPiece);
    // zlib's pointer is not const, but it only reads.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(input_.data()));
    stream_.avail_in = static_cast<uInt>(piece);
    input_ = input_.subspan(piece);
  }

  const ZipEntry& entry_;
  ByteSpan input_;
  z_stream stream_{};
  bool ended_ = false;
};

}  // namespace

std::vector<std::byte> first_bytes(const ZipEntry& entry, std::size_t count) {
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(count, entry.size));
  if (!entry.deflated) {
    const ByteSpan front = entry.data.first(size);
    return {front.begin(), front.end()};
  }
  std::vector<std::byte> out(size);
  out.resize(Inflater(entry).read(out));
  return out;
}

std::vector<std::byte> extract(const ZipEntry& entry) {
  check_internal(entry.deflated, "stored entries are read in place");
  Inflater in(entry);
  const auto size = static_cast<std::size_t>(entry.size);
  std::vector<std::byte> out;
  std::size_t filled = 0;
  try {
    // Memory doubles as data arrives, so that a lying size costs little.
    do {
      out.resize(std::min(size, std::max<std::size_t>(2 * filled, 4096)));
      filled += in.read(std::span(out).subspan(filled));
    } while (filled == out.size() && filled < size);
  } catch (const std::bad_alloc&) {
    throw UserError(ErrorCode::OutOfMemory,
                    fmt::format("there is no memory for the {} bytes of entry {}", size,
                                quote(entry.name.substr(0, 80))));
  }
  if (filled != size) in.fail("holds less than its declared size");
  in.finish();
  check_crc(entry, out);
  return out;
}

void check_crc(const ZipEntry& entry, ByteSpan bytes) {
  const uLong crc = crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  if (crc == entry.crc) return;
  file_fault("zip_crc",
             fmt::format("entry {} is damaged: its checksum is {:08x}, but {:08x} is recorded",
                         quote(entry.name.substr(0, 80)), crc, entry.crc),
             entry.data_offset, "fetch or write the file again");
}

}  // namespace ricci::io
