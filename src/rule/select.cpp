// Ops that choose elements by their order.
#include "ricci/op/select.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "rule/tables/eval_rules.h"
#include "support/philox.h"

namespace ricci::rule {
namespace {

// The order of numbers with NaN above all of them.
template <class N>
bool less(N a, N b) {
  if constexpr (std::is_floating_point_v<N>) {
    if (std::isnan(a) || std::isnan(b)) return !std::isnan(a);
  }
  return a < b;
}

// Positions of `row` in order; equal elements keep theirs.
template <class N>
std::vector<std::int64_t> order_of(std::span<const N> row, bool descending) {
  std::vector<std::int64_t> order(row.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, [&](std::int64_t i, std::int64_t j) {
    const N a = row[static_cast<std::size_t>(i)];
    const N b = row[static_cast<std::size_t>(j)];
    if (descending ? less(b, a) : less(a, b)) return true;
    if (descending ? less(a, b) : less(b, a)) return false;
    return i < j;
  });
  return order;
}

// The first position of the extreme; a NaN is more extreme than any number.
template <class N>
std::int64_t extreme_of(std::span<const N> row, ArgKind kind) {
  std::size_t best = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if constexpr (std::is_floating_point_v<N>) {
      if (std::isnan(row[i])) return static_cast<std::int64_t>(i);
    }
    if (kind == ArgKind::ArgMax ? row[best] < row[i] : row[i] < row[best]) best = i;
  }
  return static_cast<std::int64_t>(best);
}

// Calls `f(index, row)` for every row of operand 0 along `axis`; `index` has 0 there.
template <class F>
void for_each_row(const EvalContext& c, std::size_t axis, const F& f) {
  const auto visit = [&]<class N>() {
    const Nd<N> x = c.numbers<N>(0);
    StaticDims rows = x.dims;
    rows[axis] = 1;
    for_each_index(rows, [&](const StaticDims& first) {
      std::vector<N> row;
      StaticDims index = first;
      for (; index[axis] < x.dims[axis]; ++index[axis]) row.push_back(x.at(index));
      f(first, std::span<const N>(row));
    });
  };
  if (is_float(c.dtype(0))) {
    visit.template operator()<double>();
  } else {
    visit.template operator()<std::int64_t>();
  }
}

// values = x at the first elements of every row's order, indices = where they are.
void give_ordered(EvalContext& c, std::size_t axis, bool descending) {
  IntNd indices(c.result_dims(1));
  for_each_row(c, axis, [&](StaticDims index, const auto& row) {
    const auto order = order_of(row, descending);
    for (; index[axis] < indices.dims[axis]; ++index[axis]) {
      indices.at(index) = order[static_cast<std::size_t>(index[axis])];
    }
  });
  if (c.wanted(0)) {
    c.give_moved(0, [&](const StaticDims& index) -> EvalContext::Source {
      StaticDims from = index;
      from[axis] = indices.at(index);
      return {0, flat_index(c.dims(0), from)};
    });
  }
  if (c.wanted(1)) c.give(1, indices);
}

// Relative probabilities of a row: e^((x - max)/temperature), 0 for ids that are not kept.
std::vector<double> weights_of(const op::Sample& op, std::span<const double> row) {
  const auto order = order_of(row, true);
  const double largest = row[static_cast<std::size_t>(order[0])];
  const std::size_t kept =
      op.top_k > 0 ? std::min(static_cast<std::size_t>(op.top_k), row.size()) : row.size();
  std::vector<double> weights(row.size(), 0.0);
  double total = 0;
  for (std::size_t i = 0; i < kept; ++i) {
    const auto id = static_cast<std::size_t>(order[i]);
    weights[id] = std::exp((row[id] - largest) / op.temperature);
    total += weights[id];
  }
  if (op.top_p >= 1) return weights;
  double mass = 0;
  for (const std::int64_t id : order) {
    double& w = weights[static_cast<std::size_t>(id)];
    if (mass >= op.top_p * total) w = 0;
    mass += w;
  }
  return weights;
}

// The first id whose cumulative probability exceeds u.
std::int64_t draw(std::span<const double> weights, double u) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  double cumulative = 0;
  std::int64_t last = 0;  // rounding may leave the sum at u·total
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] > 0) last = static_cast<std::int64_t>(i);
    cumulative += weights[i];
    if (cumulative > u * total) return last;
  }
  return last;
}

PhiloxStream stream_of(const op::Sample& op, const EvalContext& c) {
  auto key = static_cast<std::uint64_t>(op.seed != 0 ? op.seed : op.key.value_or(0));
  if (c.operands() > 1) key += static_cast<std::uint64_t>(c.integers(1).data[0]);
  return {c.seed(), key};
}

}  // namespace

// values[…, i, …] = x[…, indices[…, i, …], …], in order along the axis
void eval(const op::Sort& op, EvalContext& c) { give_ordered(c, op.axis.index(), op.descending); }

// the first k of the last axis sorted descending
void eval(const op::TopK&, EvalContext& c) { give_ordered(c, c.dims(0).size() - 1, true); }

// indices[kept] = the smallest i with x[…, i, …] the extreme of its row
void eval(const op::ArgReduce& op, EvalContext& c) {
  std::vector<std::int64_t> found;
  for_each_row(c, op.axis.index(), [&](const StaticDims&, const auto& row) {
    found.push_back(extreme_of(row, op.kind));
  });
  c.give(0, IntNd(c.result_dims(0), std::move(found)));
}

// ids[r] = the first i with Σ_{j≤i} p_j > u_r
void eval(const op::Sample& op, EvalContext& c) {
  const PhiloxStream stream = stream_of(op, c);
  std::vector<std::int64_t> ids;
  const RealNd logits = c.real(0);
  const auto width = static_cast<std::size_t>(logits.dims.back());
  for (std::size_t at = 0; at < logits.size(); at += width) {
    const auto row = std::span(logits.data).subspan(at, width);
    const std::int64_t best = extreme_of(row, ArgKind::ArgMax);
    const bool certain =
        op.temperature.value == 0 || !std::isfinite(row[static_cast<std::size_t>(best)]);
    const double u = stream.uniform24(ids.size());
    ids.push_back(certain ? best : draw(weights_of(op, row), u));
  }
  c.give(0, IntNd(c.result_dims(0), std::move(ids)));
}

}  // namespace ricci::rule
