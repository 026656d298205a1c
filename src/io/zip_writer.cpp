#include <fmt/format.h>
#include <zlib.h>

#include "ricci/support/text.h"

#include "io/zip.h"

namespace ricci::io {
namespace {

constexpr unsigned Plain = 20;        // version needed: 2.0
constexpr unsigned With64 = 45;       // 4.5, for zip64
constexpr unsigned Utf8Flag = 0x800;  // names are UTF-8; plain ASCII is either
constexpr unsigned FirstDay = 0x21;   // 1980-01-01: the same arrays give the same bytes

class Record {
 public:
  Record& u16(std::uint64_t v) { return number(v, 2); }
  Record& u32(std::uint64_t v) { return number(v, 4); }
  Record& u64(std::uint64_t v) { return number(v, 8); }
  Record& text(std::string_view s) {
    bytes_ += s;
    return *this;
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  Record& number(std::uint64_t v, int size) {
    for (int i = 0; i < size; ++i) bytes_ += static_cast<char>((v >> (8 * i)) & 0xFFU);
    return *this;
  }
  std::string bytes_;
};

}  // namespace

void ZipWriter::add(std::string_view name, ByteSpan bytes) {
  if (name.size() > 0xFFFF) {
    throw UserError(ErrorCode::File, fmt::format("an archive entry's name has {} bytes; at most "
                                                 "65535 fit",
                                                 name.size()));
  }
  const std::uint64_t crc = crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  const std::uint64_t size = bytes.size();
  const bool size64 = size >= zip64_from_;
  const bool offset64 = at_ >= zip64_from_;
  constexpr std::uint64_t Elsewhere = 0xFFFFFFFF;
  const unsigned version = size64 || offset64 ? With64 : Plain;

  // What the local header and the directory record share: version to extra length.
  const auto common = [&](Record& r, std::size_t extra_size) {
    r.u16(version).u16(Utf8Flag).u16(0).u16(0).u16(FirstDay).u32(crc);
    r.u32(size64 ? Elsewhere : size).u32(size64 ? Elsewhere : size);
    r.u16(name.size()).u16(extra_size);
  };
  const std::uint64_t header_at = at_;
  Record local;
  local.u32(0x04034b50);
  common(local, size64 ? 20 : 0);
  local.text(name);
  if (size64) local.u16(1).u16(16).u64(size).u64(size);
  put(local.bytes());
  sink_(bytes);
  at_ += size;

  const unsigned extra = (size64 ? 16U : 0U) + (offset64 ? 8U : 0U);
  Record entry;
  entry.u32(0x02014b50).u16(version);
  common(entry, extra == 0 ? 0 : extra + 4);
  entry.u16(0).u16(0).u16(0).u32(0).u32(offset64 ? Elsewhere : header_at);
  entry.text(name);
  if (extra != 0) entry.u16(1).u16(extra);
  if (size64) entry.u64(size).u64(size);
  if (offset64) entry.u64(header_at);
  directory_ += entry.bytes();
  ++count_;
}

void ZipWriter::finish() {
  const std::uint64_t start = at_;
  const std::uint64_t size = directory_.size();
  put(directory_);
  const bool large = start >= zip64_from_ || size >= zip64_from_ || count_ >= 0xFFFF;
  if (large) {
    const std::uint64_t end64 = at_;
    Record r;
    r.u32(0x06064b50).u64(44).u16(With64).u16(With64).u32(0).u32(0);
    r.u64(count_).u64(count_).u64(size).u64(start);
    r.u32(0x07064b50).u32(0).u64(end64).u32(1);
    put(r.bytes());
  }
  Record end;
  end.u32(0x06054b50).u16(0).u16(0);
  end.u16(large ? 0xFFFF : count_).u16(large ? 0xFFFF : count_);
  end.u32(large ? 0xFFFFFFFF : size).u32(large ? 0xFFFFFFFF : start).u16(0);
  put(end.bytes());
}

void ZipWriter::put(std::string_view bytes) {
  sink_(std::as_bytes(std::span(bytes)));
  at_ += bytes.size();
}

}  // namespace ricci::io
