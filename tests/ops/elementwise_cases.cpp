#include <cmath>

#include "ops/cases.h"

namespace ricci::testing {
namespace {}  // namespace

Cases cases(const op::Unary*) {
  std::vector<CaseOf<op::Unary>> list;
  const auto names = enumerator_names(UnaryKind{});
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto kind = static_cast<UnaryKind>(i);
    for (const Dims& dims : shape_classes()) {
      list.push_back({.name = shape_name(std::string(names[i]), dims),
                      .in = {T(dims)},
                      .op = {kind},
                      .dtypes = row(kind).dtypes});
    }
    if (row(kind).dtypes.has(DType::F32)) {
      list.push_back({.name = std::string(names[i]) + "_special",
                      .in = {T({9}).with({0.0, -0.0, 1, -1, Inf, -Inf, NaN, 30, -30})},
                      .op = {kind}});
    }
  }
  list.push_back({.name = "tanh_of_int",
                  .in = {T({2})},
                  .op = {UnaryKind::Tanh},
                  .dtypes = dtypes::ints,
                  .rejects = "c1"});
  list.push_back({.name = "round_ties_to_even",  // [one-rounding-mode]
                  .in = {T({6}).with({0.5, 1.5, 2.5, -0.5, -1.5, 2.6})},
                  .op = {UnaryKind::Round},
                  .out = {{0, 2, 2, 0, -2, 3}}});
  list.push_back({.name = "gelu_far_left",
                  .in = {T({2}).with({-Inf, Inf})},
                  .op = {UnaryKind::Gelu},
                  .out = {{0, Inf}}});
  list.push_back({.name = "silu_far_left",
                  .in = {T({2}).with({-Inf, Inf})},
                  .op = {UnaryKind::Silu},
                  .out = {{0, Inf}}});
  list.push_back({.name = "erf_is_exact",  // [EW-07]
                  .in = {T({2}).with({0.5, -2})},
                  .op = {UnaryKind::Erf},
                  .dtypes = {DType::F64},
                  .out = {{0.52049987781304653768, -0.99532226501895273416}}});
  list.push_back({.name = "relu_keeps_nan",  // [EW-11]
                  .in = {T({3}).with({NaN, -1, 2})},
                  .op = {UnaryKind::Relu},
                  .out = {{NaN, 0, 2}}});
  list.push_back({.name = "not",
                  .in = {T({2}).with({0, 1})},
                  .op = {UnaryKind::BitwiseNot},
                  .dtypes = dtypes::booleans,
                  .out = {{1, 0}}});
  return cases_of<op::Unary>(std::move(list));
}

Cases cases(const op::Binary*) {
  std::vector<CaseOf<op::Binary>> list;
  const auto names = enumerator_names(BinaryKind{});
  const std::vector<std::pair<Dims, Dims>> shapes = {
      {{}, {}},      {{0}, {1}},       {{1}, {7}},
      {{3, 5}, {5}}, {{4, 1}, {1, 3}}, {{2, 0, 3}, {3}},
      {{67}, {67}},  {{}, {2, 3}},     {{1, 2, 1, 3, 1, 2}, {2, 1, 1, 1, 2, 2}}};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto kind = static_cast<BinaryKind>(i);
    for (const auto& [a, b] : shapes) {
      // Divisors and exponents of integers stay positive.
      list.push_back({.name = shape_name(shape_name(std::string(names[i]), a), b),
                      .in = {T(a), T(b).between(1, 4)},
                      .op = {kind},
                      .dtypes = row(kind).dtypes});
    }
  }
  list.push_back({.name = "dtypes_differ",  // [EW-15]
                  .in = {Fixed(DType::F32, {2}), Fixed(DType::F64, {2})},
                  .op = {BinaryKind::Add},
                  .dtypes = {DType::F32},
                  .rejects = "c1"});
  list.push_back(
      {.name = "shapes_clash", .in = {T({2}), T({3})}, .op = {BinaryKind::Add}, .rejects = "c2"});
  list.push_back({.name = "symbols_clash",  // [TR-10]
                  .in = {T({Dim::symbol("n")}), T({Dim::symbol("m")})},
                  .op = {BinaryKind::Add},
                  .rejects = "c2"});
  list.push_back({.name = "symbol_with_itself",
                  .in = {T({Dim::symbol("n"), 1}), T({Dim::symbol("n"), 4})},
                  .op = {BinaryKind::Add}});
  list.push_back({.name = "complex_max",
                  .in = {T({2}), T({2})},
                  .op = {BinaryKind::Max},
                  .dtypes = dtypes::complexes,
                  .rejects = "c3"});
  list.push_back({.name = "max_keeps_nan",  // [EW-11]
                  .in = {T({3}).with({NaN, 1, 2}), T({3}).with({0, NaN, 5})},
                  .op = {BinaryKind::Max},
                  .out = {{NaN, NaN, 5}}});
  list.push_back({.name = "pow_corners",
                  .in = {T({4}).with({0, -2, -2, 0}), T({4}).with({0, 3, 0.5, 2})},
                  .op = {BinaryKind::Pow},
                  .out = {{1, -8, NaN, 0}}});
  list.push_back({.name = "integer_division_by_zero",
                  .in = {T({1}).with({1}), T({1}).with({0})},
                  .op = {BinaryKind::Div},
                  .dtypes = dtypes::ints,
                  .fails = ErrorCode::Attr});
  list.push_back({.name = "truncates",
                  .in = {T({2}).with({7, -7}), T({2}).with({2, 2})},
                  .op = {BinaryKind::Div},
                  .dtypes = {DType::I32, DType::I64, DType::I8},
                  .out = {{3, -3}}});
  list.push_back({.name = "wraps",
                  .in = {T({1}).with({100}), T({1}).with({100})},
                  .op = {BinaryKind::Add},
                  .dtypes = {DType::I8},
                  .out = {{-56}}});
  return cases_of<op::Binary>(std::move(list));
}

Cases cases(const op::Compare*) {
  std::vector<CaseOf<op::Compare>> list;
  const auto names = enumerator_names(CompareKind{});
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto kind = static_cast<CompareKind>(i);
    list.push_back({.name = std::string(names[i]),  // [EW-18]
                    .in = {T({3, 4}), T({4})},
                    .op = {kind},
                    .dtypes = row(kind).dtypes});
    list.push_back({.name = std::string(names[i]) + "_nan",
                    .in = {T({2}).with({NaN, 1}), T({2}).with({NaN, 1})},
                    .op = {kind}});
  }
  list.push_back({.name = "dtypes_differ",
                  .in = {Fixed(DType::F32, {2}), Fixed(DType::I32, {2})},
                  .op = {CompareKind::Lt},
                  .dtypes = {DType::F32},
                  .rejects = "c1"});
  list.push_back({.name = "shapes_clash", .in = {T({2}), T({3})}, .rejects = "c2"});
  list.push_back({.name = "complex_order",
                  .in = {T({2}), T({2})},
                  .op = {CompareKind::Lt},
                  .dtypes = dtypes::complexes,
                  .rejects = "c3"});
  return cases_of<op::Compare>(std::move(list));
}

Cases cases(const op::Where*) {
  return cases_of<op::Where>({
      {.name = "plain", .in = {Fixed(DType::Bool, {3}), T({3}), T({3})}, .dtypes = dtypes::all},
      // [EW-19]
      {.name = "wide_condition", .in = {Fixed(DType::Bool, {2, 3}), T({}), T({3})}},
      {.name = "number_condition",
       .in = {Fixed(DType::I32, {2}).with({0, 5}), T({2}).with({1, 2}), T({2}).with({3, 4})},
       .out = {{3, 2}}},
      {.name = "untaken_nan",
       .in = {Fixed(DType::Bool, {2}).with({1, 0}), T({2}).with({1, NaN}), T({2}).with({NaN, 2})},
       .out = {{1, 2}}},
      {.name = "empty", .in = {Fixed(DType::Bool, {0}), T({0}), T({1})}},
      {.name = "dtypes_differ",
       .in = {Fixed(DType::Bool, {2}), Fixed(DType::F32, {2}), Fixed(DType::F64, {2})},
       .dtypes = {DType::F32},
       .rejects = "c1"},
      {.name = "shapes_clash", .in = {Fixed(DType::Bool, {2}), T({3}), T({3})}, .rejects = "c2"},
  });
}

Cases cases(const op::Cast*) {
  std::vector<CaseOf<op::Cast>> list;
  for (const DType to : AllDTypes) {
    list.push_back({.name = "to_" + std::string(name(to)),
                    .in = {T({2, 3})},
                    .op = {to},
                    .dtypes = dtypes::all});
  }
  list.push_back({.name = "saturates",  // [EW-20]
                  .in = {T({5}).with({300, -300, NaN, 1.9, -1.9})},
                  .op = {DType::I8},
                  .dtypes = {DType::F32, DType::F64, DType::F16, DType::BF16},
                  .out = {{127, -128, 0, 1, -1}}});
  list.push_back({.name = "truth",
                  .in = {T({3}).with({0, 0.5, NaN})},
                  .op = {DType::Bool},
                  .out = {{0, 1, 1}}});
  return cases_of<op::Cast>(std::move(list));
}

Cases cases(const op::StopGradient*) {
  return cases_of<op::StopGradient>({
      {.name = "matrix", .in = {T({2, 3})}, .dtypes = dtypes::all},
      {.name = "empty", .in = {T({0})}},
  });
}

Cases cases(const op::ReluBackward*) {
  std::vector<CaseOf<op::ReluBackward>> list = {
      {.name = "kink",
       .in = {T({6}).with({-1, 0, 2, NaN, Inf, -Inf}), T({6}).with({3, 4, 5, 6, 7, 8})},
       .out = {{0, 0, 5, NaN, 7, 0}}},
      {.name = "infinite_cotangent",
       .in = {T({3}).with({-1, 0, 2}), T({3}).with({Inf, NaN, Inf})},
       .out = {{0, 0, Inf}}},
      {.name = "symbolic", .in = {T({Dim::symbol("n"), 2}), T({Dim::symbol("n"), 2})}},
      {.name = "ints", .in = {T({2}), T({2})}, .dtypes = dtypes::ints, .rejects = "c1"},
      {.name = "complex", .in = {T({2}), T({2})}, .dtypes = dtypes::complexes, .rejects = "c1"},
      {.name = "dtypes_differ",
       .in = {Fixed(DType::F32, {2}), Fixed(DType::F64, {2})},
       .dtypes = {DType::F32},
       .rejects = "c1"},
      {.name = "shapes_differ", .in = {T({2, 3}), T({3})}, .rejects = "c2"},
  };
  for (const Dims& dims : shape_classes()) {
    list.push_back({.name = shape_name("shape", dims), .in = {T(dims), T(dims)}});
  }
  return cases_of<op::ReluBackward>(std::move(list));
}

Cases cases(const op::ActivationBackward*) {
  std::vector<CaseOf<op::ActivationBackward>> list;
  const auto names = enumerator_names(UnaryKind{});
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto kind = static_cast<UnaryKind>(i);
    const std::string name(names[i]);
    if (!row(kind).dtypes.has(DType::F32) || row(kind).gives == Gives::Truth) {
      list.push_back({.name = name, .in = {T({2}), T({2})}, .op = {kind}, .rejects = "c3"});
      continue;
    }
    for (const Dims& dims : shape_classes()) {
      // [lower-backward-exact]
      list.push_back({.name = shape_name(name, dims), .in = {T(dims), T(dims)}, .op = {kind}});
    }
    list.push_back({.name = name + "_symbolic",
                    .in = {T({Dim::symbol("n")}), T({Dim::symbol("n")})},
                    .op = {kind}});
    list.push_back({.name = name + "_special",
                    .in = {T({11}).with({0.0, -0.0, 1, -1, Inf, -Inf, NaN, 30, -30, 1e4, -1e4}),
                           T({11}).with({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1})},
                    .op = {kind}});
  }
  list.push_back({.name = "sqrt_at_the_edge",  // [EW-05]
                  .in = {T({3}).with({0, 4, -1}), T({3}).with({2, 2, 2})},
                  .op = {UnaryKind::Sqrt},
                  .out = {{0, 0.5, NaN}}});
  list.push_back({.name = "rsqrt_at_the_edge",
                  .in = {T({3}).with({0, 4, -1}), T({3}).with({2, 2, 2})},
                  .op = {UnaryKind::Rsqrt},
                  .out = {{0, -0.125, NaN}}});
  list.push_back({.name = "abs_at_zero",  // [EW-04]
                  .in = {T({3}).with({0, 4, -1}), T({3}).with({2, 2, 2})},
                  .op = {UnaryKind::Abs},
                  .out = {{0, 2, -2}}});
  list.push_back({.name = "round_is_straight_through",  // [EW-03]
                  .in = {T({2}).with({0.5, 0.2}), T({2}).with({2, 3})},
                  .op = {UnaryKind::Round},
                  .out = {{2, 3}}});
  list.push_back({.name = "tails_are_flat",
                  .in = {T({4}).with({Inf, -Inf, 300, -300}), T({4}).with({1, 1, 1, 1})},
                  .op = {UnaryKind::GeluApprox},
                  .out = {{1, 0, 1, 0}}});
  list.push_back({.name = "ints",
                  .in = {T({2}), T({2})},
                  .op = {UnaryKind::Neg},
                  .dtypes = dtypes::ints,
                  .rejects = "c1"});
  list.push_back({.name = "shapes_differ",
                  .in = {T({2, 3}), T({2})},
                  .op = {UnaryKind::Neg},
                  .rejects = "c2"});
  return cases_of<op::ActivationBackward>(std::move(list));
}

}  // namespace ricci::testing
