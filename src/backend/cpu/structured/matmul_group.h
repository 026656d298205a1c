// Matrix products of different sizes that are run together, so that all threads have work though
// each may be too small for that.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "ricci/compiler/device/thread_pool.h"

#include "backend/cpu/structured/matmul.h"

namespace ricci::cpu {

struct GroupedProduct {
  MatmulPlan plan;
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;  ///< no two products write the same elements
};

/// As many of them at once as find their scratch in `room`, which has enough for each alone.
void run_products(ThreadPool& pool, std::span<const GroupedProduct> products,
                  std::span<std::byte> room);

}  // namespace ricci::cpu
