#include "ops/cases.h"

namespace ricci::testing {
namespace {

// Leaves carry their own types: one case per type, not crossed.
template <class Leaf>
Cases leaf_cases() {
  constexpr DTypeSet once = {DType::F32};
  return cases_of<Leaf>({
      {.name = "matrix", .op = {.name = "p", .type = f32({2, 3})}, .dtypes = once},
      {.name = "symbolic", .op = {.name = "p", .type = f32({Dim::symbol("n"), 3})}, .dtypes = once},
      {.name = "unnamed", .op = {.name = "", .type = f32()}, .dtypes = once, .rejects = "c1"},
      {.name = "negative", .op = {.name = "p", .type = f32({-2})}, .dtypes = once, .rejects = "c2"},
  });
}

}  // namespace

Cases cases(const op::Input*) {
  Cases out = leaf_cases<op::Input>();
  using Kind = op::InputRole::Kind;
  for (const op::InputRole role : {op::InputRole{Kind::DOutput, 0}, op::InputRole{Kind::DOutput, 2},
                                   op::InputRole{Kind::Tangent, 1}}) {
    out.push_back(cases_of<op::Input>({{.name = "role",
                                        .op = {.name = "d", .type = f32({2}), .role = role},
                                        .dtypes = {DType::F32}}})[0]);
  }
  return out;
}

Cases cases(const op::Param*) { return leaf_cases<op::Param>(); }

Cases cases(const op::Constant*) {
  std::vector<CaseOf<op::Constant>> list;
  for (const DType d : AllDTypes) {
    const std::vector<std::int64_t> small = {0, 1, 1, 0, 1, 1};
    std::vector<std::int64_t> many;
    for (std::int64_t i = 0; i < 40; ++i) many.push_back(i % 3);
    const std::string suffix = "_" + std::string(name(d));
    const DTypeSet once = {DType::F32};
    list.push_back({.name = "list" + suffix,
                    .op = {Tensor::from_numbers<std::int64_t>({d, {2, 3}}, small)},
                    .dtypes = once});
    list.push_back({.name = "hex" + suffix,
                    .op = {Tensor::from_numbers<std::int64_t>({d, {40}}, many)},
                    .dtypes = once});
    list.push_back(
        {.name = "splat" + suffix, .op = {Tensor::splat({d, {1000, 1000}}, 1)}, .dtypes = once});
    list.push_back({.name = "scalar" + suffix, .op = {Tensor::splat({d, {}}, 1)}, .dtypes = once});
    list.push_back(
        {.name = "empty" + suffix, .op = {Tensor::splat({d, {2, 0}}, 0)}, .dtypes = once});
  }
  return cases_of<op::Constant>(std::move(list));
}

}  // namespace ricci::testing
