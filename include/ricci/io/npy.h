// NumPy's file formats. NPY holds one array (versions 1.0 to 3.0, either byte order, C or Fortran
// order), NPZ is a zip archive of them, stored or deflated. Files from outside are not trusted: a
// damaged or hostile one gives UserError(file) that names the byte, and never costs more memory
// than its size justifies.
//
//   Tensor x = io::read_npy("x.npy");
//   io::write_npz("out.npz", {{"y", y}, {"loss", loss}});
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ricci/type/tensor.h"

namespace ricci::io {

/// u16 is widened to u32, u64 to i64 (an error when a value does not fit); bytes of a bool array
/// must be 0 or 1.
[[nodiscard]] Tensor parse_npy(std::span<const std::byte> bytes);
[[nodiscard]] Tensor read_npy(const std::string& path);

/// Version 1.0, C order, little endian. NumPy has no bf16: it is widened to f32.
[[nodiscard]] std::vector<std::byte> npy_bytes(const Tensor& tensor);
/// Writes a temporary file, syncs it and renames it.
void write_npy(const std::string& path, const Tensor& tensor);

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

struct NpzLimits {
  /// All arrays together, uncompressed: what a few compressed bytes may grow to.
  std::int64_t max_total_bytes = std::int64_t{1} << 36;
};

/// The arrays in the order of the archive, named without `.npy`. Names are never used as paths.
[[nodiscard]] NamedTensors parse_npz(std::span<const std::byte> bytes, const NpzLimits& = {});
[[nodiscard]] NamedTensors read_npz(const std::string& path, const NpzLimits& = {});

/// Entries are stored uncompressed; the same arrays give the same bytes.
[[nodiscard]] std::vector<std::byte> npz_bytes(const NamedTensors& arrays);
void write_npz(const std::string& path, const NamedTensors& arrays);

}  // namespace ricci::io
