#include "ops/cases.h"

namespace ricci::testing {
namespace {

template <class Block>
std::vector<CaseOf<Block>> linear_cases() {
  const In x = T({2, 3}).with({1, 2, 3, 4, 5, 6});
  const In w = T({3, 2}).with({1, 0, 0, 1, 1, 1});
  const In b = T({2}).with({-5, 1});
  return {
      {.name = "with_bias", .in = {x, w, b}, .out = {{-1, 6, 5, 12}}},
      {.name = "with_activation", .in = {x, w, b}, .op = {UnaryKind::Relu}, .out = {{0, 6, 5, 12}}},
      {.name = "vector", .in = {T({3}), T({3, 2}), T({2})}},
      {.name = "batched", .in = {T({2, 2, 3}), T({3, 5}), T({5})}, .op = {UnaryKind::Gelu}},
      {.name = "symbolic", .in = {T({Dim::symbol("n"), 3}), T({3, 2}), T({2})}},
      {.name = "ints",
       .in = {T({2, 3}), T({3, 2}), T({2})},
       .dtypes = dtypes::ints,
       .rejects = "c1"},
      {.name = "inner_differs", .in = {T({2, 3}), T({4, 2}), T({2})}, .rejects = "c2"},
      {.name = "activation_of_integers",
       .in = {x, w, b},
       .op = {UnaryKind::BitwiseNot},
       .rejects = "c4"},
      {.name = "bias_length", .in = {T({2, 3}), T({3, 2}), T({3})}, .rejects = "c3"},
  };
}

}  // namespace

Cases cases(const op::Linear*) {
  auto list = linear_cases<op::Linear>();
  list.push_back({.name = "no_bias", .in = {T({2, 3}), T({3, 2})}, .op = {UnaryKind::Tanh}});
  return cases_of<op::Linear>(std::move(list));
}

Cases cases(const op::LinearFused*) {
  return cases_of<op::LinearFused>(linear_cases<op::LinearFused>());
}

}  // namespace ricci::testing
