// Regions: each step runs as the primitive it stands for, with f16 and bf16 held in f32.
#include "ricci/op/region.h"

#include "ricci/build/build.h"

#include "op/region_chain.h"
#include "rule/eval_rules.h"
#include "rule/expand_rules.h"

namespace ricci::rule {
namespace {

/// The dtype a value of `dtype` has inside a region.
DType register_dtype(DType dtype) {
  return dtype == DType::F16 || dtype == DType::BF16 ? DType::F32 : dtype;
}

// s_j = f_j(…) for every step. `apply(op, operands)` runs a primitive; inputs are held in registers
// already. A cast to a narrow float rounds before it is held again.
template <class T, class Apply>
std::vector<T> run_chain(const std::vector<RegionStep>& chain, std::span<const T> inputs,
                         Apply&& apply) {
  std::vector<T> steps;
  for (const RegionStep& step : chain) {
    std::vector<T> operands;
    for (const RegionOperand& o : step.operands) {
      const auto at = static_cast<std::size_t>(o.index);
      operands.push_back(o.from == RegionOperand::From::Input ? inputs[at] : steps[at]);
    }
    T result = apply(step_op(step), operands);
    const DType held = register_dtype(result.dtype());
    if (held != result.dtype()) {
      const std::vector<T> narrow{result};
      result = apply(Op(op::Cast{held}), narrow);
    }
    steps.push_back(std::move(result));
  }
  return steps;
}

// Runs one primitive's reference kernel on behalf of a node.
Tensor run_primitive(const Op& op, std::span<const Tensor> operands, const EvalContext& c) {
  std::vector<Type> types;
  for (const Tensor& t : operands) types.push_back(t.type());
  Inferred inferred = infer_types(op, types, {}, &c.graph().registry());
  const Node node{.op = op,
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
  for (const Tensor& t : inputs) held.push_back(as_dtype(t, register_dtype(t.dtype()), c));
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

}  // namespace ricci::rule
