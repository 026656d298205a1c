// Resizing: one small matrix of weights an axis, a few entries a row.
#include "ricci/op/image.h"

#include <algorithm>
#include <cmath>

#include "ricci/build/build.h"

#include "rule/tables/eval_rules.h"
#include "rule/tables/expand_rules.h"

namespace ricci::rule {
namespace {

// Row i of the weights of one axis: sample `at[t][i]` of x counts `weight[t][i]`.
struct AxisWeights {
  std::vector<std::vector<std::int64_t>> at;
  std::vector<std::vector<double>> weight;
};

double coordinate(ResizeCoordinates kind, std::int64_t i, std::int64_t from, std::int64_t to) {
  const auto position = static_cast<double>(i);
  const auto n_in = static_cast<double>(from);
  const auto n_out = static_cast<double>(to);
  switch (kind) {
    case ResizeCoordinates::HalfPixel: return (position + 0.5) * n_in / n_out - 0.5;
    case ResizeCoordinates::AlignCorners: return to == 1 ? 0 : position * (n_in - 1) / (n_out - 1);
    case ResizeCoordinates::Asymmetric: return position * n_in / n_out;
  }
  throw InternalError("an unknown kind of coordinates");
}

// The sample whose cell a coordinate is in, in whole numbers: no rounding puts it next door.
std::int64_t nearest_sample(ResizeCoordinates kind, std::int64_t i, std::int64_t from,
                            std::int64_t to) {
  switch (kind) {
    case ResizeCoordinates::HalfPixel: return (2 * i + 1) * from / (2 * to);
    case ResizeCoordinates::AlignCorners:
      return to == 1 ? 0 : (2 * i * (from - 1) + (to - 1)) / (2 * (to - 1));
    case ResizeCoordinates::Asymmetric: return i * from / to;
  }
  throw InternalError("an unknown kind of coordinates");
}

// Keys' kernel of slope a at 1, for the four samples around a place t behind the second.
std::array<double, 4> cubic_weights(double t, double a) {
  const auto near = [&](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  const auto far = [&](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {far(t + 1), near(t), near(1 - t), far(2 - t)};
}

AxisWeights axis_weights(const op::Resize& op, std::int64_t from, std::int64_t to) {
  const std::size_t taps =
      op.mode == ResizeMode::Nearest ? 1 : (op.mode == ResizeMode::Linear ? 2 : 4);
  AxisWeights w{std::vector<std::vector<std::int64_t>>(taps),
                std::vector<std::vector<double>>(taps)};
  const auto add = [&](std::size_t tap, std::int64_t at, double weight) {
    w.at[tap].push_back(std::clamp<std::int64_t>(at, 0, from - 1));
    w.weight[tap].push_back(weight);
  };
  for (std::int64_t i = 0; i < to; ++i) {
    if (op.mode == ResizeMode::Nearest) {
      add(0, nearest_sample(op.coordinates, i, from, to), 1);
      continue;
    }
    const double place = coordinate(op.coordinates, i, from, to);
    const double cell = std::floor(place);
    const auto first = static_cast<std::int64_t>(cell);
    const double t = place - cell;
    if (op.mode == ResizeMode::Linear) {
      add(0, first, 1 - t);
      add(1, first + 1, t);
    } else {
      const auto around = cubic_weights(t, op.cubic_coefficient.value);
      for (std::size_t k = 0; k < 4; ++k) {
        add(k, first - 1 + static_cast<std::int64_t>(k), around[k]);
      }
    }
  }
  return w;
}

// out[…, i, …] = Σ_t weight[t][i]·x[…, at[t][i], …] along an axis
template <class N>
Nd<N> resized(const Nd<N>& x, std::size_t axis, std::int64_t to, const AxisWeights& w) {
  StaticDims dims = x.dims;
  dims[axis] = to;
  Nd<N> out(dims);
  for_each_index(dims, [&](const StaticDims& index) {
    StaticDims from = index;
    const auto i = static_cast<std::size_t>(index[axis]);
    N total{};
    for (std::size_t t = 0; t < w.at.size(); ++t) {
      from[axis] = w.at[t][i];
      if (w.weight[t][i] != 0) total += w.weight[t][i] * x.at(from);
    }
    out.at(index) = total;
  });
  return out;
}

// Every sample `factor` times: a view and its copy.
Value repeated(Value x, std::size_t axis, std::int64_t factor) {
  Dims apart = x.dims();
  apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(axis) + 1, Dim(1));
  Dims wide = apart;
  wide[axis + 1] = factor;
  Dims out = x.dims();
  out[axis] = out[axis] * Dim(factor);
  return reshape_to(broadcast_to(reshape_to(x, apart), wide), out);
}

// Weights are constants of the program: as many as its result has samples along an axis.
void require_writable(std::int64_t samples) {
  constexpr std::int64_t Most = std::int64_t{1} << 26;
  if (samples <= Most) return;
  throw UserError(ErrorCode::Refused, "an axis is resized to more samples than can be written out",
                  "resize it in parts");
}

// The factor by which samples simply repeat, if they do.
std::optional<std::int64_t> repeats(const op::Resize& op, const Dim& from, const Dim& to) {
  if (op.mode != ResizeMode::Nearest || op.coordinates == ResizeCoordinates::AlignCorners) {
    return std::nullopt;
  }
  const auto factor = Dim::divide(to, from);
  return factor ? factor->try_value() : std::nullopt;
}

Value resized(Value x, std::size_t axis, const op::Resize& op, const Dim& to) {
  const Dim from = x.dims()[axis];
  if (from == to) return x;
  if (const auto factor = repeats(op, from, to)) return repeated(x, axis, *factor);
  require_writable(to.value());
  const AxisWeights w = axis_weights(op, from.value(), to.value());
  Dims along(x.rank() - axis, Dim(1));
  along[0] = to;
  Value total;
  for (std::size_t t = 0; t < w.at.size(); ++t) {
    const Value at =
        x.graph().constant(Tensor::from_numbers<std::int64_t>({DType::I32, {to}}, w.at[t]));
    Value part = gather(x, at, {.axis = static_cast<std::int64_t>(axis)});
    if (op.mode != ResizeMode::Nearest) {
      const Value weight =
          x.graph().constant(Tensor::from_numbers<double>({x.dtype(), along}, w.weight[t]));
      // A sample that does not count may be infinite.
      part = where(eq(weight, scalar_like(weight, 0)), scalar_like(part, 0), part * weight);
    }
    total = total.valid() ? total + part : part;
  }
  return total;
}

}  // namespace

// out[n, c, i…] = Σ_j… Π_a W_a[i_a, j_a]·x[n, c, j…]
void eval(const op::Resize& op, EvalContext& c) {
  const auto all_axes = [&]<class N>(Nd<N> x) {
    for (std::size_t i = 0; i < op.sizes.size(); ++i) {
      const std::int64_t from = x.dims[2 + i];
      const std::int64_t to = op.sizes[i].value();
      if (from != to) x = resized(x, 2 + i, to, axis_weights(op, from, to));
    }
    c.give(0, x);
  };
  if (is_complex(c.dtype(0))) return all_axes(c.numbers<std::complex<double>>(0));
  all_axes(c.real(0));
}

std::vector<Value> expand(const op::Resize& op, const ExpandContext& c) {
  Value x = c[0];
  for (std::size_t i = 0; i < op.sizes.size(); ++i) x = resized(x, 2 + i, op, op.sizes[i]);
  return {x};
}

}  // namespace ricci::rule
