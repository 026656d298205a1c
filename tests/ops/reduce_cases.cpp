#include <limits>

#include "ops/cases.h"

namespace ricci::testing {
namespace {

constexpr double Inf = std::numeric_limits<double>::infinity();
const double NaN = std::numeric_limits<double>::quiet_NaN();

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
  list.push_back({.name = "complex_sum",
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

Cases cases(const op::Softmax*) {
  return cases_of<op::Softmax>({
      {.name = "last", .in = {T({3, 5})}},
      {.name = "first", .in = {T({3, 5})}, .op = {0}},
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
