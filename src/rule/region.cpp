// Regions: each step runs as the primitive it stands for, with f16 and bf16 held in f32.
#include "ricci/op/region.h"

#include "ricci/build/build.h"

#include "op/region_chain.h"
#include "rule/tables/eval_rules.h"
#include "rule/tables/expand_rules.h"
#include "type/small_dtype.h"

namespace ricci::rule {
namespace {

// s_j = f_j(…) for every step. `apply(op, operands)` runs a primitive; inputs are held in registers
// already. A cast to a narrow float rounds before it is held again.
template <class T, class Step, class Apply>
std::vector<T> run_chain(const std::vector<Step>& chain, std::span<const T> inputs, Apply&& apply) {
  std::vector<T> steps;
  for (const Step& step : chain) {
    std::vector<T> operands;
    for (const RegionOperand& o : step.operands) {
      const auto at = static_cast<std::size_t>(o.index);
      operands.push_back(o.from == RegionOperand::From::Input ? inputs[at] : steps[at]);
    }
    T result = apply(step_op(step), operands);
    const DType held = widened(result.dtype());
    if (held != result.dtype()) {
      const std::vector<T> narrow{result};
      result = apply(Op(op::Cast{held}), narrow);
    }
    steps.push_back(std::move(result));
  }
  return steps;
}

// The chain for inputs that are held in registers already: a cast to a narrow float is followed by
// one back, and the steps after it read that one.
std::vector<RegionStep> in_registers(const std::vector<RegionStep>& chain) {
  std::vector<RegionStep> out;
  std::vector<RegionOperand> held;  // where each old step is now
  for (RegionStep step : chain) {
    for (RegionOperand& o : step.operands) {
      if (o.from == RegionOperand::From::Step) o = held[static_cast<std::size_t>(o.index)];
    }
    const auto* to = std::get_if<DType>(&step.function);
    const bool narrow = to != nullptr && widened(*to) != *to;
    out.push_back(std::move(step));
    if (narrow) {
      const auto rounded = static_cast<std::int64_t>(out.size()) - 1;
      out.push_back(RegionStep::cast(DType::F32, RegionOperand::step(rounded)));
    }
    held.push_back(RegionOperand::step(static_cast<std::int64_t>(out.size()) - 1));
  }
  return out;
}

// Runs one primitive's reference kernel on behalf of a node.
Tensor run_primitive(const Op& op, std::span<const Tensor> operands, const EvalContext& c) {
  std::vector<Type> types;
  for (const Tensor& t : operands) types.push_back(t.type());
  const Op whole = normalize(op, types);
  Inferred inferred = infer_types(whole, types, {}, &c.graph().registry());
  const Node node{.op = whole,
                  .operands = {},
                  .types = std::move(inferred.types),
                  .wanted = {true},
                  .names = {},
                  .bodies = {},
                  .provenance = c.node().provenance};
  EvalContext step(node, c.graph(), {operands.begin(), operands.end()}, c.seed(), {});
  evaluate(step);
  return step.take_results()[0];
}

Tensor as_dtype(const Tensor& t, DType dtype, const EvalContext& c) {
  return t.dtype() == dtype ? t : run_primitive(Op(op::Cast{dtype}), std::array{t}, c);
}

std::vector<Tensor> eval_chain(const std::vector<RegionStep>& chain, std::span<const Tensor> inputs,
                               const EvalContext& c) {
  std::vector<Tensor> held;
  for (const Tensor& t : inputs) held.push_back(as_dtype(t, widened(t.dtype()), c));
  return run_chain<Tensor>(chain, held, [&](const Op& op, const std::vector<Tensor>& xs) {
    return run_primitive(op, xs, c);
  });
}

}  // namespace

void eval(const op::ElementwiseRegion& op, EvalContext& c) {
  std::vector<Tensor> inputs;
  for (std::size_t k = 0; k < c.operands(); ++k) inputs.push_back(c.tensor(k));
  const std::vector<Tensor> steps = eval_chain(op.chain, inputs, c);
  const std::vector<std::int64_t> outputs = region_outputs(op);
  for (std::size_t r = 0; r < outputs.size(); ++r) {
    if (!c.wanted(r)) continue;
    const Tensor& step = steps[static_cast<std::size_t>(outputs[r])];
    c.give(r, as_dtype(step, c.result_type(r).dtype, c));
  }
}

std::vector<Value> expand(const op::ElementwiseRegion& op, const ExpandContext& c) {
  const std::vector<Value> steps = run_chain<Value>(
      op.chain, c.operands, [&](const Op& primitive, const std::vector<Value>& xs) {
        return c.graph.add_node(primitive, xs)[0];
      });
  std::vector<Value> results;
  for (const std::int64_t j : region_outputs(op)) {
    const bool wanted = c.wanted(results.size());
    results.push_back(wanted ? steps[static_cast<std::size_t>(j)] : Value());
  }
  return results;
}

// out = concat_0(chain(planes[0]), …): along axis 0, rows simply follow each other.
void eval(const op::BatchElementwiseRegion& op, EvalContext& c) {
  const Type& type = c.result_type(0);
  const auto each = static_cast<std::size_t>(op.operands_per_plane);
  std::vector<std::byte> bytes;
  for (std::size_t k = 0; k < c.operands(); k += each) {
    std::vector<Tensor> operands;
    for (std::size_t i = 0; i < each; ++i) operands.push_back(c.tensor(k + i));
    const Tensor plane = eval_chain(op.chain, operands, c).back();
    const Tensor rows = as_dtype(plane, type.dtype, c).contiguous();
    bytes.insert(bytes.end(), rows.bytes().begin(), rows.bytes().end());
  }
  c.give(0, Tensor::from_bytes(type, bytes));
}

std::vector<Value> expand(const op::BatchElementwiseRegion& op, const ExpandContext& c) {
  const std::vector<RegionStep> chain = in_registers(op.chain);
  const auto each = static_cast<std::size_t>(op.operands_per_plane);
  std::vector<Value> planes;
  for (std::size_t k = 0; k < c.operands.size(); k += each) {
    const auto operands = std::span(c.operands).subspan(k, each);
    planes.push_back(elementwise_region(operands, {.chain = chain})[0]);
  }
  return {concat(planes, {.axis = 0})};
}

void eval(const op::TransformRegion& op, EvalContext& c) {
  std::vector<Tensor> inputs;
  for (std::size_t k = 0; k < c.operands(); ++k) {
    inputs.push_back(as_dtype(c.tensor(k), widened(c.dtype(k)), c));
  }
  const std::vector<Tensor> steps = run_chain<Tensor>(
      op.steps, inputs,
      [&](const Op& step, const std::vector<Tensor>& xs) { return run_primitive(step, xs, c); });
  c.give(0, as_dtype(steps.back(), c.result_type(0).dtype, c));
}

std::vector<Value> expand(const op::TransformRegion& op, const ExpandContext& c) {
  return {run_chain<Value>(op.steps, c.operands, [&](const Op& step, const std::vector<Value>& xs) {
            return c.graph.add_node(step, xs)[0];
          }).back()};
}

}  // namespace ricci::rule
