#include "model/loss_scaling.h"

#include <cmath>

#include <fmt/format.h>

#include "ricci/ir/rebuild.h"
#include "ricci/op/leaf.h"
#include "ricci/support/error.h"

namespace ricci {

Value scale_in_force(Value kept, const LossScaling& scaling) {
  Graph& graph = kept.graph();
  const Value zero = filled(graph, f32({}), 0);
  return where(eq(kept, zero), filled(graph, f32({}), scaling.initial), kept);
}

ScaledGradient with_scaled_seed(const Transformed& made_gradient, const LossScaling& scaling) {
  const Graph& gradient = made_gradient.graph;
  // The model may have an input of the conventional name itself.
  const std::string& seed = made_gradient.names.at("d_output");
  ScaledGradient made{Graph(gradient.name(), gradient.registry()),
                      gradient.unique_name("loss_scale"),
                      gradient.unique_name("loss_scale.good_steps")};
  Graph& graph = made.graph;
  graph.reserve_keys(gradient.next_key());
  const Value scale = scale_in_force(graph.param(made.scale, f32({})), scaling);
  (void)graph.param(made.good_steps, i32({}));
  std::vector<Value> inputs;
  for (const NodeId id : gradient.inputs()) {
    const Node& node = gradient.node(id);
    const auto* input = node.op.as<op::Input>();
    inputs.push_back(input->name == seed ? cast_to(scale, node.types[0].dtype)
                                         : graph.input(input->name, node.types[0], input->role));
  }
  graph.set_outputs(inline_subgraph(gradient, inputs, graph));
  return made;
}

LossScale::LossScale(Graph& graph, const ScaledGradient& names, const LossScaling& scaling)
    : graph_(&graph), scaling_(scaling) {
  const auto param = [&](const std::string& name) {
    return graph.value({graph.find_or_throw(name), 0});
  };
  scale_ = scale_in_force(param(names.scale), scaling);
  good_ = param(names.good_steps) + graph.constant(Tensor::of<std::int32_t>({}, {1}));
}

std::vector<Value> LossScale::unscaled(const std::vector<Value>& gradients) const {
  const Value inverse = number(1) / scale_;
  std::vector<Value> out;
  for (const Value& g : gradients) {
    const DType wide = g.dtype() == DType::F64 ? DType::F64 : DType::F32;
    out.push_back(cast_to(g, wide) * cast_to(inverse, wide));
  }
  return out;
}

void LossScale::decide(Value norm) { is_taken_ = is_finite(norm); }

Value LossScale::taken(Value next, Value before) const { return where(is_taken_, next, before); }

Value LossScale::next_scale() const {
  const Value interval = cast_to(number(static_cast<double>(scaling_.interval)), DType::I32);
  // Where gradients are small the scale grows to the end of f32, from where no step leads back.
  const Value larger = scale_ * scaling_.growth;
  const Value grown = where(logical_and(ge(good_, interval), is_finite(larger)), larger, scale_);
  return taken(grown, max(scale_ * scaling_.backoff, 1.0));
}

Value LossScale::next_good_steps() const {
  const Value interval = cast_to(number(static_cast<double>(scaling_.interval)), DType::I32);
  const Value none = good_ - good_;
  return taken(where(ge(good_, interval), none, good_), none);
}

void require_sense(const LossScaling& scaling) {
  const auto require = [](bool holds, std::string_view name, double value, std::string_view what) {
    if (holds && std::isfinite(value)) return;
    throw UserError(ErrorCode::Attr,
                    fmt::format("loss_scaling.{} is {}, not {}", name, value, what));
  };
  require(scaling.initial >= 1, "initial", scaling.initial, "a number from 1 on");
  require(scaling.growth >= 1, "growth", scaling.growth, "a number from 1 on");
  require(scaling.backoff > 0 && scaling.backoff <= 1, "backoff", scaling.backoff,
          "a number in (0, 1]");
  require(scaling.interval >= 1 && scaling.interval <= (1 << 24), "interval",
          static_cast<double>(scaling.interval), "a count from 1 to 16777216");
}

}  // namespace ricci
