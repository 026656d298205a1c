// Reductions and what is built on them.
#include "ricci/op/reduce.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ricci/build/reduce.h"

#include "op/kinds.h"
#include "rule/tables/eval_rules.h"
#include "rule/tables/expand_rules.h"

namespace ricci::rule {
namespace {

constexpr double Infinity = std::numeric_limits<double>::infinity();

double log_sum_exp_of(std::span<const double> xs) {
  double m = -Infinity;
  for (const double x : xs) m = std::isnan(x) ? x : (x > m ? x : m);
  if (std::isnan(m) || std::isinf(m)) return m;
  double total = 0;
  for (const double x : xs) total += std::exp(x - m);
  return m + std::log(total);
}

template <class N>
N extreme(std::span<const N> xs, N start, bool largest) {
  N best = start;
  for (const N x : xs) {
    if constexpr (std::is_floating_point_v<N>) {
      if (std::isnan(x)) return x;
    }
    if (largest ? x > best : x < best) best = x;
  }
  return best;
}

template <class N>
N combine(ReduceKind kind, std::span<const N> xs, DType dtype) {
  N total{};
  N product(1);
  for (const N& x : xs) {
    total = add_wrapping(total, x);
    product = mul_wrapping(product, x);
  }
  switch (kind) {
    case ReduceKind::Sum: return total;
    case ReduceKind::Prod: return product;
    case ReduceKind::Mean:
      if constexpr (!std::is_same_v<N, std::int64_t>) {
        return total / static_cast<double>(xs.size());
      }
      break;
    case ReduceKind::Max:
    case ReduceKind::Min:
      if constexpr (!std::is_same_v<N, std::complex<double>>) {
        const bool largest = pick_of(kind) == Pick::Largest;
        return extreme<N>(xs, extreme_of_nothing<N>(dtype, largest), largest);
      }
      break;
    case ReduceKind::Any: return N(std::ranges::any_of(xs, [](const N& x) { return x != N(0); }));
    case ReduceKind::All: return N(std::ranges::all_of(xs, [](const N& x) { return x != N(0); }));
    case ReduceKind::LogSumExp:
      if constexpr (std::is_floating_point_v<N>) return log_sum_exp_of(xs);
      break;
  }
  throw InternalError("this reduction is not defined for these numbers");
}

// One more element of a running total.
template <class N>
N accumulate(CumulativeKind kind, N total, N x) {
  const auto more_extreme = [&](bool largest) {
    if constexpr (!std::is_same_v<N, std::complex<double>>) {
      return extreme<N>(std::array{x}, total, largest);
    }
    return N(0);  // complex numbers have no order; no op asks for one
  };
  switch (kind) {
    case CumulativeKind::Cumsum: return add_wrapping(total, x);
    case CumulativeKind::Cumprod: return mul_wrapping(total, x);
    case CumulativeKind::Cummax: return more_extreme(true);
    case CumulativeKind::Cummin: return more_extreme(false);
  }
  throw InternalError("this running total has no kernel");
}

template <class N>
N total_of_nothing(CumulativeKind kind, DType dtype) {
  const auto end_of_range = [&](bool largest) {
    if constexpr (!std::is_same_v<N, std::complex<double>>)
      return extreme_of_nothing<N>(dtype, largest);
    return N(0);
  };
  switch (kind) {
    case CumulativeKind::Cumsum: return N(0);
    case CumulativeKind::Cumprod: return N(1);
    case CumulativeKind::Cummax: return end_of_range(true);
    case CumulativeKind::Cummin: return end_of_range(false);
  }
  throw InternalError("this running total has no kernel");
}

// Running totals of operand 0 along an axis, from its start or from its end.
void give_totals(EvalContext& c, const op::Cumulative& op, bool from_end) {
  with_number_class(c.dtype(0), [&]<class N>() {
    const Nd<N> x = c.numbers<N>(0);
    const std::size_t axis = op.axis.index();
    StaticDims rows = x.dims;
    rows[axis] = 1;
    Nd<N> totals(rows, total_of_nothing<N>(op.kind, c.dtype(0)));
    Nd<N> out(x.dims);
    for_each_index(x.dims, [&](const StaticDims& index) {
      StaticDims at = index;
      if (from_end) at[axis] = x.dims[axis] - 1 - index[axis];
      N& total = totals.at(at);
      const N before = total;
      total = accumulate(op.kind, total, x.at(at));
      out.at(at) = op.exclusive ? before : total;
    });
    c.give(0, out);
  });
}

}  // namespace

// out[kept] = op over x[kept, reduced]
void eval(const op::Reduce& op, EvalContext& c) {
  with_number_class(c.dtype(0), [&]<class N>() {
    const Nd<N> x = c.numbers<N>(0);
    StaticDims kept = x.dims;  // with reduced axes as size 1
    for (const Axis a : op.axes) kept[a.index()] = 1;
    Nd<std::vector<N>> groups(kept);
    for_each_index(x.dims,
                   [&](const StaticDims& index) { groups.at(index).push_back(x.at(index)); });
    Nd<N> out(c.result_dims(0));
    for (std::size_t i = 0; i < groups.size(); ++i) {
      out.data[i] = combine<N>(op.op, groups.data[i], c.dtype(0));
    }
    c.give(0, out);
  });
}

// out[…, i, …] = op over x[…, j, …] with j ≤ i, or j < i when exclusive
void eval(const op::Cumulative& op, EvalContext& c) { give_totals(c, op, false); }

// dx[…, j, …] = Σ dy[…, i, …] with i ≥ j, or i > j when exclusive
void eval(const op::CumsumBackward& op, EvalContext& c) {
  give_totals(c, {CumulativeKind::Cumsum, op.axis, op.exclusive}, true);
}

std::vector<Value> expand(const op::CumsumBackward& op, const ExpandContext& c) {
  const Axes axis = {op.axis};
  return {reverse(cumsum(reverse(c[0], {axis}), {op.axis, op.exclusive}), {axis})};
}

// y = e^(x - m) / Σ e^(x - m), m = max x, along the axis
void eval(const op::Softmax& op, EvalContext& c) {
  const RealNd x = c.real(0);
  StaticDims kept = x.dims;
  kept[op.axis.index()] = 1;
  RealNd largest(kept, -Infinity);
  RealNd total(kept, 0.0);
  for_each_index(x.dims, [&](const StaticDims& i) {
    largest.at(i) = eval_binary(BinaryKind::Max, largest.at(i), x.at(i));
  });
  RealNd y(x.dims);
  for_each_index(x.dims, [&](const StaticDims& i) {
    y.at(i) = std::exp(x.at(i) - largest.at(i));
    total.at(i) += y.at(i);
  });
  for_each_index(x.dims, [&](const StaticDims& i) { y.at(i) /= total.at(i); });
  c.give(0, y);
}

std::vector<Value> expand(const op::Softmax& op, const ExpandContext& c) {
  const Value x = c[0];
  const Value m = reduce(x, {.op = ReduceKind::Max, .axes = {op.axis}, .keep_dim = true});
  const Value e = exp(x - m);
  return {e / sum(e, {op.axis}, true)};
}

}  // namespace ricci::rule
