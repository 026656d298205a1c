// Masks over the inputs and outputs of bodies, which the rules of control flow compute with.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "ricci/compiler/rule/body_transforms.h"
#include "ricci/op/leaf.h"

namespace ricci::rule {

[[nodiscard]] inline bool any(const std::vector<bool>& mask) {
  return std::ranges::any_of(mask, [](bool b) { return b; });
}

/// Which types have a derivative.
[[nodiscard]] inline std::vector<bool> derivative_mask(std::span<const Type> types) {
  std::vector<bool> out;
  for (const Type& t : types) out.push_back(is_differentiable(t.dtype));
  return out;
}

[[nodiscard]] inline std::vector<Type> input_types(const Graph& body) {
  std::vector<Type> out;
  for (const NodeId id : body.inputs()) out.push_back(body.node(id).types[0]);
  return out;
}
[[nodiscard]] inline std::vector<Type> output_types(const Graph& body) {
  std::vector<Type> out;
  for (const ValueId v : body.outputs()) out.push_back(body.type(v));
  return out;
}

/// Which of the inputs without a role something in the body reads.
[[nodiscard]] inline std::vector<bool> read_inputs(const Graph& body) {
  const std::vector<std::size_t> uses = body.use_counts();
  std::vector<bool> out;
  for (const NodeId id : body.inputs()) {
    const op::InputRole& role = body.node(id).op.as<op::Input>()->role;
    if (role.kind == op::InputRole::Kind::None) out.push_back(uses[id] > 0);
  }
  return out;
}

/// Grows `inputs` until what holds for them holds for the carries they become: `step(inputs)` says
/// for which outputs of a loop's body a property holds when it holds for those inputs, and output k
/// is the next value of input k for the first `carries` of them.
template <class Step>
[[nodiscard]] std::vector<bool> loop_closure(std::vector<bool> inputs, std::size_t carries,
                                             Step&& step) {
  for (bool grew = true; grew;) {
    grew = false;
    const std::vector<bool> outputs = step(inputs);
    for (std::size_t k = 0; k < carries; ++k) {
      if (!outputs[k] || inputs[k]) continue;
      inputs[k] = true;
      grew = true;
    }
  }
  return inputs;
}

/// The values a mask picks.
[[nodiscard]] inline std::vector<Value> picked(std::span<const Value> values,
                                               const std::vector<bool>& mask) {
  std::vector<Value> out;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (mask[i]) out.push_back(values[i]);
  }
  return out;
}

/// The inverse: values put back where the mask picked them, invalid elsewhere.
[[nodiscard]] inline std::vector<Value> scattered(std::span<const Value> picked_values,
                                                  const std::vector<bool>& mask) {
  std::vector<Value> out(mask.size());
  for (std::size_t i = 0, next = 0; i < mask.size(); ++i) {
    if (mask[i]) out[i] = picked_values[next++];
  }
  return out;
}

}  // namespace ricci::rule
