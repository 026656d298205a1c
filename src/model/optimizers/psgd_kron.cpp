// PSGD with a Kronecker product of factors as its preconditioner.
#include "ricci/build/linalg.h"
#include "ricci/build/shape.h"

#include "model/optimizers/moments.h"

namespace ricci {
namespace {

// A factor of the preconditioner: an upper triangular matrix, or the numbers of a diagonal one.
bool is_triangular(Value factor) { return factor.rank() == 2; }

bool has_two_factors(const Type& param) { return is_known_matrix(param); }

// factor · x along rows (axis 0) or x · factorᵀ along columns.
Value applied(Value factor, Value x, std::size_t axis) {
  if (is_triangular(factor)) {
    return axis == 0 ? matmul(factor, x) : matmul(x, transpose_last(factor));
  }
  if (axis == 1 || x.rank() < 2) return x * factor;
  return x * reshape_to(factor, {factor.dims()[0], 1});
}

Value transposed(Value factor) { return is_triangular(factor) ? transpose_last(factor) : factor; }

// (a aᵀ)⁻¹ = a⁻ᵀ a⁻¹, of a diagonal factor its diagonal.
Value inverse_square(Value factor) {
  if (!is_triangular(factor)) return reciprocal(square(factor));
  const std::int64_t n = factor.dims()[0].value();
  Graph& graph = factor.graph();
  const Value row = iota(graph, {.shape = {n, n}, .axis = 0});
  const Value column = iota(graph, {.shape = {n, n}, .axis = 1});
  const Value one = cast_to(eq(row, column), factor.dtype());
  const Value inverse = triangular_solve(factor, one, {.lower = false});
  return matmul(transpose_last(inverse), inverse);
}

// tr((bᵀ b)⁻¹), which is tr((b bᵀ)⁻¹).
Value trace_of_inverse(Value factor) {
  const Value inverse = inverse_square(factor);
  return is_triangular(factor) ? trace(inverse) : sum(inverse);
}

// One step of a factor towards x xᵀ = y, on the group it belongs to.
Value moved_factor(Value factor, Value outer, Value y, double rate) {
  const Value size = max(euclidean_norm(outer + y), 1e-30);
  if (!is_triangular(factor)) return factor - (outer - y) * factor * (rate / size);
  return factor - matmul(triu(outer - y), factor) * (rate / size);
}

// x xᵀ on a side, of which a diagonal factor needs the diagonal.
Value outer_product(Value factor, Value x, std::size_t axis) {
  if (is_triangular(factor)) {
    return axis == 0 ? matmul(x, transpose_last(x)) : matmul(transpose_last(x), x);
  }
  if (x.rank() < 2) return square(x);
  return sum(square(x), {axis == 0 ? 1 : 0});
}

// The factors a step later; `in` are they and the gradient's mean.
std::vector<Value> moved_factors(std::span<const Value> in, double rate) {
  const Value x = in.back();
  if (in.size() == 2) {
    return {moved_factor(in[0], square(applied(in[0], x, 0)), inverse_square(in[0]), rate)};
  }
  const Value whitened = applied(in[1], applied(in[0], x, 0), 1);
  const auto moved = [&](std::size_t axis) {
    const Value y = inverse_square(in[axis]) * trace_of_inverse(in[1 - axis]);
    return moved_factor(in[axis], outer_product(in[axis], whitened, axis), y, rate);
  };
  return {moved(0), moved(1)};
}

}  // namespace

std::vector<StateSlot> PsgdKron::slots(const Type& param) const {
  const auto factor = [&](std::string_view called, const Dim& size, double start) -> StateSlot {
    if (has_two_factors(param) && size.value() <= longest_side && size.value() > 1) {
      return {called, {param.dtype, {size, size}}, SlotStart::Identity, start};
    }
    return {called, {param.dtype, {size}}, SlotStart::Filled, start};
  };
  std::vector<StateSlot> slots = {slot_like("first", param)};
  if (has_two_factors(param)) {
    slots.push_back(factor("left", param.dims[0], std::sqrt(initial)));
    slots.push_back(factor("right", param.dims[1], std::sqrt(initial)));
  } else {
    slots.push_back({"diagonal", param, SlotStart::Filled, initial});
  }
  return slots;
}

std::vector<Value> PsgdKron::scalars(const OptimizerStep& step) const {
  return {bias_left(beta1, step.count), begins_interval(step.count, interval)};
}

OptimizerUpdate PsgdKron::update(const ParamStep& now) const {
  const Value first = moved_mean(now.state[0], now.gradient, beta1);
  const Value moment = first / now.step.scalars[0];
  std::vector<Value> factors(now.state.begin() + 1, now.state.end());
  const auto moved = [this](std::span<const Value> in) { return moved_factors(in, rate); };
  factors = in_some_steps(now.step.scalars[1], factors, std::span(&moment, 1), moved);
  Value direction = moment;
  if (!has_two_factors(now.param.type())) {
    direction = direction * square(factors[0]);
  } else {
    for (const std::size_t axis : {0U, 1U}) {
      direction = applied(transposed(factors[axis]), applied(factors[axis], direction, axis), axis);
    }
  }
  direction = direction / max(root_mean_square(direction) / clip, 1.0);
  std::vector<Value> state = {first};
  state.insert(state.end(), factors.begin(), factors.end());
  return {now.param - now.step.learning_rate * with_decay(direction, now.param, weight_decay),
          state};
}

}  // namespace ricci
