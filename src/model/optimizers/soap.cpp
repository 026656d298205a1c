// SOAP: Adam in the slowly changing eigenbasis of Shampoo's preconditioners.
#include "ricci/build/select.h"

#include "model/optimizers/moments.h"

namespace ricci {
namespace {

// One side of a matrix, with its places in the state; a side without a basis is left as it is.
struct SoapSide {
  std::size_t axis;
  std::size_t covariance;
  std::size_t basis;
};

std::vector<SoapSide> sides_of(const Soap& settings, const Type& param) {
  std::vector<SoapSide> sides;
  std::size_t next = 2;  // behind the moments
  for (const std::size_t axis : {0U, 1U}) {
    const std::int64_t size = param.dims[axis].value();
    if (size < 2 || size > settings.longest_side) continue;
    sides.push_back({axis, next, next + 1});
    next += 2;
  }
  return sides;
}

bool has_bases(const Soap& settings, const Type& param) {
  return is_known_matrix(param) && !sides_of(settings, param).empty();
}

// Into the bases, or back from them.
Value rotated(Value x, const std::vector<SoapSide>& sides, const std::vector<Value>& state,
              bool back) {
  for (const SoapSide& s : sides) {
    const Value basis = state[s.basis];
    if (s.axis == 0) {
      x = matmul(back ? basis : transpose_last(basis), x);
    } else {
      x = matmul(x, back ? transpose_last(basis) : basis);
    }
  }
  return x;
}

// Columns by how much of the covariance they carry, the most first, so that the power method keeps
// them apart; and the order they had.
std::pair<Value, Value> ordered(Value basis, Value carried) {
  const Value share = sum(basis * carried, {0});
  const Value order = top_k_indices(share, {.k = share.dims()[0]});
  return {gather(carried, order, {.axis = 1}), order};
}

// The bases of the next step and what stands for them in the second moment, which come last in
// `values`, from the covariances that this step has made. In the first they are eigenvectors; in
// others one step of the power method keeps them close to these.
std::vector<Value> next_bases(const Soap& settings, const std::vector<SoapSide>& sides,
                              const std::vector<Value>& covariances,
                              const std::vector<Value>& values, Value count) {
  const std::size_t n = sides.size();
  const auto eigenvectors = [n](std::span<const Value> in) {
    std::vector<Value> out;
    for (std::size_t i = 0; i < n; ++i) {
      out.push_back(reverse(eigh(in[n + 1 + i])[1], {.axes = {1}}));
    }
    out.push_back(in[n]);
    return out;
  };
  const auto refreshed = [n, &sides](std::span<const Value> in) {
    std::vector<Value> out;
    Value second = in[n];
    for (std::size_t i = 0; i < n; ++i) {
      const auto [carried, order] = ordered(in[i], matmul(in[n + 1 + i], in[i]));
      out.push_back(qr(carried)[0]);
      second = gather(second, order, {.axis = static_cast<std::int64_t>(sides[i].axis)});
    }
    out.push_back(second);
    return out;
  };
  const Value first = eq(count, 1.0);
  const Value due = logical_and(begins_interval(count, settings.interval), logical_not(first));
  const std::vector<Value> begun = in_some_steps(first, values, covariances, eigenvectors);
  return in_some_steps(due, begun, covariances, refreshed);
}

}  // namespace

std::vector<StateSlot> Soap::slots(const Type& param) const {
  std::vector<StateSlot> slots = adam_slots(param);
  if (!has_bases(*this, param)) return slots;
  for (const SoapSide& side : sides_of(*this, param)) {
    const Dim size = param.dims[side.axis];
    const bool left = side.axis == 0;
    slots.push_back({.name = left ? "left" : "right", .type = {param.dtype, {size, size}}});
    slots.push_back({.name = left ? "left_basis" : "right_basis",
                     .type = {param.dtype, {size, size}},
                     .start = SlotStart::Identity});
  }
  return slots;
}

std::vector<Value> Soap::scalars(const OptimizerStep& step) const {
  // Steps with a basis: the first has none, and moves nothing.
  const Value moves = max(step.count - 1.0, 1.0);
  std::vector<Value> all = adam_scalars(beta1, beta2, step);
  all.push_back(bias_left(beta1, moves));
  all.push_back(bias_left(beta2, moves));
  return all;
}

OptimizerUpdate Soap::update(const ParamStep& now) const {
  const std::vector<Value>& s = now.step.scalars;
  if (!has_bases(*this, now.param.type())) {
    return adamw_update({beta1, beta2, epsilon, weight_decay}, now, s);
  }
  const std::vector<SoapSide> sides = sides_of(*this, now.param.type());
  const Value first_step = eq(now.step.count, 1.0);
  const auto moved = [&](std::size_t k, Value next, double beta) {
    return where(first_step, now.state[k], moved_mean(now.state[k], next, beta));
  };
  std::vector<Value> state = now.state;
  const Value gradient = rotated(now.gradient, sides, now.state, false);
  state[0] = moved(0, now.gradient, beta1);
  state[1] = moved(1, square(gradient), beta2);
  const Value moment = rotated(state[0], sides, now.state, false) / s[2];
  const Value direction =
      rotated(moment / (sqrt(state[1] / s[3]) + epsilon), sides, now.state, true);
  std::vector<Value> covariances;
  std::vector<Value> bases;
  for (const SoapSide& side : sides) {
    const Value across = transpose_last(now.gradient);
    const Value outer =
        side.axis == 0 ? matmul(now.gradient, across) : matmul(across, now.gradient);
    covariances.push_back(moved_mean(now.state[side.covariance], outer, beta2));
    bases.push_back(now.state[side.basis]);
  }
  bases.push_back(state[1]);
  bases = next_bases(*this, sides, covariances, bases, now.step.count);
  state[1] = bases.back();
  for (std::size_t i = 0; i < sides.size(); ++i) {
    state[sides[i].covariance] = covariances[i];
    state[sides[i].basis] = bases[i];
  }
  const Value rate = now.step.learning_rate;
  const Value next = decayed(now.param - rate * direction, rate, weight_decay);
  return {where(first_step, now.param, next), state};
}

}  // namespace ricci
