// Reductions and running totals by name.
#include "ricci/build/reduce.h"

#include <algorithm>

#include <fmt/format.h>

#include "build/aliases.h"

namespace ricci {
namespace {

Axes all_axes(const Value& x) {
  Axes axes;
  for (std::size_t i = 0; i < x.rank(); ++i) axes.emplace_back(static_cast<std::int64_t>(i));
  return axes;
}

Value reduce_by(ReduceKind kind, Value x, Axes axes, bool keep_dim, std::source_location loc) {
  if (axes.empty()) axes = all_axes(x);
  return reduce(x, {.op = kind, .axes = std::move(axes), .keep_dim = keep_dim}, loc);
}

// `reduce_max %x {axes = [1]}`: the kind in the name; without axes, all of them.
template <ReduceKind Kind>
std::vector<Value> reduce_alias(AliasCall& call) {
  require_operands(call, fmt::format("reduce_{}", name_of(Kind)).c_str(), 1, 1);
  if (std::ranges::find(call.attrs, "axes", &NamedAttr::name) == call.attrs.end()) {
    call.attrs.push_back({"axes", to_attr(all_axes(call.operands[0]))});
  }
  call.attrs.insert(call.attrs.begin(), {"op", to_attr(Kind)});
  return as_op<op::Reduce>(call);
}

}  // namespace

Value sum(Value x, Axes axes, bool keep_dim, std::source_location loc) {
  return reduce_by(ReduceKind::Sum, x, std::move(axes), keep_dim, loc);
}
Value mean(Value x, Axes axes, bool keep_dim, std::source_location loc) {
  return reduce_by(ReduceKind::Mean, x, std::move(axes), keep_dim, loc);
}
Value reduce_max(Value x, Axes axes, bool keep_dim, std::source_location loc) {
  return reduce_by(ReduceKind::Max, x, std::move(axes), keep_dim, loc);
}
Value reduce_min(Value x, Axes axes, bool keep_dim, std::source_location loc) {
  return reduce_by(ReduceKind::Min, x, std::move(axes), keep_dim, loc);
}
Value reduce_prod(Value x, Axes axes, bool keep_dim, std::source_location loc) {
  return reduce_by(ReduceKind::Prod, x, std::move(axes), keep_dim, loc);
}
Value reduce_any(Value x, Axes axes, bool keep_dim, std::source_location loc) {
  return reduce_by(ReduceKind::Any, x, std::move(axes), keep_dim, loc);
}
Value reduce_all(Value x, Axes axes, bool keep_dim, std::source_location loc) {
  return reduce_by(ReduceKind::All, x, std::move(axes), keep_dim, loc);
}
Value log_sum_exp(Value x, Axes axes, bool keep_dim, std::source_location loc) {
  return reduce_by(ReduceKind::LogSumExp, x, std::move(axes), keep_dim, loc);
}

Value cumulative(CumulativeKind kind, Value x, CumulativeOptions options,
                 std::source_location loc) {
  return detail::build<op::Cumulative>(std::array{x}, {kind, options.axis, options.exclusive}, loc);
}
Value cumsum(Value x, CumulativeOptions options, std::source_location loc) {
  return cumulative(CumulativeKind::Cumsum, x, options, loc);
}
Value cumprod(Value x, CumulativeOptions options, std::source_location loc) {
  return cumulative(CumulativeKind::Cumprod, x, options, loc);
}
Value cummax(Value x, CumulativeOptions options, std::source_location loc) {
  return cumulative(CumulativeKind::Cummax, x, options, loc);
}
Value cummin(Value x, CumulativeOptions options, std::source_location loc) {
  return cumulative(CumulativeKind::Cummin, x, options, loc);
}

AliasList reduce_aliases() {
  return {
      {"reduce_sum", {OpKind::Reduce}, reduce_alias<ReduceKind::Sum>},
      {"reduce_mean", {OpKind::Reduce}, reduce_alias<ReduceKind::Mean>},
      {"reduce_max", {OpKind::Reduce}, reduce_alias<ReduceKind::Max>},
      {"reduce_min", {OpKind::Reduce}, reduce_alias<ReduceKind::Min>},
      {"reduce_prod", {OpKind::Reduce}, reduce_alias<ReduceKind::Prod>},
      {"reduce_any", {OpKind::Reduce}, reduce_alias<ReduceKind::Any>},
      {"reduce_all", {OpKind::Reduce}, reduce_alias<ReduceKind::All>},
      {"log_sum_exp", {OpKind::Reduce}, reduce_alias<ReduceKind::LogSumExp>},
  };
}

}  // namespace ricci
