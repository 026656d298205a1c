#include <algorithm>
#include <cmath>
#include <type_traits>

#include <fmt/format.h>

#include "ricci/compiler/rewrite/cleanup.h"
#include "ricci/model/autodiff.h"
#include "ricci/model/training.h"
#include "ricci/op/ops.h"

#include "model/loss_scaling.h"
#include "support/float_environment.h"

namespace ricci {
namespace {

std::vector<std::string> param_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const NodeId id : graph.params()) names.push_back(graph.node(id).op.as<op::Param>()->name);
  return names;
}

void require_params(const Graph& graph, const std::vector<std::string>& names) {
  if (names.empty()) {
    throw UserError(ErrorCode::Name, "'" + graph.name() + "' has no params to train",
                    "make what is to be trained a param");
  }
  for (const std::string& name : names) {
    const auto* param = graph.node(graph.find_or_throw(name)).op.as<op::Param>();
    if (param == nullptr) {
      throw UserError(ErrorCode::Name, "'" + name + "' is an input: only params are trained",
                      "make it a param");
    }
    if (std::ranges::count(names, name) > 1) {
      throw UserError(ErrorCode::Name, "'" + name + "' is named twice among the trained params");
    }
    if (!is_float(param->type.dtype)) {
      throw UserError(ErrorCode::DType,
                      fmt::format("'{}' is {}: only params of a real floating dtype can be trained",
                                  name, param->type.to_string()),
                      "name the params to train in TrainingOptions::params");
    }
  }
}

void require_updates(const Graph& graph, const TrainingOptions& options) {
  for (const UpdatedParam& u : options.updates) {
    const auto* param = graph.node(graph.find_or_throw(u.param)).op.as<op::Param>();
    if (param == nullptr) {
      throw UserError(ErrorCode::Name, "'" + u.param + "' is an input: only params are updated",
                      "make it a param");
    }
    const auto named = std::ranges::count(options.updates, u.param, &UpdatedParam::param);
    if (named > 1 || std::ranges::count(options.params, u.param) > 0) {
      throw UserError(ErrorCode::Name, "'" + u.param + "' is updated in two ways",
                      "a param is trained, or follows one output");
    }
    if (u.output == 0 || u.output >= graph.outputs().size()) {
      throw UserError(ErrorCode::Attr,
                      fmt::format("'{}' is to follow output {}, but '{}' has {} outputs, the first "
                                  "of which is the loss",
                                  u.param, u.output, graph.name(), graph.outputs().size()));
    }
    const Type& type = graph.type(graph.outputs()[u.output]);
    if (type != param->type) {
      throw UserError(ErrorCode::Shape,
                      fmt::format("'{}' is {}, but output {} is {}", u.param,
                                  param->type.to_string(), u.output, type.to_string()));
    }
  }
}

void require_scalar_loss(const Graph& graph) {
  if (graph.outputs().empty()) return;  // the gradient will say so
  const Type& loss = graph.type(graph.outputs()[0]);
  if (loss.rank() == 0) return;
  throw UserError(ErrorCode::Shape,
                  fmt::format("the loss, output 0 of '{}', is {} and not one number", graph.name(),
                              loss.to_string()),
                  "reduce it, to its mean for example");
}

// What a number of the options must be, in words for the user.
void require_number(double value, bool holds, std::string_view name, std::string_view what) {
  if (std::isfinite(value) && holds) return;
  throw UserError(ErrorCode::Attr, fmt::format("{} is {}, not {}", name, value, what));
}

void require_sense(const TrainingOptions& options) {
  const auto not_negative = [](double x, std::string_view name) {
    require_number(x, x >= 0, name, "a number from 0 on");
  };
  const auto fraction = [](double x, std::string_view name) {
    require_number(x, x >= 0 && x < 1, name, "a number in [0, 1)");
  };
  if (options.clip_norm) {
    require_number(*options.clip_norm, *options.clip_norm > 0, "clip_norm", "a positive number");
  }
  std::visit(
      [&]<class O>(const O& o) {
        not_negative(o.learning_rate, "learning_rate");
        not_negative(o.weight_decay, "weight_decay");
        if constexpr (std::is_same_v<O, Sgd>) {
          fraction(o.momentum, "momentum");
        } else {
          fraction(o.beta1, "beta1");
          fraction(o.beta2, "beta2");
          not_negative(o.epsilon, "epsilon");
        }
      },
      options.optimizer);
}

// Appends to the graph of loss and gradients.
class Builder {
 public:
  Builder(Graph& graph, const TrainingOptions& options, std::optional<LossScale> scale)
      : graph_(graph), options_(options), scale_(std::move(scale)) {}

  /// `scaled` names the params of the loss's scale, where there is one.
  TrainingGraph build(const std::vector<std::string>& trained, const ScaledGradient* scaled) {
    const std::vector<Value> given = graph_.output_values();
    made_.aux = given.size() - 1 - trained.size();
    const auto first_gradient = given.begin() + static_cast<std::ptrdiff_t>(1 + made_.aux);
    outputs_.assign(given.begin(), first_gradient);
    std::vector<Value> gradients(first_gradient, given.end());
    if (scale_) gradients = scale_->unscaled(gradients);
    const Value norm = options_.clip_norm || scale_ ? global_norm(gradients) : Value{};
    if (scale_) scale_->decide(norm);
    if (options_.clip_norm) {
      gradients = clipped_by_norm(gradients, norm, *options_.clip_norm);
      outputs_.push_back(norm);
      made_.has_norm = true;
    }
    const OptimizerStep step = begin_step();
    for (std::size_t i = 0; i < trained.size(); ++i) update(trained[i], gradients[i], step);
    for (const UpdatedParam& u : options_.updates) {
      replace(u.param, given[u.output], graph_.value({graph_.find_or_throw(u.param), 0}));
      made_.updated.push_back(u.param);
    }
    if (scaled != nullptr) {
      made_.loss_scale = scaled->scale;
      made_.good_steps = scaled->good_steps;
      replace(scaled->scale, scale_->next_scale());
      replace(scaled->good_steps, scale_->next_good_steps());
    }
    graph_.set_outputs(outputs_);
    return std::move(made_);
  }

 private:
  // `next` becomes an output in the place of a param.
  void replace(const std::string& param, Value next) {
    made_.donations.push_back({outputs_.size(), param});
    outputs_.push_back(next);
  }
  // The same for what a step that is skipped leaves as it is.
  void replace(const std::string& param, Value next, Value before) {
    replace(param, scale_ ? scale_->taken(next, before) : next);
  }

  OptimizerStep begin_step() {
    made_.count = graph_.unique_name("optimizer.steps");
    const Value before = graph_.param(made_.count, i32({}));
    const Value count = before + graph_.constant(Tensor::of<std::int32_t>({}, {1}));
    replace(made_.count, count, before);
    Value rate;
    if (options_.learning_rate_input) {
      made_.learning_rate = graph_.unique_name("learning_rate");
      rate = graph_.input(made_.learning_rate, f32({}));
    } else {
      rate = filled(graph_, f32({}), ricci::learning_rate(options_.optimizer));
    }
    return next_step(options_.optimizer, count, rate);
  }

  void update(const std::string& name, Value gradient, const OptimizerStep& step) {
    const ProvenanceScope scope(graph_, {"optimizer", {}, "update of '" + name + "'"});
    OptimizerUpdate before{graph_.value({graph_.find_or_throw(name), 0}), {}};
    TrainingGraph::Trained trained{name, {}};
    for (const std::string_view state : state_names(options_.optimizer)) {
      trained.state.push_back(graph_.unique_name(name + "." + std::string(state)));
      before.state.push_back(graph_.param(trained.state.back(), state_type(before.param.type())));
    }
    const OptimizerUpdate after = updated(options_.optimizer, before, gradient, step);
    replace(name, after.param, before.param);
    for (std::size_t k = 0; k < after.state.size(); ++k) {
      replace(trained.state[k], after.state[k], before.state[k]);
    }
    made_.trained.push_back(std::move(trained));
  }

  Graph& graph_;
  const TrainingOptions& options_;
  std::optional<LossScale> scale_;
  std::vector<Value> outputs_;
  TrainingGraph made_;
};

// Loss and gradients of the model in its precision. The seed is one, or an input for the loss's
// scale.
Graph gradient_graph(const GraphModule& module, const std::vector<std::string>& trained,
                     const TrainingOptions& options) {
  const GradOptions how = {.zero_missing_wrt = true,
                           .internal_seed = !options.loss_scaling.has_value()};
  const std::vector<ValueRef> wrt(trained.begin(), trained.end());
  if (options.precision.keeps_all()) return grad_with_loss_module(module, wrt, how).graph;
  const GraphModule lowered = module.lower_for_autodiff().module;
  const Graph mixed = auto_mixed_precision(lowered.graph(), options.precision).graph;
  return grad_with_loss_module(GraphModule::from_mir(mixed), wrt, how).graph;
}

TrainingGraph finished(const Graph& graph, Builder builder, const std::vector<std::string>& trained,
                       const ScaledGradient* scaled) {
  TrainingGraph made = builder.build(trained, scaled);
  made.graph = dead_code_elimination(graph).graph;
  return made;
}

}  // namespace

TrainingGraph make_training_graph(const GraphModule& module, const TrainingOptions& options) {
  const DefaultFloatEnvironment floats;
  std::vector<std::string> trained = options.params;
  if (trained.empty()) {
    trained = param_names(module.graph());
    std::erase_if(trained, [&](const std::string& name) {
      return std::ranges::count(options.updates, name, &UpdatedParam::param) > 0;
    });
  }
  require_updates(module.graph(), options);
  require_params(module.graph(), trained);
  require_sense(options);
  require_scalar_loss(module.graph());
  if (options.loss_scaling) require_sense(*options.loss_scaling);
  Graph gradient = gradient_graph(module, trained, options);
  if (!options.loss_scaling)
    return finished(gradient, Builder(gradient, options, {}), trained, nullptr);
  ScaledGradient scaled = with_scaled_seed(gradient, *options.loss_scaling);
  LossScale scale(scaled.graph, scaled, *options.loss_scaling);
  return finished(scaled.graph, Builder(scaled.graph, options, std::move(scale)), trained, &scaled);
}

ObjectFile compile_object(const TrainingGraph& training, ObjectOptions options) {
  const Graph& graph = training.graph;
  options.donations = training.donations;
  options.output_names = {"loss"};
  for (std::size_t k = 0; k < training.aux; ++k) {
    const ValueId value = graph.outputs()[1 + k];
    const std::vector<std::string>& names = graph.node(value.node).names;
    const bool named = value.result < names.size() && !names[value.result].empty();
    options.output_names.push_back(named ? names[value.result] : "aux" + std::to_string(k));
  }
  if (training.has_norm) options.output_names.emplace_back("gradient_norm");
  const auto note = [&](const std::string& param, const char* text) {
    options.notes.try_emplace(param, text);
  };
  note(training.count, "counts steps; zero before the first");
  for (const TrainingGraph::Trained& t : training.trained) {
    note(t.param, "trained");
    for (const std::string& state : t.state)
      note(state, "of the optimiser; zeros before the first step");
  }
  for (const std::string& param : training.updated) note(param, "follows an output of the model");
  if (!training.learning_rate.empty()) note(training.learning_rate, "for this step");
  if (!training.loss_scale.empty()) {
    note(training.loss_scale, "scale of the loss; zero before the first step");
    note(training.good_steps, "steps it has been good for; zero before the first");
  }
  return compile_object(graph, options);
}

}  // namespace ricci
