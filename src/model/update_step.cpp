#include "model/update_step.h"

#include <algorithm>

#include "type/small_dtype.h"

namespace ricci {
namespace {

// f64 where a param is: then the numbers of a step have no less.
DType scalar_dtype(const MoveValues& values) {
  const bool wide = std::ranges::any_of(
      values.params, [](const MoveValues::Param& p) { return p.value.dtype() == DType::F64; });
  return wide ? DType::F64 : DType::F32;
}

OptimizerStep step_of(const UpdateRule& rule, const MoveValues& before, Value count) {
  const DType in = scalar_dtype(before);
  Value rate = before.learning_rate.valid()
                   ? cast_to(before.learning_rate, in)
                   : rate_schedule(rule.optimizer).at(cast_to(before.count, in));
  if (rule.learning_rate_factor != 1) rate = rate * rule.learning_rate_factor;
  return next_step(rule.optimizer, count, rate);
}

MoveValues::Param moved_param(const MoveValues::Param& before, const UpdateRule& rule,
                              const OptimizerStep& step, const TrainingOptions& options) {
  const ParamState kept = param_state(rule, before.value.type(), options);
  const DType wide = widened(before.value.dtype());
  std::vector<Value> state = before.state;
  // The last state, which begins as the param.
  const auto take_copy = [&] {
    const Value copy = where(eq(step.count, 1.0), cast_to(before.value, wide), state.back());
    state.pop_back();
    return copy;
  };
  const Value average = kept.has_ema ? take_copy() : Value{};
  const Value from = kept.has_master ? take_copy() : before.value;
  OptimizerUpdate after =
      updated(rule.optimizer, {from, state}, before.gradient, step, before.curvature);
  if (kept.has_master) after.state.push_back(after.param);
  if (kept.has_ema) {
    const double decay = *options.ema;
    after.state.push_back(average * decay + cast_to(after.param, wide) * (1 - decay));
  }
  return {cast_to(after.param, before.value.dtype()), {}, {}, after.state};
}

// All values in one list, and back.
std::vector<Value> flat(const MoveValues& values) {
  std::vector<Value> out = {values.count};
  const auto add = [&](Value v) {
    if (v.valid()) out.push_back(v);
  };
  add(values.learning_rate);
  for (const MoveValues::Param& p : values.params) {
    add(p.value);
    add(p.gradient);
    add(p.curvature);
    out.insert(out.end(), p.state.begin(), p.state.end());
  }
  return out;
}

MoveValues with_values(MoveValues like, std::span<const Value> values) {
  std::size_t next = 0;
  const auto take = [&](Value& v) {
    if (v.valid()) v = values[next++];
  };
  take(like.count);
  take(like.learning_rate);
  for (MoveValues::Param& p : like.params) {
    take(p.value);
    take(p.gradient);
    take(p.curvature);
    for (Value& s : p.state) take(s);
  }
  return like;
}

// What a move makes, which is less than it is made of.
MoveValues results_of(MoveValues values) {
  values.learning_rate = {};
  for (MoveValues::Param& p : values.params) p.gradient = p.curvature = {};
  return values;
}

}  // namespace

ParamState param_state(const UpdateRule& rule, const Type& param, const TrainingOptions& options) {
  ParamState kept{state_slots(rule.optimizer, param)};
  kept.has_master = options.master_copies && is_small_float(param.dtype);
  kept.has_ema = options.ema.has_value();
  const auto copy = [&](std::string_view name) -> StateSlot {
    return {.name = name, .type = state_type(param), .start = SlotStart::Param};
  };
  if (kept.has_master) kept.slots.push_back(copy("master"));
  if (kept.has_ema) kept.slots.push_back(copy("ema"));
  return kept;
}

MoveValues moved(const MoveValues& before, const TrainedParams& trained,
                 const TrainingOptions& options) {
  Graph& graph = before.count.graph();
  MoveValues after;
  after.count = before.count + graph.constant(Tensor::of<std::int32_t>({}, {1}));
  std::vector<std::optional<OptimizerStep>> steps(trained.rules.size());
  for (std::size_t i = 0; i < trained.params.size(); ++i) {
    const TrainedParam& param = trained.params[i];
    const UpdateRule& rule = trained.rules[param.rule];
    if (!steps[param.rule]) steps[param.rule] = step_of(rule, before, after.count);
    const ProvenanceScope scope(graph, {"optimizer", {}, "update of '" + param.name + "'"});
    after.params.push_back(moved_param(before.params[i], rule, *steps[param.rule], options));
  }
  return after;
}

MoveValues moved_if(Value flag, const MoveValues& before, const TrainedParams& trained,
                    const TrainingOptions& options) {
  const MoveValues results = results_of(before);
  const std::vector<Value> made = cond(
      flag, flat(before),
      [&](Graph&, std::span<const Value> in) {
        return flat(moved(with_values(before, in), trained, options));
      },
      [&](Graph&, std::span<const Value> in) { return flat(results_of(with_values(before, in))); });
  return with_values(results, made);
}

}  // namespace ricci
