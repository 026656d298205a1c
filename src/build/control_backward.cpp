// Builders of the loops' gradients, and the names text may use for control flow.
#include <algorithm>

#include <fmt/format.h>

#include "ricci/build/control.h"

#include "build/aliases.h"

namespace ricci {
namespace {

void append(std::vector<Value>& to, std::span<const Value> more) {
  to.insert(to.end(), more.begin(), more.end());
}

// Adds the upstreams that are there; gives the flags, empty when they would say the default.
std::vector<bool> append_upstreams(std::vector<Value>& to, std::span<const Value> upstreams,
                                   std::span<const Value> carries) {
  std::vector<bool> flags;
  bool usual = true;
  for (std::size_t i = 0; i < upstreams.size(); ++i) {
    const bool expected = i >= carries.size() || is_differentiable(carries[i].dtype());
    flags.push_back(upstreams[i].valid());
    usual = usual && flags.back() == expected;
    if (flags.back()) to.push_back(upstreams[i]);
  }
  return usual && upstreams.size() >= carries.size() ? std::vector<bool>{} : flags;
}

std::vector<Body> gradient_bodies(const BodyGraph& vjp, const BodyGraph& forward) {
  if (!vjp) throw UserError(ErrorCode::Attr, "the gradient of a loop needs a body_vjp");
  std::vector<Body> out{{"body_vjp", vjp}};
  if (forward) out.push_back({"forward_body", forward});
  return out;
}

Graph& graph_of(std::span<const Value> operands) {
  if (operands.empty()) throw UserError(ErrorCode::Attr, "a loop needs at least one operand");
  return operands[0].graph();
}

// Keeps one result; the others are neither computed nor used.
Value only(std::vector<Value> results, std::size_t r) {
  check_internal(r < results.size(), "a gradient is missing from a loop's results");
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (i != r) results[i].graph().set_wanted(results[i].id(), false);
  }
  return results[r];
}

// Results leave out integers, so the first one is the gradient of the first carry only if it has
// one.
void require_gradient(Value init) {
  if (is_differentiable(init.dtype())) return;
  throw UserError(ErrorCode::DType,
                  fmt::format("the carry is {}, which has no gradient", init.type().to_string()),
                  "only floating-point and complex carries have one");
}

// Which result holds the gradient of an xs: integers before it have none.
std::size_t xs_result(const ScanBackwardArgs& args, std::size_t xs_idx) {
  if (xs_idx >= args.xs.size() || !is_differentiable(args.xs[xs_idx].dtype())) {
    throw UserError(ErrorCode::Attr,
                    fmt::format("xs_idx is {}, but {} xs are given, and it must be one with a "
                                "derivative",
                                xs_idx, args.xs.size()));
  }
  const auto counts = [](const Value& v) { return is_differentiable(v.dtype()); };
  std::ptrdiff_t r = 0;
  for (const auto* group : {&args.inits, &args.bcasts}) r += std::ranges::count_if(*group, counts);
  r += std::ranges::count_if(std::span(args.xs).subspan(0, xs_idx), counts);
  return static_cast<std::size_t>(r);
}

ScanBackwardArgs one_carry(Value init, Value trajectory, Value upstream, std::span<const Value> xs,
                           BodyGraph body_vjp, const Dim& length, bool save_trajectory) {
  return {.inits = {init},
          .trajectories = {trajectory},
          .upstreams = {upstream},
          .bcasts = {},
          .xs = {xs.begin(), xs.end()},
          .saved = {},
          .length = length,
          .trajectory = save_trajectory,
          .checkpoints = 0,
          .reverse = false,
          .body_vjp = std::move(body_vjp),
          .forward_body = {}};
}

}  // namespace

std::vector<Value> scan_backward(const ScanBackwardArgs& args, std::source_location loc) {
  std::vector<Value> operands = args.inits;
  append(operands, args.trajectories);
  op::ScanBackward op{.length = args.length,
                      .num_carry = static_cast<std::int64_t>(args.inits.size()),
                      .num_bcast = static_cast<std::int64_t>(args.bcasts.size()),
                      .num_xs = static_cast<std::int64_t>(args.xs.size()),
                      .save_trajectory = args.trajectory,
                      .num_checkpoints = args.checkpoints,
                      .reverse = args.reverse,
                      .upstream_present = append_upstreams(operands, args.upstreams, args.inits),
                      .num_saved = static_cast<std::int64_t>(args.saved.size())};
  append(operands, args.bcasts);
  append(operands, args.xs);
  append(operands, args.saved);
  return graph_of(operands).add_node(Op(std::move(op)), operands,
                                     gradient_bodies(args.body_vjp, args.forward_body), loc);
}

Value scan_backward(Value init, Value trajectory, Value upstream, std::span<const Value> xs,
                    BodyGraph body_vjp, const Dim& length, bool save_trajectory,
                    std::source_location loc) {
  require_gradient(init);
  return only(scan_backward(one_carry(init, trajectory, upstream, xs, std::move(body_vjp), length,
                                      save_trajectory),
                            loc),
              0);
}

Value scan_backward_with_checkpoints(Value init, Value trajectory, Value upstream,
                                     std::span<const Value> xs, BodyGraph body_vjp,
                                     const Dim& length, bool save_trajectory,
                                     std::int64_t checkpoints, BodyGraph forward_body,
                                     std::source_location loc) {
  require_gradient(init);
  ScanBackwardArgs args =
      one_carry(init, trajectory, upstream, xs, std::move(body_vjp), length, save_trajectory);
  args.checkpoints = checkpoints;
  args.forward_body = std::move(forward_body);
  return only(scan_backward(args, loc), 0);
}

Value scan_backward_xs(Value init, Value trajectory, Value upstream, std::span<const Value> xs,
                       BodyGraph body_vjp, const Dim& length, bool save_trajectory,
                       std::size_t xs_idx, std::source_location loc) {
  return scan_backward_xs_with_checkpoints(init, trajectory, upstream, xs, std::move(body_vjp),
                                           length, save_trajectory, xs_idx, 0, {}, loc);
}

Value scan_backward_xs_with_checkpoints(Value init, Value trajectory, Value upstream,
                                        std::span<const Value> xs, BodyGraph body_vjp,
                                        const Dim& length, bool save_trajectory, std::size_t xs_idx,
                                        std::int64_t checkpoints, BodyGraph forward_body,
                                        std::source_location loc) {
  require_gradient(init);
  ScanBackwardArgs args =
      one_carry(init, trajectory, upstream, xs, std::move(body_vjp), length, save_trajectory);
  args.checkpoints = checkpoints;
  args.forward_body = std::move(forward_body);
  const std::size_t result = xs_result(args, xs_idx);
  return only(scan_backward(args, loc), result);
}

std::vector<Value> while_backward(const WhileBackwardArgs& args, std::source_location loc) {
  std::vector<Value> operands = args.carries;
  append(operands, args.tapes);
  operands.push_back(args.trip_count);
  op::WhileBackward op{
      .num_carry = static_cast<std::int64_t>(args.carries.size()),
      .max_iterations = args.max_iterations,
      .num_checkpoints = args.checkpoints,
      .upstream_present = append_upstreams(operands, args.upstreams, args.carries)};
  return graph_of(operands).add_node(Op(std::move(op)), operands,
                                     gradient_bodies(args.body_vjp, args.forward_body), loc);
}

namespace {

// `while_taped` is `while` with every result wanted.
std::vector<Value> taped(AliasCall& call) {
  std::vector<Value> results = as_op<op::While>(call);
  for (const Value& v : results) call.graph.set_wanted(v.id(), true);
  return results;
}

// `scan_trajectory` is `scan` with that attribute set.
std::vector<Value> trajectory(AliasCall& call) {
  std::erase_if(call.attrs, [](const NamedAttr& a) { return a.name == "save_trajectory"; });
  call.attrs.push_back({"save_trajectory", {true}});
  return as_op<op::Scan>(call);
}

// `scan_with_xs` and `scan_with_bcasts_and_xs` are `scan`, where the operands left over are xs.
std::vector<Value> with_xs(AliasCall& call) {
  const auto op = alias_attrs<op::Scan>(call);
  if (std::ranges::find(call.attrs, "num_xs", &NamedAttr::name) == call.attrs.end()) {
    const auto operands = static_cast<std::int64_t>(call.operands.size());
    call.attrs.push_back({"num_xs", {operands - op.num_carry - op.num_bcast}});
  }
  return as_op<op::Scan>(call);
}

void require_checkpoints(std::int64_t count) {
  if (count >= 1) return;
  throw UserError(ErrorCode::Attr,
                  fmt::format("num_checkpoints is {}, but at least 1 is needed", count),
                  "1 ≤ num_checkpoints ≤ length");
}

// `scan_checkpointed` is `scan` with checkpoints.
std::vector<Value> checkpointed(AliasCall& call) {
  require_checkpoints(alias_attrs<op::Scan>(call).num_checkpoints);
  return as_op<op::Scan>(call);
}

// `scan_backward_with_checkpoints` is `scan_backward` with the first carry's gradient wanted.
std::vector<Value> backward_with_checkpoints(AliasCall& call) {
  require_checkpoints(alias_attrs<op::ScanBackward>(call).num_checkpoints);
  if (!call.operands.empty()) require_gradient(call.operands[0]);
  return {only(as_op<op::ScanBackward>(call), 0)};
}

// `scan_backward_xs {xs_idx}` is `scan_backward` with one dxs wanted.
std::vector<Value> backward_xs(AliasCall& call) {
  std::int64_t index = 0;
  std::erase_if(call.attrs, [&](const NamedAttr& a) {
    if (a.name != "xs_idx") return false;
    const auto* given = a.value.get<std::int64_t>();
    index = given != nullptr ? *given : -1;
    return true;
  });
  const auto op = alias_attrs<op::ScanBackward>(call);
  const auto operands = static_cast<std::int64_t>(call.operands.size());
  if (op.num_xs < 1 || op.num_xs > operands || index < 0 || index >= op.num_xs ||
      op.num_saved < 0 || op.num_saved > operands - op.num_xs) {
    throw UserError(ErrorCode::Attr, fmt::format("xs_idx must be one of the {} xs", op.num_xs));
  }
  // The gradients of the xs come last; those after this one are counted from the end.
  const auto counts = [](const Value& v) { return is_differentiable(v.dtype()); };
  const auto from_this = std::span(call.operands)
                             .first(static_cast<std::size_t>(operands - op.num_saved))
                             .last(static_cast<std::size_t>(op.num_xs - index));
  if (!counts(from_this[0])) {
    throw UserError(ErrorCode::DType, fmt::format("xs[{}] is {}, which has no gradient", index,
                                                  from_this[0].type().to_string()));
  }
  std::vector<Value> results = as_op<op::ScanBackward>(call);
  const auto behind = std::ranges::count_if(from_this.subspan(1), counts);
  return {only(results, results.size() - 1 - static_cast<std::size_t>(behind))};
}

std::vector<Value> backward_xs_with_checkpoints(AliasCall& call) {
  const auto given = std::ranges::find(call.attrs, "num_checkpoints", &NamedAttr::name);
  const auto* count = given == call.attrs.end() ? nullptr : given->value.get<std::int64_t>();
  require_checkpoints(count == nullptr ? 0 : *count);
  return backward_xs(call);
}

}  // namespace

AliasList control_aliases() {
  return {
      {"custom_fn_multi", {OpKind::CustomFn}, as_op<op::CustomFn>},
      {"scan_backward_with_checkpoints", {OpKind::ScanBackward}, backward_with_checkpoints},
      {"scan_backward_xs", {OpKind::ScanBackward}, backward_xs},
      {"scan_backward_xs_with_checkpoints", {OpKind::ScanBackward}, backward_xs_with_checkpoints},
      {"scan_checkpointed", {OpKind::Scan}, checkpointed},
      {"scan_trajectory", {OpKind::Scan}, trajectory},
      {"scan_with_bcasts_and_xs", {OpKind::Scan}, with_xs},
      {"scan_with_xs", {OpKind::Scan}, with_xs},
      {"while_taped", {OpKind::While}, taped}};
}

}  // namespace ricci
