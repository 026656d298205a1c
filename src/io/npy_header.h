// The header of an NPY file: magic, version, and a Python dictionary literal with three keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "ricci/type/type.h"

#include "io/fault.h"

namespace ricci::io {

/// How elements lie in the file; they may be widened on the way to the tensor.
struct NpyElement {
  char kind = 'f';          ///< f, i, u, b or c
  std::size_t size = 4;     ///< bytes in the file
  bool big_endian = false;  ///< matters for elements of several bytes
  DType dtype = DType::F32;
};

struct NpyHeader {
  NpyElement element;
  bool fortran_order = false;
  StaticDims dims;
  std::size_t data_offset = 0;  ///< where the elements begin
  std::size_t data_size = 0;    ///< how many bytes they take

  /// Of the array as it is read.
  [[nodiscard]] Type type() const { return {element.dtype, Dims(dims.begin(), dims.end())}; }
};

/// The most bytes the part before the elements can take.
inline constexpr std::size_t MaxNpyHeader = (1U << 16) + 12;

/// Reads the header at the front of `bytes`; the elements need not be there yet.
[[nodiscard]] NpyHeader parse_npy_header(ByteSpan bytes);

/// The bytes before the elements, for a C-order array of `type`. UserError(file.npy_rank) when it
/// has more dimensions than the format.
[[nodiscard]] std::string npy_header(const Type& type);

}  // namespace ricci::io
