#include "ricci/op/control.h"

#include <fmt/format.h>

#include "op/body_signature.h"
#include "op/infer_rules.h"
#include "op/loop_layout.h"

namespace ricci {

Inferred infer(const op::If&, const InferContext& in) {
  if (in.operands.empty() || !product(in[0].dims).is(1)) {
    in.reject("c1", "the predicate of 'if' must have exactly one element");
  }
  const std::span<const Type> captures = in.operands.subspan(1);
  for (const BodySignature& body : in.bodies) require_inputs(in, "c2", body, captures);
  const BodySignature& yes = *in.body("then");
  const BodySignature& no = *in.body("else");
  if (yes.outputs != no.outputs) {
    in.reject("c3", fmt::format("'then' gives {}, but 'else' gives {}", list_types(yes.outputs),
                                list_types(no.outputs)));
  }
  return yes.outputs;
}

namespace {

void check_saving(const op::Scan& op, const InferContext& in) {
  const bool takes_names = op.save == ScanSave::Named || op.save == ScanSave::Auto;
  if (op.save == ScanSave::Named && op.save_names.empty()) {
    in.reject("c6", "save = named needs save_names");
  }
  if (!takes_names && !op.save_names.empty()) {
    in.reject("c6", "save_names are given, but save is neither 'named' nor 'auto'");
  }
  if (!op.save_bytes) return;
  if (*op.save_bytes < 0) {
    in.reject("c6", fmt::format("save_bytes = {} is negative", *op.save_bytes));
  }
  if ((op.save != ScanSave::Auto && op.save != ScanSave::Recompute) || op.num_checkpoints > 0) {
    in.reject("c6", "save_bytes leave nothing to choose: save or num_checkpoints says what is kept",
              "give save_bytes with save = auto or recompute, and without num_checkpoints");
  }
}

}  // namespace

Inferred infer(const op::Scan& op, const InferContext& in) {
  if (op.num_carry < 0 || op.num_bcast < 0 || op.num_xs < 0 || op.num_checkpoints < 0 ||
      (op.length.is_static() &&
       (op.length.value() < 0 || op.num_checkpoints > op.length.value()))) {
    in.reject("c5",
              fmt::format("num_checkpoints = {} and length = {} do not go together",
                          op.num_checkpoints, op.length.to_string()),
              "0 ≤ num_checkpoints ≤ length");
  }
  check_saving(op, in);
  const ScanLayout layout(op);
  if (!layout.is_of(in.operands.size())) {
    in.reject("c1", fmt::format("{} operands are given, but {} carries, {} bcasts and {} xs are "
                                "declared",
                                in.operands.size(), layout.carries, layout.bcasts, layout.xs));
  }
  std::vector<Type> step(in.operands.begin(), in.operands.end());
  for (std::size_t k = layout.first_x(); k < step.size(); ++k) {
    if (step[k].dims.empty() || !(step[k].dims.front() == op.length)) {
      in.reject("c2",
                fmt::format("xs[{}] is {}, but its first size must be the length {}",
                            k - layout.first_x(), step[k].to_string(), op.length.to_string()));
    }
    step[k].dims.erase(step[k].dims.begin());
  }
  const BodySignature& body = *in.body("body");
  require_inputs(in, "c3", body, step);
  require_outputs(in, "c4", body, in.operands.subspan(0, layout.carries), Extra::Allowed,
                  "its first outputs are the next carries, with unchanged types");
  std::vector<Type> out = body.outputs;
  const bool thinned = op.num_checkpoints > 0;
  for (std::size_t k = 0; k < out.size(); ++k) {
    if (!layout.is_stacked(k)) continue;
    const bool carry = k < layout.carries;
    const Dim rows = carry && thinned ? Dim(op.num_checkpoints) : op.length;
    out[k].dims.insert(out[k].dims.begin(), rows);
  }
  return out;
}

Inferred infer(const op::While& op, const InferContext& in) {
  if (in.operands.empty()) in.reject("c1", "'while' needs at least one carry");
  const BodySignature& cond = *in.body("cond");
  const BodySignature& body = *in.body("body");
  require_inputs(in, "c2", cond, in.operands);
  require_inputs(in, "c2", body, in.operands);
  if (cond.outputs.size() != 1) {
    in.reject("c3", fmt::format("'cond' gives {} values, but one says whether to go on",
                                cond.outputs.size()));
  }
  require_outputs(in, "c4", body, in.operands, Extra::Refused,
                  "its outputs are the next carries, with unchanged types");
  if (op.max_iterations.value_or(0) < 0 || op.num_checkpoints < 0 ||
      op.num_checkpoints > op.max_iterations.value_or(0)) {
    in.reject("c5",
              fmt::format("num_checkpoints = {} and {} do not go together", op.num_checkpoints,
                          op.max_iterations ? fmt::format("max_iterations = {}", *op.max_iterations)
                                            : "no max_iterations"),
              "0 ≤ num_checkpoints ≤ max_iterations");
  }
  std::vector<Type> out(in.operands.begin(), in.operands.end());
  out.push_back(i32());
  if (op.max_iterations) {
    const Dim rows = op.num_checkpoints > 0 ? op.num_checkpoints : *op.max_iterations;
    for (Type tape : in.operands) {
      tape.dims.insert(tape.dims.begin(), rows);
      out.push_back(std::move(tape));
    }
  }
  return {std::move(out), in.operands.size()};
}

namespace {

// What a custom function's bodies must look like.
struct CustomFnShape {
  std::vector<Type> outputs;
  std::vector<Type> residuals;
  std::vector<bool> differentiable;  // one per input
};

CustomFnShape shape_of(const op::CustomFn& op, const InferContext& in) {
  const BodySignature& fwd = *in.body("fwd");
  const auto total = static_cast<std::int64_t>(fwd.outputs.size());
  if (op.num_residuals < 0 || op.num_residuals >= total) {
    in.reject(
        "c2",
        fmt::format("fwd gives {} values, of which {} are residuals", total, op.num_residuals),
        "at least one value is an output");
  }
  CustomFnShape shape;
  const auto split = fwd.outputs.end() - op.num_residuals;
  shape.outputs.assign(fwd.outputs.begin(), split);
  shape.residuals.assign(split, fwd.outputs.end());
  for (const Type& t : in.operands) shape.differentiable.push_back(is_differentiable(t.dtype));
  std::vector<bool> listed(in.operands.size());
  for (const std::int64_t k : op.no_gradient) {
    if (k < 0 || k >= static_cast<std::int64_t>(listed.size()) ||
        listed[static_cast<std::size_t>(k)]) {
      in.reject("c3", fmt::format("no_gradient lists {}, but there are {} inputs, each listed once "
                                  "at most",
                                  k, listed.size()));
    }
    listed[static_cast<std::size_t>(k)] = true;
    shape.differentiable[static_cast<std::size_t>(k)] = false;
  }
  return shape;
}

void check_vjp(const InferContext& in, const CustomFnShape& shape, const BodySignature& body) {
  using Kind = op::InputRole::Kind;
  RoleInputs inputs(in, "c5", body);
  if (!std::ranges::equal(inputs.ordinary(), in.operands)) {
    in.reject("c4",
              fmt::format("body 'vjp' takes {} besides its special inputs, but the inputs are {}",
                          list_types(inputs.ordinary()), list_types(in.operands)));
  }
  for (std::size_t i = 0; i < shape.outputs.size(); ++i) {
    inputs.require(Kind::PrimalOutput, i, shape.outputs[i]);
    if (is_differentiable(shape.outputs[i].dtype)) {
      inputs.require(Kind::DOutput, i, shape.outputs[i]);
    }
  }
  for (std::size_t i = 0; i < shape.residuals.size(); ++i) {
    inputs.permit(Kind::Residual, i, shape.residuals[i]);
  }
  inputs.refuse_others();
  std::vector<Type> cotangents;
  for (std::size_t k = 0; k < in.operands.size(); ++k) {
    if (shape.differentiable[k]) cotangents.push_back(in[k]);
  }
  require_outputs(in, "c6", body, cotangents, Extra::Refused,
                  "one cotangent per input; integer inputs and those in no_gradient have none");
}

void check_jvp(const InferContext& in, const CustomFnShape& shape, const BodySignature& body) {
  using Kind = op::InputRole::Kind;
  RoleInputs inputs(in, "c8", body);
  if (!std::ranges::equal(inputs.ordinary(), in.operands)) {
    in.reject("c7",
              fmt::format("body 'jvp' takes {} besides its special inputs, but the inputs are {}",
                          list_types(inputs.ordinary()), list_types(in.operands)));
  }
  for (std::size_t k = 0; k < in.operands.size(); ++k) {
    if (shape.differentiable[k]) inputs.require(Kind::Tangent, k, in[k]);
  }
  std::vector<Type> tangents;
  for (std::size_t i = 0; i < shape.outputs.size(); ++i) {
    inputs.permit(Kind::PrimalOutput, i, shape.outputs[i]);
    if (is_differentiable(shape.outputs[i].dtype)) tangents.push_back(shape.outputs[i]);
  }
  inputs.refuse_others();
  require_outputs(in, "c9", body, tangents, Extra::Refused,
                  "one tangent per output; integer outputs have none");
}

}  // namespace

Inferred infer(const op::CustomFn& op, const InferContext& in) {
  const BodySignature& fwd = *in.body("fwd");
  require_inputs(in, "c1", fwd, in.operands);
  const CustomFnShape shape = shape_of(op, in);
  const BodySignature* vjp = in.body("vjp");
  const BodySignature* jvp = in.body("jvp");
  if (vjp != nullptr) check_vjp(in, shape, *vjp);
  if (jvp != nullptr) check_jvp(in, shape, *jvp);
  if (op.transpose_jvp && (jvp == nullptr || vjp != nullptr)) {
    in.reject("c10", vjp != nullptr ? "there is a vjp, so the jvp is not to be transposed"
                                    : "there is no jvp to transpose");
  }
  return {fwd.outputs, shape.outputs.size()};
}

Inferred infer(const op::Checkpoint& op, const InferContext& in) {
  const BodySignature& body = *in.body("body");
  require_inputs(in, "c1", body, in.operands);
  const auto total = static_cast<std::int64_t>(body.outputs.size());
  if (op.num_kept < 0 || op.num_kept > total) {
    in.reject("c2", fmt::format("the body gives {} values, of which {} are to be kept", total,
                                op.num_kept));
  }
  if ((op.policy == CheckpointPolicy::Named) == op.names.empty()) {
    in.reject("c3", op.names.empty() ? "the policy 'named' needs names"
                                     : "names are given, but the policy is not 'named'");
  }
  return {body.outputs, static_cast<std::size_t>(total - op.num_kept)};
}

}  // namespace ricci
