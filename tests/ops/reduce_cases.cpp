
#include "ops/cases.h"

namespace ricci::testing {
namespace {

DTypeSet dtypes_of(ReduceKind kind) {
  if (kind == ReduceKind::Any || kind == ReduceKind::All) return dtypes::booleans;
  if (kind == ReduceKind::Mean || kind == ReduceKind::LogSumExp) return dtypes::floats;
  return dtypes::floats | dtypes::ints;
}

}  // namespace

Cases cases(const op::Reduce*) {
  std::vector<CaseOf<op::Reduce>> list;
  const auto names = enumerator_names(ReduceKind{});
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto kind = static_cast<ReduceKind>(i);
    const std::string n(names[i]);
    const DTypeSet d = dtypes_of(kind);
    list.push_back({.name = n + "_all", .in = {T({3, 5})}, .op = {kind, {0, 1}}, .dtypes = d});
    list.push_back({.name = n + "_last", .in = {T({3, 5})}, .op = {kind, {-1}, true}, .dtypes = d});
    // [RD-06]
    list.push_back({.name = n + "_outer", .in = {T({2, 3, 4})}, .op = {kind, {2, 0}}, .dtypes = d});
    list.push_back({.name = n + "_none", .in = {T({3})}, .op = {kind, {}}, .dtypes = d});
    list.push_back({.name = n + "_empty", .in = {T({2, 0})}, .op = {kind, {1}}, .dtypes = d});
    list.push_back({.name = n + "_scalar", .in = {T({})}, .op = {kind, {}}, .dtypes = d});
    list.push_back({.name = n + "_long", .in = {T({2, 67})}, .op = {kind, {1}}, .dtypes = d});
    list.push_back({.name = n + "_rank_six",
                    .in = {T({1, 2, 1, 3, 2, 2})},
                    .op = {kind, {1, 3, 5}, true},
                    .dtypes = d});
  }
  const In none = T({0});
  list.push_back(
      {.name = "max_of_nothing", .in = {none}, .op = {ReduceKind::Max, {0}}, .out = {{-Inf}}});
  list.push_back(
      {.name = "min_of_nothing", .in = {none}, .op = {ReduceKind::Min, {0}}, .out = {{Inf}}});
  list.push_back(
      {.name = "mean_of_nothing", .in = {none}, .op = {ReduceKind::Mean, {0}}, .out = {{NaN}}});
  list.push_back(
      {.name = "prod_of_nothing", .in = {none}, .op = {ReduceKind::Prod, {0}}, .out = {{1}}});
  list.push_back({.name = "max_with_nan",
                  .in = {T({3}).with({1, NaN, 2})},
                  .op = {ReduceKind::Max, {0}},
                  .out = {{NaN}}});
  list.push_back({.name = "log_sum_exp_large",
                  .in = {T({2}).with({30000, 30000})},
                  .op = {ReduceKind::LogSumExp, {0}},
                  .dtypes = {DType::F32, DType::F64},
                  .out = {{30000.693147180559}}});
  list.push_back({.name = "log_sum_exp_nothing_there",
                  .in = {T({2}).with({-Inf, -Inf})},
                  .op = {ReduceKind::LogSumExp, {0}},
                  .out = {{-Inf}}});
  list.push_back({.name = "complex_sum",  // [CX-02]
                  .in = {T({2, 3})},
                  .op = {ReduceKind::Sum, {1}},
                  .dtypes = dtypes::complexes});
  list.push_back({.name = "int_mean",
                  .in = {T({3})},
                  .op = {ReduceKind::Mean, {0}},
                  .dtypes = dtypes::ints,
                  .rejects = "c1"});
  list.push_back(
      {.name = "twice", .in = {T({3})}, .op = {ReduceKind::Sum, {0, -1}}, .rejects = "c2"});
  list.push_back(
      {.name = "no_such_axis", .in = {T({3})}, .op = {ReduceKind::Sum, {1}}, .rejects = "axis"});
  return cases_of<op::Reduce>(std::move(list));
}

Cases cases(const op::Cumulative*) {
  const Dim n = Dim::symbol("n");
  std::vector<CaseOf<op::Cumulative>> list;
  const auto names = enumerator_names(CumulativeKind{});
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto kind = static_cast<CumulativeKind>(i);
    const std::string s(names[i]);
    const bool order = kind == CumulativeKind::Cummax || kind == CumulativeKind::Cummin;
    const DTypeSet d =
        order ? dtypes::floats | dtypes::ints : dtypes::floats | dtypes::ints | dtypes::complexes;
    list.push_back({.name = s + "_last", .in = {T({3, 5})}, .op = {kind}, .dtypes = d});
    // [RD-10] every axis, both ways.
    list.push_back({.name = s + "_first", .in = {T({3, 5})}, .op = {kind, 0}, .dtypes = d});
    list.push_back(
        {.name = s + "_exclusive", .in = {T({2, 3, 4})}, .op = {kind, 1, true}, .dtypes = d});
    list.push_back({.name = s + "_empty", .in = {T({2, 0})}, .op = {kind, 1, true}, .dtypes = d});
    list.push_back({.name = s + "_one", .in = {T({2, 1})}, .op = {kind, -1, true}, .dtypes = d});
    list.push_back({.name = s + "_single", .in = {T({2, 1})}, .op = {kind}, .dtypes = d});
    list.push_back({.name = s + "_no_rows", .in = {T({0, 3})}, .op = {kind}, .dtypes = d});
    list.push_back({.name = s + "_of_nine", .in = {T({9, 2})}, .op = {kind, 0, true}});
    // Zeros in products, ties in extremes.
    list.push_back({.name = s + "_one_zero", .in = {T({5}).with({2, 3, 0, -1, 4})}, .op = {kind}});
    list.push_back({.name = s + "_two_zeros",
                    .in = {T({2, 4}).with({2, 0, 3, 0, 0, 0, 1, 5})},
                    .op = {kind, 1, true}});
    list.push_back({.name = s + "_ties", .in = {T({5}).with({1, 1, -1, -1, 2})}, .op = {kind}});
    list.push_back({.name = s + "_rank_six", .in = {T({1, 2, 1, 3, 2, 2})}, .op = {kind, 3}});
    list.push_back({.name = s + "_symbolic", .in = {T({n, 3})}, .op = {kind, 0, true}});
    list.push_back({.name = s + "_bool",
                    .in = {T({2})},
                    .op = {kind},
                    .dtypes = dtypes::booleans,
                    .rejects = "c1"});
    list.push_back({.name = s + "_scalar", .in = {T({})}, .op = {kind}, .rejects = "axis"});
  }
  const In x = T({4}).with({2, -1, 3, 1});
  const auto by_hand = [&](std::string name, CumulativeKind kind, bool exclusive,
                           std::vector<double> out) {
    list.push_back(
        {.name = std::move(name), .in = {x}, .op = {kind, 0, exclusive}, .out = {std::move(out)}});
  };
  by_hand("sums", CumulativeKind::Cumsum, false, {2, 1, 4, 5});
  by_hand("sums_before", CumulativeKind::Cumsum, true, {0, 2, 1, 4});
  by_hand("products", CumulativeKind::Cumprod, false, {2, -2, -6, -6});
  by_hand("products_before", CumulativeKind::Cumprod, true, {1, 2, -2, -6});
  by_hand("largest", CumulativeKind::Cummax, false, {2, 2, 3, 3});
  by_hand("largest_before", CumulativeKind::Cummax, true, {-Inf, 2, 2, 3});
  by_hand("smallest", CumulativeKind::Cummin, false, {2, -1, -1, -1});
  by_hand("smallest_before", CumulativeKind::Cummin, true, {Inf, 2, -1, -1});
  list.push_back({.name = "long_sums", .in = {T({2, 67})}, .op = {CumulativeKind::Cumsum}});
  list.push_back({.name = "lowest_integer",
                  .in = {T({2}).with({3, 4})},
                  .op = {CumulativeKind::Cummax, 0, true},
                  .dtypes = {DType::I8},
                  .out = {{-128, 3}}});
  list.push_back({.name = "wraps",
                  .in = {T({2}).with({200, 100})},
                  .op = {CumulativeKind::Cumsum},
                  .dtypes = {DType::U8},
                  .out = {{200, 44}}});
  list.push_back({.name = "nan_stays_largest",
                  .in = {T({3}).with({1, NaN, 2})},
                  .op = {CumulativeKind::Cummax},
                  .out = {{1, NaN, NaN}}});
  list.push_back({.name = "nan_stays_smallest",
                  .in = {T({3}).with({1, NaN, 2})},
                  .op = {CumulativeKind::Cummin},
                  .out = {{1, NaN, NaN}}});
  list.push_back({.name = "complex_order",
                  .in = {T({2})},
                  .op = {CumulativeKind::Cummax},
                  .dtypes = dtypes::complexes,
                  .rejects = "c1"});
  return cases_of<op::Cumulative>(std::move(list));
}

Cases cases(const op::CumsumBackward*) {
  const Dim n = Dim::symbol("n");
  const DTypeSet addable = dtypes::floats | dtypes::ints | dtypes::complexes;
  const In dy = T({3}).with({1, 2, 4});
  return cases_of<op::CumsumBackward>({
      {.name = "inclusive", .in = {dy}, .out = {{7, 6, 4}}},
      {.name = "exclusive", .in = {dy}, .op = {.exclusive = true}, .out = {{6, 4, 0}}},
      {.name = "first_axis", .in = {T({5, 3})}, .op = {.axis = 0}, .dtypes = addable},
      {.name = "middle", .in = {T({2, 3, 4})}, .op = {1, true}, .dtypes = addable},
      {.name = "empty", .in = {T({2, 0})}},
      {.name = "long", .in = {T({2, 67})}},
      {.name = "single", .in = {T({2, 1})}, .op = {.exclusive = true}},
      {.name = "first_exclusive", .in = {T({4, 2})}, .op = {0, true}},
      {.name = "symbolic", .in = {T({n, 3})}, .op = {.axis = 0}},
      {.name = "bools", .in = {T({2})}, .dtypes = dtypes::booleans, .rejects = "c1"},
      {.name = "scalar", .in = {T({})}, .rejects = "axis"},
  });
}

Cases cases(const op::Softmax*) {
  return cases_of<op::Softmax>({
      {.name = "last", .in = {T({3, 5})}},
      {.name = "first", .in = {T({3, 5})}, .op = {0}},  // [RD-09]
      {.name = "middle", .in = {T({2, 3, 4})}, .op = {1}},
      {.name = "empty", .in = {T({0, 3})}},
      {.name = "one", .in = {T({3, 1})}, .out = {{1, 1, 1}}},
      {.name = "large", .in = {T({2}).with({30000, 30000})}, .out = {{0.5, 0.5}}},
      {.name = "masked", .in = {T({3}).with({0, -Inf, 0})}, .out = {{0.5, 0, 0.5}}},
      {.name = "all_masked", .in = {T({2}).with({-Inf, -Inf})}, .out = {{NaN, NaN}}},
      {.name = "ints", .in = {T({2})}, .dtypes = dtypes::ints, .rejects = "c1"},
  });
}

}  // namespace ricci::testing
