// Normalisations written out in primitives. Variances come from centred values, in a second pass:
// mean x² - μ² cancels and can turn negative.
#include "ricci/build/build.h"
#include "ricci/op/norm.h"

#include "rule/norm_parts.h"
#include "rule/tables/expand_rules.h"

namespace ricci::rule {
namespace {

// x̂ and 1/√(v + eps) over one axis.
struct Normed {
  Value x_hat;
  Value scale;
};

Normed normalise(Value x, Axis axis, double eps, Centred centred) {
  const Value offset = centred == Centred::Yes ? x - mean(x, {axis}, true) : x;
  const Value scale = rsqrt(mean(offset * offset, {axis}, true) + eps);
  return {offset * scale, scale};
}

// A vector [D] as [D, 1, …], so that it broadcasts along `axis` of a value of some rank.
Value along(Value vector, std::size_t axis, std::size_t rank) {
  Dims dims(rank - axis, Dim(1));
  dims[0] = vector.dims()[0];
  return reshape_to(vector, dims);
}

// Sums over every axis but one.
Value sum_others(Value x, std::size_t axis) {
  Axes others;
  for (std::size_t i = 0; i < x.rank(); ++i) {
    if (i != axis) others.emplace_back(static_cast<std::int64_t>(i));
  }
  return others.empty() ? x : sum(x, others);
}

// x as [N, groups, the rest]: the last axis holds what is normalised together.
Value grouped(Value x, std::int64_t groups) {
  Dim rest = x.dims()[1];
  for (std::size_t i = 2; i < x.rank(); ++i) rest = rest * x.dims()[i];
  const auto each = Dim::divide(rest, groups);
  if (!each) {
    throw UserError(ErrorCode::NeedsStaticDim,
                    "the number of channels " + x.dims()[1].to_string() +
                        " is not known to be a multiple of the number of groups",
                    "write it as a multiple, or bind its symbols");
  }
  return reshape_to(x, {x.dims()[0], groups, *each});
}

Value affine(Value x_hat, Value gamma, Value beta, std::size_t axis) {
  return x_hat * along(gamma, axis, x_hat.rank()) + along(beta, axis, x_hat.rank());
}

// s (h - mean h - x̂ mean(h x̂)) over one axis; uncentred values have no mean to follow.
Value input_gradient(const Normed& n, Value h, Axis axis, Centred centred) {
  const Value along_x = n.x_hat * mean(h * n.x_hat, {axis}, true);
  const Value across = centred == Centred::Yes ? h - mean(h, {axis}, true) : h;
  return (across - along_x) * n.scale;
}

std::vector<Value> expand_along_axis_backward(const ExpandContext& c, Axis axis, double eps,
                                              Centred centred) {
  const Value x = c[0];
  const Value dy = c[2];
  std::vector<Value> d(3);
  if (c.wanted(0) || c.wanted(1)) {
    const Normed n = normalise(x, axis, eps, centred);
    if (c.wanted(0)) {
      d[0] = input_gradient(n, dy * along(c[1], axis.index(), x.rank()), axis, centred);
    }
    if (c.wanted(1)) d[1] = sum_others(dy * n.x_hat, axis.index());
  }
  if (c.wanted(2)) d[2] = sum_others(dy, axis.index());
  return d;
}

}  // namespace

std::vector<Value> expand(const op::LayerNorm& op, const ExpandContext& c) {
  const Normed n = normalise(c[0], op.axis, op.eps, Centred::Yes);
  return {affine(n.x_hat, c[1], c[2], op.axis.index())};
}
std::vector<Value> expand(const op::LayerNormBackward& op, const ExpandContext& c) {
  return expand_along_axis_backward(c, op.axis, op.eps, Centred::Yes);
}

std::vector<Value> expand(const op::RmsNorm& op, const ExpandContext& c) {
  const Normed n = normalise(c[0], op.axis, op.eps, Centred::No);
  return {affine(n.x_hat, c[1], c[2], op.axis.index())};
}
std::vector<Value> expand(const op::RmsNormBackward& op, const ExpandContext& c) {
  return expand_along_axis_backward(c, op.axis, op.eps, Centred::No);
}

std::vector<Value> expand(const op::GroupNorm& op, const ExpandContext& c) {
  const Normed n = normalise(grouped(c[0], op.num_groups), 2, op.eps, Centred::Yes);
  return {affine(reshape_to(n.x_hat, c[0].dims()), c[1], c[2], 1)};
}

std::vector<Value> expand(const op::GroupNormBackward& op, const ExpandContext& c) {
  const Value x = c[0];
  const Value dy = c[2];
  std::vector<Value> d(3);
  if (c.wanted(0) || c.wanted(1)) {
    const Normed n = normalise(grouped(x, op.num_groups), 2, op.eps, Centred::Yes);
    if (c.wanted(0)) {
      const Value h = grouped(dy * along(c[1], 1, x.rank()), op.num_groups);
      d[0] = reshape_to(input_gradient(n, h, 2, Centred::Yes), x.dims());
    }
    if (c.wanted(1)) d[1] = sum_others(dy * reshape_to(n.x_hat, x.dims()), 1);
  }
  if (c.wanted(2)) d[2] = sum_others(dy, 1);
  return d;
}

std::vector<Value> expand(const op::BatchNormInference& op, const ExpandContext& c) {
  const Value x = c[0];
  const std::size_t axis = op.axis.index();
  const Value scale = along(rsqrt(c[4] + op.eps.value), axis, x.rank());
  return {affine((x - along(c[3], axis, x.rank())) * scale, c[1], c[2], axis)};
}

std::vector<Value> expand(const op::BatchNormInferenceBackward& op, const ExpandContext& c) {
  const Value x = c[0];
  const Value gamma = c[1];
  const Value dy = c[4];
  const std::size_t axis = op.axis.index();
  const Value s = rsqrt(c[3] + op.eps.value);
  std::vector<Value> d(5);
  if (c.wanted(0)) d[0] = dy * along(gamma * s, axis, x.rank());
  if (c.wanted(1) || c.wanted(4)) {
    const Value offset = x - along(c[2], axis, x.rank());
    const Value dgamma = sum_others(dy * offset * along(s, axis, x.rank()), axis);
    if (c.wanted(1)) d[1] = dgamma;
    if (c.wanted(4)) d[4] = dgamma * gamma * s * s * -0.5;
  }
  if (c.wanted(2) || c.wanted(3)) {
    const Value dbeta = sum_others(dy, axis);
    if (c.wanted(2)) d[2] = dbeta;
    if (c.wanted(3)) d[3] = -(dbeta * gamma * s);
  }
  return d;
}

}  // namespace ricci::rule
