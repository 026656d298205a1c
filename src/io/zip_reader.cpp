// Layout, all numbers little-endian: local headers each followed by their data, then the central
// directory, then (for large archives) the zip64 end record and its locator, then the end record.
#include <algorithm>
#include <limits>
#include <unordered_set>

#include <fmt/format.h>

#include "ricci/support/text.h"

#include "io/zip.h"

namespace ricci::io {
namespace {

constexpr std::uint32_t LocalSignature = 0x04034b50;
constexpr std::uint32_t EntrySignature = 0x02014b50;
constexpr std::uint32_t EndSignature = 0x06054b50;
constexpr std::uint32_t End64Signature = 0x06064b50;
constexpr std::uint32_t Locator64Signature = 0x07064b50;
constexpr std::uint32_t In64 = 0xFFFFFFFF;  // "look in the zip64 field"
constexpr std::size_t EndSize = 22;
constexpr std::size_t Locator64Size = 20;
constexpr std::size_t EntrySize = 46;
constexpr std::uint64_t MaxDeflateRatio = 1032;  // what the format itself can reach
constexpr unsigned EncryptedFlag = 1U << 0;
constexpr unsigned DescriptorFlag = 1U << 3;

struct Directory {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t count = 0;
};

struct RawEntry {
  ZipEntry entry;
  unsigned flags = 0;
  unsigned method = 0;
  std::uint64_t packed_size = 0;
  std::uint64_t header_offset = 0;
  std::size_t at = 0;  // of the directory record, for messages
};

std::string shown(std::string_view entry_name) { return quote(entry_name.substr(0, 80)); }

std::uint32_t signature_at(ByteSpan archive, std::size_t offset) {
  return ByteCursor(archive.subspan(offset), "a signature", offset).u32();
}

// The end record is last, before a comment of at most 65535 bytes whose length it states.
std::size_t find_end(ByteSpan archive) {
  if (archive.size() >= EndSize) {
    const std::size_t last = archive.size() - EndSize;
    const std::size_t first = last - std::min<std::size_t>(last, 0xFFFF);
    for (std::size_t at = last + 1; at-- > first;) {
      if (signature_at(archive, at) != EndSignature) continue;
      ByteCursor comment(archive.subspan(at + 20), "the end record", at + 20);
      if (comment.u16() == archive.size() - at - EndSize) return at;
    }
  }
  file_fault("zip_end", "this is not a zip archive, or its end is missing", archive.size(),
             "an NPZ file is a zip archive; the file may be cut short");
}

// The 64-bit end record, which the locator right before the end record points to.
Directory read_directory64(ByteSpan archive, std::size_t end) {
  if (end < Locator64Size || signature_at(archive, end - Locator64Size) != Locator64Signature) {
    file_fault("zip_end", "the zip64 end record is missing", end);
  }
  const std::size_t locator_at = end - Locator64Size;
  ByteCursor locator(archive.subspan(locator_at, Locator64Size), "the zip64 locator", locator_at);
  locator.take(8);
  const std::uint64_t at = locator.u64();
  if (at > locator_at) {
    file_fault("zip_end", fmt::format("the zip64 end record is said to be at byte {}", at),
               locator_at);
  }
  const auto start = static_cast<std::size_t>(at);
  ByteCursor in(archive.subspan(start, locator_at - start), "the zip64 end record", start);
  if (in.u32() != End64Signature) {
    file_fault("zip_end", "the zip64 end record is not where the locator says", start);
  }
  in.take(8 + 2 + 2);
  if (in.u32() != 0 || in.u32() != 0) {
    file_fault("zip_disks", "archives of several disks are not supported", start);
  }
  in.take(8);  // entries on this disk
  Directory d;
  d.count = in.u64();
  d.size = in.u64();
  d.offset = in.u64();
  return d;
}

Directory read_end(ByteSpan archive) {
  const std::size_t end = find_end(archive);
  ByteCursor in(archive.subspan(end), "the end record", end);
  in.take(4);
  const unsigned disk = in.u16();
  const unsigned directory_disk = in.u16();
  const unsigned here = in.u16();
  Directory d;
  d.count = in.u16();
  d.size = in.u32();
  d.offset = in.u32();
  if (d.count == 0xFFFF || d.size == In64 || d.offset == In64) {
    d = read_directory64(archive, end);
  } else if (disk != 0 || directory_disk != 0 || here != d.count) {
    file_fault("zip_disks", "archives of several disks are not supported", end);
  }
  if (d.offset > end || d.size > end - d.offset) {
    file_fault("zip_range",
               fmt::format("the directory is said to take {} bytes from byte {}, past its end",
                           d.size, d.offset),
               end);
  }
  if (d.count > d.size / EntrySize) {
    file_fault("zip_range",
               fmt::format("{} entries do not fit in a directory of {} bytes", d.count, d.size),
               end);
  }
  return d;
}

// Replaces the numbers that are too large for 32 bits by those of the zip64 extra field (id 1),
// which holds them in this order.
void read_extra64(RawEntry& raw, ByteSpan extra, std::size_t at) {
  ByteCursor in(extra, "an extra field", at);
  while (in.left() >= 4) {
    const unsigned id = in.u16();
    const std::size_t size = in.u16();
    const std::size_t field_at = in.offset();
    ByteCursor field(in.take(size), "the zip64 field", field_at);
    if (id != 1) continue;
    if (raw.entry.size == In64) raw.entry.size = field.u64();
    if (raw.packed_size == In64) raw.packed_size = field.u64();
    if (raw.header_offset == In64) raw.header_offset = field.u64();
    return;
  }
}

RawEntry read_entry(ByteCursor& in) {
  RawEntry raw;
  raw.at = in.offset();
  if (in.u32() != EntrySignature) {
    file_fault("zip_entry", "a directory record is missing", raw.at);
  }
  in.take(4);  // versions
  raw.flags = in.u16();
  raw.method = in.u16();
  in.take(4);  // time and date
  raw.entry.crc = in.u32();
  raw.packed_size = in.u32();
  raw.entry.size = in.u32();
  const std::size_t name_size = in.u16();
  const std::size_t extra_size = in.u16();
  const std::size_t comment_size = in.u16();
  in.take(2 + 2 + 4);  // disk, attributes
  raw.header_offset = in.u32();
  raw.entry.name = as_text(in.take(name_size));
  const std::size_t extra_at = in.offset();
  read_extra64(raw, in.take(extra_size), extra_at);
  in.take(comment_size);
  return raw;
}

void check_entry(const RawEntry& raw) {
  const std::string name = shown(raw.entry.name);
  if ((raw.flags & EncryptedFlag) != 0) {
    file_fault("zip_encrypted", fmt::format("entry {} is encrypted", name), raw.at);
  }
  if (raw.method != 0 && raw.method != 8) {
    file_fault("zip_method",
               fmt::format("entry {} uses the compression method {}", name, raw.method), raw.at,
               "stored (0) and deflated (8) entries can be read");
  }
  if (raw.method == 0 && raw.packed_size != raw.entry.size) {
    file_fault("zip_size",
               fmt::format("entry {} is stored, but its sizes differ: {} and {}", name,
                           raw.packed_size, raw.entry.size),
               raw.at);
  }
  if (raw.method == 8 && raw.entry.size / MaxDeflateRatio > raw.packed_size) {
    file_fault("zip_size",
               fmt::format("entry {} cannot grow from {} to {} bytes", name, raw.packed_size,
                           raw.entry.size),
               raw.at, "the directory is damaged, or the file is hostile");
  }
}

// Finds the data behind the local header, which must agree with the directory. Sizes there may be
// left to a descriptor after the data, so the directory's are used.
void locate(RawEntry& raw, ByteSpan body) {
  const std::string name = shown(raw.entry.name);
  if (raw.header_offset > body.size()) {
    file_fault("zip_range",
               fmt::format("entry {} is said to begin at byte {}", name, raw.header_offset),
               raw.at);
  }
  const auto start = static_cast<std::size_t>(raw.header_offset);
  ByteCursor in(body.subspan(start), "a local header", start);
  if (in.u32() != LocalSignature) {
    file_fault("zip_entry", fmt::format("entry {} has no local header", name), start);
  }
  in.take(2);
  const unsigned flags = in.u16();
  const unsigned method = in.u16();
  in.take(4);
  const std::uint32_t crc = in.u32();
  const std::uint32_t packed = in.u32();
  const std::uint32_t size = in.u32();
  const std::size_t name_size = in.u16();
  const std::size_t extra_size = in.u16();
  const std::string_view local_name = as_text(in.take(name_size));
  in.take(extra_size);
  bool agrees = local_name == raw.entry.name && method == raw.method;
  if ((flags & DescriptorFlag) == 0) {
    agrees = agrees && crc == raw.entry.crc && (packed == In64 || packed == raw.packed_size) &&
             (size == In64 || size == raw.entry.size);
  }
  if (!agrees) {
    file_fault("zip_entry",
               fmt::format("entry {}: the local header and the directory disagree", name), start);
  }
  raw.entry.data_offset = in.offset();
  if (raw.packed_size > in.left()) {
    file_fault("zip_range",
               fmt::format("entry {} is said to take {} bytes, but {} are left", name,
                           raw.packed_size, in.left()),
               in.offset());
  }
  raw.entry.data = in.take(static_cast<std::size_t>(raw.packed_size));
  raw.entry.deflated = method == 8;
}

// Entries that share bytes are how a small archive expands without bound.
void check_overlap(std::vector<RawEntry>& entries) {
  std::vector<const RawEntry*> order;
  for (const RawEntry& e : entries) order.push_back(&e);
  std::ranges::sort(order, {}, &RawEntry::header_offset);
  for (std::size_t i = 1; i < order.size(); ++i) {
    const ZipEntry& before = order[i - 1]->entry;
    if (before.data_offset + before.data.size() > order[i]->header_offset) {
      file_fault(
          "zip_overlap",
          fmt::format("entries {} and {} overlap", shown(before.name), shown(order[i]->entry.name)),
          static_cast<std::size_t>(order[i]->header_offset));
    }
  }
}

}  // namespace

std::vector<ZipEntry> read_zip_directory(ByteSpan archive) {
  const Directory d = read_end(archive);
  const auto start = static_cast<std::size_t>(d.offset);
  ByteCursor in(archive.subspan(start, static_cast<std::size_t>(d.size)), "the zip directory",
                start);
  std::vector<RawEntry> raw;
  std::unordered_set<std::string> names;
  for (std::uint64_t i = 0; i < d.count; ++i) {
    raw.push_back(read_entry(in));
    if (!names.insert(raw.back().entry.name).second) {
      file_fault("zip_duplicate",
                 fmt::format("two entries are named {}", shown(raw.back().entry.name)),
                 raw.back().at);
    }
    check_entry(raw.back());
    locate(raw.back(), archive.first(start));
  }
  if (in.left() != 0) {
    file_fault(
        "zip_range",
        fmt::format("the directory holds {} bytes more than its {} entries", in.left(), d.count),
        in.offset());
  }
  check_overlap(raw);
  std::vector<ZipEntry> entries;
  for (RawEntry& r : raw) entries.push_back(std::move(r.entry));
  return entries;
}

}  // namespace ricci::io
