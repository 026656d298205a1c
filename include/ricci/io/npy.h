// NumPy's file formats. NPY holds one array (versions 1.0 to 3.0, either byte order, C or Fortran
// order), NPZ is a zip archive of them, stored or deflated. Files from outside are not trusted: a
// damaged or hostile one gives UserError(file) that names the byte, and costs no more memory than
// the limits below allow. What is written can be read back.
//
//   Tensor x = io::read_npy("x.npy");
//   io::write_npz("out.npz", {{"y", y}, {"loss", loss}});
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ricci/support/file.h"
#include "ricci/type/tensor.h"

namespace ricci::io {

/// u16 is widened to u32, u64 to i64 (an error when a value does not fit); bytes of a bool array
/// must be 0 or 1.
[[nodiscard]] Tensor parse_npy(std::span<const std::byte> bytes);
[[nodiscard]] Tensor read_npy(const std::string& path, std::int64_t max_bytes = MaxFileBytes);

/// Version 1.0, C order, little endian, at most 64 dimensions. NumPy has no bf16: it is widened to
/// f32.
[[nodiscard]] std::vector<std::byte> npy_bytes(const Tensor& tensor);
/// Writes a temporary file, syncs it and renames it.
void write_npy(const std::string& path, const Tensor& tensor);

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// The bytes that the arrays of an archive may take when nothing else is said: 64 times what the
/// archive has, but no less than 256 MiB and no more than 64 GiB.
[[nodiscard]] std::int64_t default_npz_limit(std::size_t archive_bytes);

struct NpzOptions {
  /// What the arrays that are read may take together, unpacked. Absent: `default_npz_limit`.
  std::optional<std::int64_t> max_total_bytes = std::nullopt;
  /// Asked about every array, once all names and headers are known and before any array is
  /// unpacked: one that is not wanted is left out and costs nothing. May throw. Absent: all are.
  std::function<bool(const std::string& name, const Type& type)> wanted = {};
};

/// The arrays in the order of the archive, named without `.npy`. Names are never used as paths.
/// While it reads, it takes up to twice the bytes of the largest array besides what it gives.
[[nodiscard]] NamedTensors parse_npz(std::span<const std::byte> bytes, const NpzOptions& = {});
[[nodiscard]] NamedTensors read_npz(const std::string& path, const NpzOptions& = {});

/// Entries are stored uncompressed; the same arrays give the same bytes.
[[nodiscard]] std::vector<std::byte> npz_bytes(const NamedTensors& arrays);
void write_npz(const std::string& path, const NamedTensors& arrays);

}  // namespace ricci::io
