#include <algorithm>
#include <cstdint>
#include <optional>

#include "ricci/data/files.h"
#include "ricci/io/mapped_file.h"
#include "ricci/io/npy.h"
#include "ricci/support/error.h"

#include "io/fault.h"
#include "io/npy_header.h"
#include "io/zip.h"

namespace ricci {
namespace {

// Bytes of a bool are looked at one by one when they are read; u16 and u64 are widened.
bool can_stay(const io::NpyHeader& h, io::ByteSpan elements) {
  const io::NpyElement& e = h.element;
  if (e.kind == 'b' || (e.big_endian && e.size > 1)) return false;
  if (e.kind == 'u' && (e.size == 2 || e.size == 8)) return false;
  const std::size_t part = e.kind == 'c' ? e.size / 2 : e.size;
  return reinterpret_cast<std::uintptr_t>(elements.data()) % part == 0;
}

std::optional<Array> view(io::ByteSpan npy, const std::shared_ptr<const void>& owner) {
  const io::NpyHeader h = io::parse_npy_header(npy);
  if (npy.size() - h.data_offset != h.data_size) return std::nullopt;  // the reader says so
  const io::ByteSpan elements = npy.subspan(h.data_offset);
  const Type type = h.type();
  if (type.numel().value() == 0 || !can_stay(h, elements)) return std::nullopt;
  std::vector<std::int64_t> strides = row_major_strides(h.dims);
  if (h.fortran_order) {
    strides = row_major_strides(StaticDims(h.dims.rbegin(), h.dims.rend()));
    std::ranges::reverse(strides);
  }
  return Array(Tensor::borrow(type, elements.data(), std::move(strides), owner));
}

}  // namespace

Array map_npy(const std::string& path) try {
  const io::MappedFile file(path);
  if (const std::optional<Array> there = view(file.bytes(), file.owner())) return *there;
  return io::parse_npy(file.bytes());
} catch (const UserError& e) {
  if (e.diagnostic().where.known() || !e.diagnostic().where.file.empty()) throw;
  throw io::in_file(e, path);
}

std::map<std::string, Array> map_npz(const std::string& path) try {
  const io::MappedFile file(path);
  std::map<std::string, Array> out;
  // What stays in the file is taken from it; the reader of archives takes the rest.
  for (const io::ZipEntry& entry : io::read_zip_directory(file.bytes())) {
    if (entry.deflated || !entry.name.ends_with(".npy")) continue;
    if (std::optional<Array> there = view(entry.data, file.owner())) {
      out.emplace(entry.name.substr(0, entry.name.size() - 4), std::move(*there));
    }
  }
  const auto wanted = [&](const std::string& name, const Type&) { return !out.contains(name); };
  for (auto& [name, value] : io::parse_npz(file.bytes(), {.wanted = wanted})) {
    out.emplace(name, value);
  }
  return out;
} catch (const UserError& e) {
  if (!e.diagnostic().where.file.empty()) throw;
  throw io::in_file(e, path);
}

}  // namespace ricci
