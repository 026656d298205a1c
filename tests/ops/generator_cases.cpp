#include "ops/cases.h"

namespace ricci::testing {

Cases cases(const op::Iota*) {
  constexpr DTypeSet once = {DType::F32};
  std::vector<CaseOf<op::Iota>> list = {
      {.name = "rows",
       .op = {.shape = {2, 3}, .axis = 0},
       .dtypes = once,
       .out = {{0, 0, 0, 1, 1, 1}}},
      {.name = "last_axis",
       .op = {.shape = {2, 3}, .axis = -1},
       .dtypes = once,
       .out = {{0, 1, 2, 0, 1, 2}}},
      {.name = "empty", .op = {.shape = {0}, .axis = 0}, .dtypes = once},
      {.name = "symbolic", .op = {.shape = {Dim::symbol("n")}, .axis = 0}, .dtypes = once},
      {.name = "bool",
       .op = {.shape = {2}, .axis = 0, .dtype = DType::Bool},
       .dtypes = once,
       .rejects = "c1"},
      {.name = "negative", .op = {.shape = {-2}, .axis = 0}, .dtypes = once, .rejects = "c2"},
  };
  for (const DType d : AllDTypes) {
    if (d == DType::Bool) continue;
    list.push_back({.name = "dtype_" + std::string(name(d)),
                    .op = {.shape = {5}, .axis = 0, .dtype = d},
                    .dtypes = once,
                    .out = {{0, 1, 2, 3, 4}}});
  }
  return cases_of<op::Iota>(std::move(list));
}

}  // namespace ricci::testing
