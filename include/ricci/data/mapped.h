// NumPy's files without a copy of them: elements are read when they are looked at.
//
//   const Dataset<Batch> data = Batch{map_npy("x.npy"), map_npy("y.npy")};
#pragma once

#include <map>
#include <string>

#include "ricci/array/array.h"

namespace ricci {

/// An array whose elements stay in the file, where they can be used as they lie: little-endian, of
/// a dtype there is, in C or Fortran order. Others are read into memory. The file is to be
/// replaced, not overwritten, as long as the array lives.
[[nodiscard]] Array map_npy(const std::string& path);
/// The same for the arrays of an archive; those that are packed, or lie at odd places, are read
/// into memory. The checksums of those that stay in the file are not looked at.
[[nodiscard]] std::map<std::string, Array> map_npz(const std::string& path);

}  // namespace ricci
