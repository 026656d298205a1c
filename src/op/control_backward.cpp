// Type rules of the loops' gradients.
#include <algorithm>

#include <fmt/format.h>

#include "ricci/op/control.h"

#include "op/body_signature.h"
#include "op/infer_rules.h"
#include "op/loop_layout.h"

namespace ricci {
namespace {

using Kind = op::InputRole::Kind;

Type behind(const Dim& rows, Type type) {
  type.dims.insert(type.dims.begin(), rows);
  return type;
}

std::vector<Type> differentiable(std::span<const Type> types) {
  std::vector<Type> out;
  for (const Type& t : types) {
    if (is_differentiable(t.dtype)) out.push_back(t);
  }
  return out;
}

[[noreturn]] void reject_layout(const InferContext& in, std::string_view expected) {
  in.reject("c2",
            fmt::format("{} operands are given, which are not {}", in.operands.size(), expected),
            "upstream_present has one flag per output of the loop's body");
}

void check_upstream_dtypes(const InferContext& in, const LoopLayout& layout) {
  for (std::size_t i = 0; i < layout.present.size(); ++i) {
    const auto at = layout.upstream(i);
    if (!at) continue;
    const Type& type = in[i < layout.carries ? i : *at];
    if (is_differentiable(type.dtype)) continue;
    in.reject("c3",
              fmt::format("output {} of the body is {}, but has an upstream", i, type.to_string()),
              "integers have no cotangent: leave it out and mark it in upstream_present");
  }
}

void check_kept_rows(const InferContext& in, const LoopLayout& layout, const Dim& rows,
                     std::string_view what) {
  for (std::size_t k = 0; k < layout.carries; ++k) {
    const Type expected = behind(rows, in[k]);
    if (in[layout.kept(k)] == expected) continue;
    in.reject("c4", fmt::format("the {} of carry {} is {}, but {} is expected", what, k,
                                in[layout.kept(k)].to_string(), expected.to_string()));
  }
}

void check_carry_upstreams(const InferContext& in, const LoopLayout& layout, std::string_view label,
                           const std::optional<Dim>& rows) {
  for (std::size_t i = 0; i < layout.carries; ++i) {
    const auto at = layout.upstream(i);
    const Type expected = rows ? behind(*rows, in[i]) : in[i];
    if (!at || in[*at] == expected) continue;
    in.reject(label, fmt::format("the upstream of carry {} is {}, but {} is expected", i,
                                 in[*at].to_string(), expected.to_string()));
  }
}

// One row of a stacked operand.
Type row_type(const InferContext& in, std::string_view label, std::string_view what,
              const Type& whole, const Dim& length) {
  if (whole.dims.empty() || !(whole.dims[0] == length)) {
    in.reject(label, fmt::format("{} is {}, but its first size must be the length {}", what,
                                 whole.to_string(), length.to_string()));
  }
  return whole.with(Dims(whole.dims.begin() + 1, whole.dims.end()));
}

// `stacked` has the types of the stacked outputs; nothing where the upstream is absent, in which
// case body_vjp may take a cotangent of its own choice (zeros are bound to it) or none.
// The last `saved` inputs have no cotangent.
void check_body_vjp(const InferContext& in, std::span<const Type> inputs,
                    std::span<const Type> carries,
                    std::span<const std::optional<Type>> stacked = {}, std::size_t saved = 0) {
  const BodySignature& body = *in.body("body_vjp");
  RoleInputs given(in, "c8", body);
  if (!std::ranges::equal(given.ordinary(), inputs)) {
    in.reject("c7", fmt::format("body 'body_vjp' takes {} besides its d_outputs, but is given {}",
                                list_types(given.ordinary()), list_types(inputs)));
  }
  for (std::size_t i = 0; i < carries.size(); ++i) {
    if (is_differentiable(carries[i].dtype)) given.require(Kind::DOutput, i, carries[i]);
  }
  for (std::size_t i = 0; i < stacked.size(); ++i) {
    if (stacked[i]) {
      given.require(Kind::DOutput, carries.size() + i, *stacked[i]);
    } else {
      given.permit_any(Kind::DOutput, carries.size() + i);
    }
  }
  given.refuse_others();
  require_outputs(in, "c9", body, differentiable(inputs.first(inputs.size() - saved)),
                  Extra::Refused,
                  "one cotangent per input besides the d_outputs; integers have none");
}

void check_forward_body(const InferContext& in, std::span<const Type> inputs,
                        std::span<const Type> carries, std::int64_t checkpoints,
                        std::optional<std::int64_t> steps, Extra extra) {
  const BodySignature* forward = in.body("forward_body");
  const bool all_kept = checkpoints == 0 || checkpoints == steps;
  if (forward == nullptr && !all_kept) {
    in.reject("c10",
              fmt::format("only {} carries are kept, but there is no forward_body", checkpoints),
              "give the loop's own body as forward_body");
  }
  if (forward != nullptr && checkpoints == 0) {
    in.reject("c10", "all carries are kept, so forward_body would never run");
  }
  if (forward == nullptr) return;
  require_inputs(in, "c11", *forward, inputs);
  require_outputs(in, "c11", *forward, carries, extra, "its first outputs are the next carries");
}

}  // namespace

Inferred infer(const op::ScanBackward& op, const InferContext& in) {
  const auto steps = op.length.try_value();
  if (op.num_carry < 0 || op.num_bcast < 0 || op.num_xs < 0 || op.num_saved < 0 ||
      op.num_checkpoints < 0 || (steps && (*steps < 0 || op.num_checkpoints > *steps))) {
    in.reject("c1",
              fmt::format("num_checkpoints = {} and length = {} do not go together",
                          op.num_checkpoints, op.length.to_string()),
              "0 ≤ num_checkpoints ≤ length, and no count is negative");
  }
  const auto layout = layout_of(op, in.operands);
  if (!layout) {
    reject_layout(in, fmt::format("{0} inits, {0} trajectories, the upstreams present, {1} bcasts, "
                                  "{2} xs and {3} saved values",
                                  op.num_carry, op.num_bcast, op.num_xs, op.num_saved));
  }
  const Dim rows = op.num_checkpoints > 0 ? Dim(op.num_checkpoints) : op.length;
  check_upstream_dtypes(in, *layout);
  check_kept_rows(in, *layout, rows, "trajectory");
  check_carry_upstreams(in, *layout, "c5", op.save_trajectory ? std::optional(rows) : std::nullopt);
  std::vector<std::optional<Type>> stacked;
  for (std::size_t i = layout->carries; i < layout->present.size(); ++i) {
    const auto at = layout->upstream(i);
    stacked.push_back(at ? std::optional(row_type(in, "c5", "the upstream of a stacked output",
                                                  in[*at], op.length))
                         : std::nullopt);
  }

  const std::span<const Type> carries = in.operands.subspan(0, layout->carries);
  std::vector<Type> wholes(carries.begin(), carries.end());
  for (std::size_t k = layout->first_bcast(); k < in.operands.size(); ++k) wholes.push_back(in[k]);
  std::vector<Type> inputs = wholes;
  for (std::size_t k = layout->step().first_x(); k < inputs.size(); ++k) {
    inputs[k] = row_type(in, "c6", "an xs or saved value", inputs[k], op.length);
  }
  check_body_vjp(in, inputs, carries, stacked, layout->saved);
  inputs.resize(inputs.size() - layout->saved);
  wholes.resize(inputs.size());
  check_forward_body(in, inputs, carries, op.num_checkpoints, steps, Extra::Allowed);
  return differentiable(wholes);
}

Inferred infer(const op::WhileBackward& op, const InferContext& in) {
  if (op.num_carry < 0 || op.max_iterations < 0 || op.num_checkpoints < 0 ||
      op.num_checkpoints > op.max_iterations) {
    in.reject("c1",
              fmt::format("num_carry = {}, num_checkpoints = {} and max_iterations = {} do not go "
                          "together",
                          op.num_carry, op.num_checkpoints, op.max_iterations),
              "0 ≤ num_checkpoints ≤ max_iterations, and no count is negative");
  }
  const auto layout = layout_of(op, in.operands);
  if (!layout) {
    reject_layout(in, fmt::format("{0} carries, {0} tapes, the trip count and the upstreams "
                                  "present",
                                  op.num_carry));
  }
  check_upstream_dtypes(in, *layout);
  const Dim rows = op.num_checkpoints > 0 ? op.num_checkpoints : op.max_iterations;
  check_kept_rows(in, *layout, rows, "tape");
  if (in[layout->trip_count()] != i32()) {
    in.reject("c5", fmt::format("the trip count is {}, but i32[] is expected",
                                in[layout->trip_count()].to_string()));
  }
  check_carry_upstreams(in, *layout, "c6", std::nullopt);
  const std::span<const Type> carries = in.operands.subspan(0, layout->carries);
  check_body_vjp(in, carries, carries);
  check_forward_body(in, carries, carries, op.num_checkpoints, op.max_iterations, Extra::Refused);
  return differentiable(carries);
}

}  // namespace ricci
