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

// The shape in the header must account for the declared size before it is all decompressed.
void check_declared_size(const ZipEntry& entry, ByteSpan front) {
  const NpyHeader h = parse_npy_header(front);
  if (entry.size - h.data_offset != h.data_size) {
    file_fault("npy_size",
               fmt::format("the elements take {} bytes, but the entry has {} after its header",
                           h.data_size, entry.size - h.data_offset),
               h.data_offset);
  }
}

Tensor parse_entry(const ZipEntry& entry) {
  try {
    if (!entry.deflated) {
      check_crc(entry, entry.data);
      return parse_npy(entry.data);
    }
    return parse_npy(
        extract(entry, MaxNpyHeader, [&](ByteSpan front) { check_declared_size(entry, front); }));
  } catch (const UserError& e) {
    throw with_note(e, fmt::format("in entry {} at byte {}", quote(entry.name.substr(0, 80)),
                                   entry.data_offset));
  }
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

NamedTensors parse_npz(std::span<const std::byte> bytes, const NpzLimits& limits) {
  const std::vector<ZipEntry> entries = read_zip_directory(bytes);
  auto left = static_cast<std::uint64_t>(limits.max_total_bytes);
  for (const ZipEntry& entry : entries) {
    if (entry.size > left) {
      file_fault("npz_limit",
                 fmt::format("the arrays take more than {} bytes", limits.max_total_bytes),
                 entry.data_offset, "raise NpzLimits::max_total_bytes if the file is trusted");
    }
    left -= entry.size;
  }
  NamedTensors arrays;
  for (const ZipEntry& entry : entries) {
    std::string name = array_name(entry);
    arrays.emplace_back(std::move(name), parse_entry(entry));
  }
  return arrays;
}

NamedTensors read_npz(const std::string& path, const NpzLimits& limits) {
  const std::vector<std::byte> bytes = read_file(path);
  try {
    return parse_npz(bytes, limits);
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
