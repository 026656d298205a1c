#include <algorithm>

#include <fmt/format.h>

#include "ricci/compiler/rewrite/cleanup.h"
#include "ricci/compiler/rewrite/precision.h"
#include "ricci/ir/verify.h"
#include "ricci/model/autodiff.h"
#include "ricci/model/training.h"
#include "ricci/op/ops.h"

#include "model/curvature.h"
#include "model/loss_scaling.h"
#include "model/training_checks.h"
#include "model/update_step.h"
#include "support/float_environment.h"
#include "type/small_dtype.h"

namespace ricci {
namespace {

// Appends to the graph of loss and gradients.
class Builder {
 public:
  Builder(Graph& graph, const TrainingOptions& options, const TrainedParams& trained,
          std::optional<LossScale> scale)
      : graph_(graph), options_(options), trained_(trained), scale_(std::move(scale)) {}

  /// `scaled` names the params of the loss's scale, where there is one; `products` are those with
  /// the Hessian by the params whose optimisers need its diagonal.
  TrainingGraph build(const ScaledGradient* scaled, const Transformed* products) {
    const std::vector<Value> given = graph_.output_values();
    made_.aux = given.size() - 1 - trained_.params.size();
    const auto first_gradient = given.begin() + static_cast<std::ptrdiff_t>(1 + made_.aux);
    outputs_.assign(given.begin(), first_gradient);
    std::vector<Value> gradients = taken_gradients({first_gradient, given.end()});
    if (options_.accumulate > 1) gradients = accumulated(gradients);
    gradients = clipped(std::move(gradients));
    move(gradients, products);
    for (const UpdatedParam& u : options_.updates) {
      replace(u.param, given[u.output], param(u.param));
      made_.updated.push_back(u.param);
    }
    if (scaled != nullptr) {
      made_.loss_scale = scaled->scale;
      made_.good_steps = scaled->good_steps;
      replace(scaled->scale, scale_->next_scale());
      replace(scaled->good_steps, scale_->next_good_steps());
    }
    keep_accumulated();
    graph_.set_outputs(outputs_);
    return std::move(made_);
  }

 private:
  [[nodiscard]] Value param(const std::string& name) const {
    return graph_.value({graph_.find_or_throw(name), 0});
  }
  [[nodiscard]] Value whole_number(std::int64_t x) const {
    return graph_.constant(Tensor::splat(i32({}), x));
  }

  // `next` becomes an output in the place of a param.
  void replace(const std::string& param, Value next) {
    made_.donations.push_back({outputs_.size(), param});
    outputs_.push_back(next);
  }
  // The same for what a step that is skipped leaves as it is.
  void replace(const std::string& param, Value next, Value before) {
    replace(param, scale_ ? scale_->taken(next, before) : next);
  }

  // Without the scale of the loss; by their norm it is decided whether the step is taken.
  std::vector<Value> taken_gradients(std::vector<Value> gradients) {
    if (!scale_) return gradients;
    gradients = scale_->unscaled(gradients);
    whole_norm_ = global_norm(gradients);
    scale_->decide(whole_norm_);
    return gradients;
  }

  // The mean of this step's gradients and of those before it that no move has been made by.
  std::vector<Value> accumulated(const std::vector<Value>& gradients) {
    made_.accumulated_steps = graph_.unique_name("optimizer.accumulated");
    const Value before = graph_.param(made_.accumulated_steps, i32({}));
    const Value with_this = before + whole_number(1);
    is_last_ = ge(with_this, whole_number(options_.accumulate));
    steps_ = {before, with_this};
    std::vector<Value> means;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const Type type = state_type(gradients[i].type());
      const std::string name = graph_.unique_name(trained_.params[i].name + ".accumulated");
      made_.accumulated.push_back(name);
      const Value sum = graph_.param(name, type);
      sums_.push_back({sum, sum + cast_to(gradients[i], type.dtype)});
      means.push_back(sums_.back().after / cast_to(with_this, type.dtype));
    }
    whole_norm_ = {};
    return means;
  }

  // Behind all other outputs: sums begin anew when a move has been made by them.
  void keep_accumulated() {
    if (made_.accumulated_steps.empty()) return;
    replace(made_.accumulated_steps, where(is_last_, whole_number(0), steps_.after), steps_.before);
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      const auto& [before, after] = sums_[i];
      replace(made_.accumulated[i], where(is_last_, scalar_like(after, 0), after), before);
    }
  }

  std::vector<Value> clipped(std::vector<Value> gradients) {
    if (options_.clip_value) {
      gradients = clipped_by_value(gradients, *options_.clip_value);
      whole_norm_ = {};
    }
    if (!options_.clip_norm) return gradients;
    const Value norm = whole_norm_.valid() ? whole_norm_ : global_norm(gradients);
    outputs_.push_back(norm);
    made_.has_norm = true;
    return clipped_by_norm(gradients, norm, *options_.clip_norm);
  }

  // Declares what a move is made of, apart from the Hessian's diagonal.
  MoveValues declared(const std::vector<Value>& gradients) {
    MoveValues before;
    made_.count = graph_.unique_name("optimizer.steps");
    before.count = graph_.param(made_.count, i32({}));
    if (options_.learning_rate_input) {
      made_.learning_rate = graph_.unique_name("learning_rate");
      before.learning_rate = graph_.input(made_.learning_rate, f32({}));
    }
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const auto& [name, rule] = trained_.params[i];
      MoveValues::Param p{param(name), gradients[i], {}, {}};
      TrainingGraph::Trained t{name, {}};
      t.optimizer = trained_.rules[rule].optimizer;
      for (const StateSlot& slot :
           param_state(trained_.rules[rule], p.value.type(), options_).slots) {
        t.slots.emplace_back(slot.name);
        t.state.push_back(graph_.unique_name(name + "." + t.slots.back()));
        if (slot.start == SlotStart::Param) t.copies.push_back(t.state.back());
        p.state.push_back(graph_.param(t.state.back(), slot.type));
      }
      before.params.push_back(std::move(p));
      made_.trained.push_back(std::move(t));
    }
    return before;
  }

  // One estimate for all params that need one, at the steps the first of their optimisers asks for.
  void estimate_curvature(MoveValues& before, const Transformed& products) {
    std::vector<std::string> names;
    std::vector<MoveValues::Param*> params;
    Value flag;
    for (std::size_t i = 0; i < trained_.params.size(); ++i) {
      const auto& [name, rule] = trained_.params[i];
      const auto interval = curvature_interval(trained_.rules[rule].optimizer);
      if (!interval) continue;
      const Value now = eq(rem(before.count, whole_number(*interval)), whole_number(0));
      flag = flag.valid() ? logical_or(flag, now) : now;
      names.push_back(name);
      params.push_back(&before.params[i]);
    }
    if (is_last_.valid()) flag = logical_and(flag, is_last_);
    const std::vector<Value> diagonals =
        hessian_diagonals(graph_, products, names, flag, before.count);
    for (std::size_t i = 0; i < params.size(); ++i) params[i]->curvature = diagonals[i];
  }

  void move(const std::vector<Value>& gradients, const Transformed* products) {
    MoveValues before = declared(gradients);
    if (products != nullptr) estimate_curvature(before, *products);
    const bool sometimes = is_last_.valid();
    const Value flag = sometimes && scale_ ? logical_and(is_last_, scale_->is_taken()) : is_last_;
    const MoveValues after =
        sometimes ? moved_if(flag, before, trained_, options_) : moved(before, trained_, options_);
    const auto keep = [&](const std::string& name, Value next, Value old) {
      sometimes ? replace(name, next) : replace(name, next, old);
    };
    keep(made_.count, after.count, before.count);
    for (std::size_t i = 0; i < after.params.size(); ++i) {
      const TrainingGraph::Trained& t = made_.trained[i];
      keep(t.param, after.params[i].value, before.params[i].value);
      for (std::size_t k = 0; k < t.state.size(); ++k) {
        keep(t.state[k], after.params[i].state[k], before.params[i].state[k]);
      }
    }
  }

  struct Change {
    Value before;
    Value after;
  };

  Graph& graph_;
  const TrainingOptions& options_;
  const TrainedParams& trained_;
  std::optional<LossScale> scale_;
  Value whole_norm_;  // of the gradients as they are now, where it is known
  Value is_last_;     // of those that are accumulated for one move; invalid where none are
  Change steps_;      // accumulated for the next move
  std::vector<Change> sums_;
  std::vector<Value> outputs_;
  TrainingGraph made_;
};

// The model in its precision.
GraphModule differentiated(const GraphModule& module, const TrainingOptions& options) {
  if (options.precision.keeps_all()) return module;
  const GraphModule lowered = module.lower_for_autodiff().module;
  return GraphModule::from_mir(auto_mixed_precision(lowered.graph(), options.precision).graph);
}

// Products with the Hessian by params whose optimisers need its diagonal; nothing without such.
std::optional<Transformed> curvature_products(const GraphModule& model,
                                              const TrainedParams& trained) {
  std::vector<ValueRef> wrt;
  for (const TrainedParam& p : trained.params) {
    if (curvature_interval(trained.rules[p.rule].optimizer)) wrt.emplace_back(p.name);
  }
  if (wrt.empty()) return std::nullopt;
  return hvp_module(model, wrt, {.grad = {.zero_missing_wrt = true}});
}

TrainingGraph finished(const Graph& graph, Builder builder, const ScaledGradient* scaled,
                       const std::optional<Transformed>& products) {
  TrainingGraph made = builder.build(scaled, products ? &*products : nullptr);
  made.graph = dead_code_elimination(graph).graph;
  return made;
}

}  // namespace

TrainingGraph make_training_graph(const GraphModule& module, const TrainingOptions& options) {
  const DefaultFloatEnvironment floats;
  verify(module.graph());
  const TrainedParams trained = trained_params(module.graph(), options);
  require_sense(module.graph(), options);
  if (options.loss_scaling) require_sense(*options.loss_scaling);
  const GraphModule model = differentiated(module, options);
  const std::optional<Transformed> products = curvature_products(model, trained);
  const std::vector<std::string> names = trained.names();
  // The seed is one, or an input for the loss's scale.
  Transformed gradient = grad_with_loss_module(
      model, {names.begin(), names.end()},
      {.zero_missing_wrt = true, .internal_seed = !options.loss_scaling.has_value()});
  if (!options.loss_scaling) {
    return finished(gradient.graph, Builder(gradient.graph, options, trained, {}), nullptr,
                    products);
  }
  ScaledGradient scaled = with_scaled_seed(gradient, *options.loss_scaling);
  LossScale scale(scaled.graph, scaled, *options.loss_scaling);
  return finished(scaled.graph, Builder(scaled.graph, options, trained, std::move(scale)), &scaled,
                  products);
}

}  // namespace ricci
