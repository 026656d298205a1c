#include <algorithm>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "ricci/io/file.h"
#include "ricci/io/npy.h"
#include "ricci/support/text.h"

#include "io/npy_header.h"
#include "io/zip.h"

namespace ricci::io {
namespace {

constexpr std::string_view Suffix = ".npy";

std::string array_name(const ZipEntry& entry) {
  if (!entry.name.ends_with(Suffix)) {
    file_fault("npz_entry",
               fmt::format("entry {} is not an array", quote(entry.name.substr(0, 80))),
               entry.data_offset, "an NPZ file holds entries named NAME.npy");
  }
  return entry.name.substr(0, entry.name.size() - Suffix.size());
}

// An entry that is an array, before its elements are looked at.
struct Announced {
  const ZipEntry* entry = nullptr;
  std::string name;
  Type type;
};

// Runs a reader of one entry; faults say which.
template <class F>
auto in_entry(const ZipEntry& entry, F&& read) {
  try {
    return read();
  } catch (const UserError& e) {
    throw with_note(e, fmt::format("in entry {} at byte {}", quote(entry.name.substr(0, 80)),
                                   entry.data_offset));
  }
}

// The shape in the header must account for the declared size before more is unpacked.
Announced announced(const ZipEntry& entry) {
  Announced out{&entry, array_name(entry), {}};
  in_entry(entry, [&] {
    const NpyHeader h = parse_npy_header(first_bytes(entry, MaxNpyHeader));
    if (entry.size - h.data_offset != h.data_size) {
      file_fault("npy_size",
                 fmt::format("the elements take {} bytes, but the entry has {} after its header",
                             h.data_size, entry.size - h.data_offset),
                 h.data_offset);
    }
    out.type = h.type();
  });
  return out;
}

Tensor parse_entry(const ZipEntry& entry) {
  return in_entry(entry, [&] {
    if (entry.deflated) return parse_npy(extract(entry));
    check_crc(entry, entry.data);
    return parse_npy(entry.data);
  });
}

// The arrays to be read. All names and headers are known, and the limit is kept, before anything is
// unpacked.
std::vector<Announced> wanted_arrays(const std::vector<ZipEntry>& entries, std::int64_t limit,
                                     const NpzOptions& options) {
  std::vector<Announced> all;
  for (const ZipEntry& entry : entries) all.push_back(announced(entry));
  std::vector<Announced> wanted;
  std::int64_t left = limit;
  for (Announced& a : all) {
    if (options.wanted && !options.wanted(a.name, a.type)) continue;
    const std::int64_t bytes = a.type.numel().value() * size_of(a.type.dtype);
    if (bytes > left) {
      file_fault("npz_limit", fmt::format("the arrays take more than {} bytes", limit),
                 a.entry->data_offset,
                 "raise NpzOptions::max_total_bytes, or --max-input-bytes of the tool, if the "
                 "file is trusted");
    }
    left -= bytes;
    wanted.push_back(std::move(a));
  }
  return wanted;
}

void write_archive(const NamedTensors& arrays, const ZipWriter::Sink& sink) {
  ZipWriter zip(sink);
  std::set<std::string_view> names;
  for (const auto& [name, tensor] : arrays) {
    if (!names.insert(name).second) {
      throw UserError(ErrorCode::File, fmt::format("two arrays are named {}", quote(name)),
                      "names in an NPZ file are unique");
    }
    zip.add(name + std::string(Suffix), npy_bytes(tensor));
  }
  zip.finish();
}

}  // namespace

std::int64_t default_npz_limit(std::size_t archive_bytes) {
  constexpr std::int64_t Ratio = 64;
  constexpr std::int64_t Least = std::int64_t{1} << 28;
  const auto most = static_cast<std::size_t>(MaxFileBytes / Ratio);
  return std::max(Least, Ratio * static_cast<std::int64_t>(std::min(archive_bytes, most)));
}

NamedTensors parse_npz(std::span<const std::byte> bytes, const NpzOptions& options) {
  const std::vector<ZipEntry> entries = read_zip_directory(bytes);
  const std::int64_t limit = options.max_total_bytes.value_or(default_npz_limit(bytes.size()));
  NamedTensors arrays;
  for (Announced& a : wanted_arrays(entries, limit, options)) {
    arrays.emplace_back(std::move(a.name), parse_entry(*a.entry));
  }
  return arrays;
}

NamedTensors read_npz(const std::string& path, const NpzOptions& options) {
  const std::vector<std::byte> bytes =
      read_file(path, std::max(MaxFileBytes, options.max_total_bytes.value_or(0)));
  try {
    return parse_npz(bytes, options);
  } catch (const UserError& e) {
    throw in_file(e, path);
  }
}

std::vector<std::byte> npz_bytes(const NamedTensors& arrays) {
  std::vector<std::byte> out;
  write_archive(arrays, [&](ByteSpan piece) { out.insert(out.end(), piece.begin(), piece.end()); });
  return out;
}

void write_npz(const std::string& path, const NamedTensors& arrays) {
  AtomicFile file(path);
  write_archive(arrays, [&](ByteSpan piece) { file.write(piece); });
  file.commit();
}

}  // namespace ricci::io
