#include "ricci/io/npy.h"

#include <bit>
#include <cstring>
#include <limits>
#include <new>
#include <numeric>

#include <fmt/format.h>

#include "ricci/io/file.h"

#include "io/fault.h"
#include "io/npy_header.h"

namespace ricci::io {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are stored little-endian");

template <class T>
T load(const std::byte* from) {
  T v{};
  std::memcpy(&v, from, sizeof(T));
  return v;
}

// Elements as the file holds them, in little-endian order; a complex number is two floats.
std::vector<std::byte> swapped(ByteSpan elements, const NpyElement& e) {
  const std::size_t part = e.kind == 'c' ? e.size / 2 : e.size;
  std::vector<std::byte> out(elements.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = elements[i / part * part + (part - 1 - i % part)];
  }
  return out;
}

void require_bools(ByteSpan elements, std::size_t base) {
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (std::to_integer<unsigned>(elements[i]) > 1) {
      file_fault(
          "npy_bool",
          fmt::format("a bool array holds the byte {}", std::to_integer<unsigned>(elements[i])),
          base + i, "bools are stored as 0 or 1");
    }
  }
}

// u16 -> u32, u64 -> i64: the unsigned types of NumPy that Ricci lacks.
Tensor widened(const Type& type, ByteSpan elements, const NpyElement& e, std::size_t base) {
  Tensor out = Tensor::zeros(type);
  std::byte* to = out.mutable_data();
  for (std::size_t i = 0; i < elements.size(); i += e.size) {
    if (e.size == 2) {
      const std::uint32_t wide = load<std::uint16_t>(elements.data() + i);
      std::memcpy(to + 2 * i, &wide, sizeof wide);
      continue;
    }
    const auto v = load<std::uint64_t>(elements.data() + i);
    if (v > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      file_fault("npy_range", fmt::format("the u64 value {} does not fit in i64", v), base + i,
                 "u64 arrays are read as i64");
    }
    std::memcpy(to + i, &v, sizeof v);
  }
  return out;
}

Tensor row_major(const NpyHeader& h, const Type& type, ByteSpan elements) {
  const NpyElement& e = h.element;
  if (e.kind == 'b') require_bools(elements, h.data_offset);
  std::vector<std::byte> little;
  if (e.big_endian && e.size > 1) {
    little = swapped(elements, e);
    elements = little;
  }
  if (e.kind == 'u' && (e.size == 2 || e.size == 8)) {
    return widened(type, elements, e, h.data_offset);
  }
  return Tensor::from_bytes(type, elements);
}

Tensor writable(const Tensor& tensor) {
  if (tensor.dtype() != DType::BF16) return tensor.contiguous();
  return Tensor::from_numbers<double>(tensor.type().with(DType::F32), tensor.numbers<double>());
}

}  // namespace

Tensor parse_npy(std::span<const std::byte> bytes) try {
  const NpyHeader h = parse_npy_header(bytes);
  const std::size_t left = bytes.size() - h.data_offset;
  if (left != h.data_size) {
    file_fault(
        "npy_size",
        fmt::format("the elements take {} bytes, but {} follow the header", h.data_size, left),
        h.data_offset, "the file is cut short, damaged, or holds more than one array");
  }
  const ByteSpan elements = bytes.subspan(h.data_offset);
  const Type type = h.type();
  if (!h.fortran_order) return row_major(h, type, elements);
  // Fortran order is the C order of the transposed array.
  const Tensor reversed =
      row_major(h, {type.dtype, Dims(type.dims.rbegin(), type.dims.rend())}, elements);
  std::vector<std::int64_t> perm(type.rank());
  std::iota(perm.rbegin(), perm.rend(), 0);
  return reversed.transposed(perm).contiguous();
} catch (const std::bad_alloc&) {
  throw UserError(ErrorCode::OutOfMemory, "there is no memory for the array in the file");
}

Tensor read_npy(const std::string& path, std::int64_t max_bytes) {
  const std::vector<std::byte> bytes = read_file(path, max_bytes);
  try {
    return parse_npy(bytes);
  } catch (const UserError& e) {
    throw in_file(e, path);
  }
}

std::vector<std::byte> npy_bytes(const Tensor& tensor) {
  const Tensor t = writable(tensor);
  const std::string header = npy_header(t.type());
  const ByteSpan front = std::as_bytes(std::span(header));
  const ByteSpan elements = t.numel() == 0 ? ByteSpan() : t.bytes();
  std::vector<std::byte> out;
  out.reserve(front.size() + elements.size());
  out.insert(out.end(), front.begin(), front.end());
  out.insert(out.end(), elements.begin(), elements.end());
  return out;
}

void write_npy(const std::string& path, const Tensor& tensor) {
  write_file(path, npy_bytes(tensor));
}

}  // namespace ricci::io
