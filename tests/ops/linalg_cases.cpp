#include "ops/cases.h"

namespace ricci::testing {

Cases cases(const op::Matmul*) {
  const DTypeSet all = dtypes::floats | dtypes::ints | dtypes::complexes;
  return cases_of<op::Matmul>({
      {.name = "by_hand",
       .in = {T({2, 2}).with({1, 2, 3, 4}), T({2, 1}).with({5, 6})},
       .dtypes = all,
       .out = {{17, 39}}},
      {.name = "plain", .in = {T({3, 4}), T({4, 5})}, .dtypes = all},
      {.name = "batched", .in = {T({2, 3, 4}), T({2, 4, 5})}},
      {.name = "shared_right", .in = {T({2, 3, 4}), T({4, 5})}},
      {.name = "shared_left", .in = {T({3, 4}), T({2, 4, 5})}},
      {.name = "broadcast", .in = {T({2, 1, 3, 4}), T({5, 4, 2})}},
      {.name = "empty_inner", .in = {T({2, 0}), T({0, 3})}, .out = {{0, 0, 0, 0, 0, 0}}},
      {.name = "empty_outer", .in = {T({0, 3}), T({3, 2})}},
      {.name = "vector", .in = {T({3}), T({3, 2})}, .rejects = "c1"},
      {.name = "inner_differs", .in = {T({2, 3}), T({4, 2})}, .rejects = "c2"},
      {.name = "batch_differs", .in = {T({2, 2, 3}), T({3, 3, 2})}, .rejects = "c3"},
      {.name = "bools", .in = {T({2, 2}), T({2, 2})}, .dtypes = dtypes::booleans, .rejects = "c4"},
  });
}

}  // namespace ricci::testing
