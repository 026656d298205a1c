// A group of items as one loop kernel.
#pragma once

#include <string>
#include <vector>

#include "ricci/compiler/loop/kernel.h"

#include "schedule/fuse.h"

namespace ricci::schedule {

struct BuiltKernel {
  loop::Kernel kernel;
  /// The storage behind each argument that is not local; -1 for local ones.
  std::vector<StorageId> storages;
  /// Arguments that hold one partial result per tile, and what is made of them afterwards. One that
  /// has a storage is an array of the elements themselves, of rows that are a tile each.
  struct Partial {
    std::size_t argument = 0;
    ReduceKind kind = ReduceKind::Sum;
    DType dtype = DType::F32;  ///< of the partial results
    DType result_dtype = DType::F32;
    std::int64_t kept = 1;    ///< independent results, each of `length` elements
    std::int64_t chunks = 1;  ///< partial results of each
    std::int64_t length = 1;
    StorageId result = -1;
  };
  std::vector<Partial> partials;
};

/// `used_outside[s]`: does anyone but this group read the storage?
[[nodiscard]] BuiltKernel build_kernel(const Items& items, const Fusion& fusion, std::size_t group,
                                       const std::vector<bool>& used_outside, std::string name,
                                       const Target& target);

/// Combines the partial results of tiles: [kept, chunks, length] to [kept, length].
[[nodiscard]] loop::Kernel combining_kernel(const BuiltKernel::Partial& partial, std::string name);

}  // namespace ricci::schedule
