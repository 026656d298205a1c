#include "training.h"

#include <cmath>

namespace gpt {

using namespace ricci;  // NOLINT: examples read better without prefixes

namespace {

constexpr double Beta1 = 0.9;
constexpr double Beta2 = 0.99;
constexpr double Epsilon = 1e-8;
constexpr double WeightDecay = 0.01;

std::vector<std::string> names_of_params(const Graph& graph) {
  std::vector<std::string> names;
  for (const NodeId id : graph.params()) names.push_back(graph.node(id).op.as<op::Param>()->name);
  return names;
}

// 1 - βᵗ, as -expm1(t log β): in f32 the power is too close to one to be subtracted.
Value correction(Value step, double beta) { return -expm1(step * std::log(beta)); }

}  // namespace

StepGraph make_step(const Graph& loss) {
  const std::vector<std::string> names = names_of_params(loss);
  Graph g = value_and_grad(loss, std::vector<ValueRef>(names.begin(), names.end())).graph;
  const std::vector<Value> loss_and_gradients = g.output_values();

  const Value rate = g.input("learning_rate", f32({}));
  const Value step = g.param("step", f32({})) + 1.0;
  const Value step_size = rate / correction(step, Beta1);
  const Value second_root = sqrt(correction(step, Beta2));

  std::vector<Value> outputs = {loss_and_gradients[0], step};
  std::vector<Donation> donations = {{1, "step"}};
  const auto replace = [&](const std::string& name, Value next) {
    donations.push_back({outputs.size(), name});
    outputs.push_back(next);
  };
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Value p = g.value({g.find_or_throw(names[i]), 0});
    const Value gradient = loss_and_gradients[i + 1];
    const Value first = g.param("first." + names[i], p.type()) * Beta1 + gradient * (1 - Beta1);
    const Value second =
        g.param("second." + names[i], p.type()) * Beta2 + square(gradient) * (1 - Beta2);
    const Value change = step_size * first / (sqrt(second) / second_root + Epsilon);
    replace(names[i], p * (1.0 - rate * WeightDecay) - change);
    replace("first." + names[i], first);
    replace("second." + names[i], second);
  }
  g.set_outputs(outputs);
  return {std::move(g), std::move(donations)};
}

Training::Training(const Graph& loss, const Feeds& params, const Device& device)
    : Training(make_step(loss), params, device) {}

Training::Training(const StepGraph& step, const Feeds& params, const Device& device)
    : compiled_(compile(step.graph, device, {.donations = step.donations})),
      context_(compiled_.make_context()),
      loss_(Tensor::zeros(f32({}))) {
  outputs_.assign(compiled_.outputs().size(), nullptr);
  outputs_[0] = loss_.mutable_data();
  for (const Port& port : compiled_.inputs()) {
    inputs_.push_back(nullptr);
    if (!port.is_param) continue;
    Tensor& value = kept_[port.name];
    value = Tensor::zeros(port.type);
    if (const auto given = params.find(port.name); given != params.end()) {
      value = Tensor::from_numbers<double>(port.type, given->second.numbers<double>());
      param_names_.push_back(port.name);
    }
    inputs_.back() = value.mutable_data();
  }
  for (const Donation& d : step.donations) outputs_[d.output] = kept_.at(d.input).mutable_data();
}

double Training::step(const Batch& batch, double learning_rate) {
  const auto rate = static_cast<float>(learning_rate);
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const std::string& name = compiled_.inputs()[i].name;
    if (name == "ids") inputs_[i] = batch.ids.data();
    if (name == "labels") inputs_[i] = batch.labels.data();
    if (name == "learning_rate") inputs_[i] = &rate;
  }
  compiled_.run(context_, inputs_, outputs_);
  return loss_.item();
}

Feeds Training::params() const {
  Feeds copies;
  for (const std::string& name : param_names_) {
    const Tensor& value = kept_.at(name);
    copies[name] = Tensor::from_bytes(value.type(), value.bytes());
  }
  return copies;
}

}  // namespace gpt
