#include "ricci/model/optimizer.h"

#include <array>
#include <cmath>

#include "ricci/support/error.h"

#include "type/small_dtype.h"

namespace ricci {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};

// Adam and AdamW differ in where the decay goes.
template <class AnyAdam>
OptimizerUpdate adam_moments(const AnyAdam& a, const OptimizerUpdate& before, Value gradient) {
  const Value first = before.state[0] * a.beta1 + gradient * (1 - a.beta1);
  const Value second = before.state[1] * a.beta2 + square(gradient) * (1 - a.beta2);
  return {before.param, {first, second}};
}

template <class AnyAdam>
OptimizerUpdate adam_moved(const AnyAdam& a, const OptimizerUpdate& moments,
                           const OptimizerStep& step) {
  const Value denominator = sqrt(moments.state[1]) / step.second_root + a.epsilon;
  return {moments.param - step.step_size * moments.state[0] / denominator, moments.state};
}

OptimizerUpdate next(const Sgd& s, const OptimizerUpdate& before, Value gradient,
                     const OptimizerStep& step) {
  if (s.weight_decay != 0) gradient = gradient + before.param * s.weight_decay;
  if (s.momentum == 0) return {before.param - step.learning_rate * gradient, {}};
  const Value momentum = before.state[0] * s.momentum + gradient;
  const Value direction = s.nesterov ? gradient + momentum * s.momentum : momentum;
  return {before.param - step.learning_rate * direction, {momentum}};
}

OptimizerUpdate next(const Adam& a, const OptimizerUpdate& before, Value gradient,
                     const OptimizerStep& step) {
  if (a.weight_decay != 0) gradient = gradient + before.param * a.weight_decay;
  return adam_moved(a, adam_moments(a, before, gradient), step);
}

OptimizerUpdate next(const AdamW& a, const OptimizerUpdate& before, Value gradient,
                     const OptimizerStep& step) {
  OptimizerUpdate moments = adam_moments(a, before, gradient);
  if (a.weight_decay != 0) {
    moments.param = moments.param * (1.0 - step.learning_rate * a.weight_decay);
  }
  return adam_moved(a, moments, step);
}

}  // namespace

double learning_rate(const Optimizer& optimizer) {
  return std::visit([](const auto& o) { return o.learning_rate; }, optimizer);
}

std::span<const std::string_view> state_names(const Optimizer& optimizer) {
  static constexpr auto OfSgd = std::to_array<std::string_view>({"momentum"});
  static constexpr auto OfAdam = std::to_array<std::string_view>({"first", "second"});
  if (const auto* sgd = std::get_if<Sgd>(&optimizer)) {
    return std::span(OfSgd).first(sgd->momentum == 0 ? 0 : 1);
  }
  return OfAdam;
}

Type state_type(const Type& param) { return {widened(param.dtype), param.dims}; }

OptimizerStep next_step(const Optimizer& optimizer, Value count, Value learning_rate) {
  OptimizerStep step{cast_to(learning_rate, DType::F32), {}, {}};
  const auto with_moments = [&](double beta1, double beta2) {
    const Value steps = cast_to(count, DType::F32);
    // 1 - βᵗ as -expm1(t log β): in f32 the power is too close to one to be subtracted.
    const auto correction = [&](double beta) { return -expm1(steps * std::log(beta)); };
    step.step_size = step.learning_rate / correction(beta1);
    step.second_root = sqrt(correction(beta2));
  };
  std::visit(Overloaded{[](const Sgd&) {},
                        [&](const auto& adam) { with_moments(adam.beta1, adam.beta2); }},
             optimizer);
  return step;
}

OptimizerUpdate updated(const Optimizer& optimizer, const OptimizerUpdate& before, Value gradient,
                        const OptimizerStep& step) {
  const DType dtype = before.param.dtype();
  if (is_complex(dtype) || !is_float(dtype)) {
    throw UserError(ErrorCode::DType, "only parameters of a real floating dtype can be trained");
  }
  const DType in = widened(dtype);
  const auto as = [&](Value v) { return v.valid() ? cast_to(v, in) : v; };
  const OptimizerUpdate wide_before = {as(before.param), before.state};
  const OptimizerStep wide_step = {as(step.learning_rate), as(step.step_size),
                                   as(step.second_root)};
  OptimizerUpdate after = std::visit(
      [&](const auto& o) { return next(o, wide_before, as(gradient), wide_step); }, optimizer);
  after.param = cast_to(after.param, dtype);
  return after;
}

Value global_norm(std::span<const Value> gradients) {
  Value total;
  for (const Value& g : gradients) {
    Axes axes;
    for (std::size_t a = 0; a < g.rank(); ++a) axes.push_back(static_cast<std::int64_t>(a));
    const Value squares = square(cast_to(g, widened(g.dtype())));
    const Value sum_of_squares =
        axes.empty() ? squares : reduce(squares, {.op = ReduceKind::Sum, .axes = axes});
    const Value part = cast_to(sum_of_squares, total.valid() ? total.dtype() : squares.dtype());
    total = total.valid() ? total + part : part;
  }
  if (!total.valid()) throw UserError(ErrorCode::Name, "there is no gradient to take the norm of");
  return sqrt(total);
}

std::vector<Value> clipped_by_norm(std::span<const Value> gradients, Value norm, double limit) {
  // The divisor is at least the limit: nothing is divided by zero, and small gradients stay.
  const Value scale = limit / max(norm, limit);
  std::vector<Value> out;
  for (const Value& g : gradients) {
    const DType in = widened(g.dtype());
    out.push_back(cast_to(cast_to(g, in) * cast_to(scale, in), g.dtype()));
  }
  return out;
}

}  // namespace ricci
