// Losses.
#include "ricci/op/loss.h"

#include <cmath>
#include <limits>

#include "ricci/build/build.h"

#include "rule/tables/eval_rules.h"
#include "rule/tables/expand_rules.h"

namespace ricci::rule {
namespace {

// One row of logits: its maximum m and Σ_c e^(logits_c - m).
struct Row {
  std::span<const double> logits;
  double largest = -std::numeric_limits<double>::infinity();
  double total = 0;

  explicit Row(std::span<const double> values) : logits(values) {
    for (const double v : logits) largest = eval_binary(BinaryKind::Max, largest, v);
    for (const double v : logits) total += std::exp(v - largest);
  }
};

// Row k of logits [.., C].
Row row_of(const RealNd& logits, std::size_t k) {
  const auto classes = static_cast<std::size_t>(logits.dims.back());
  return Row(std::span(logits.data).subspan(k * classes, classes));
}

// [c = label] as bool [.., C]. A label is looked up among the classes, so that one that is no class
// is a fault.
Value is_label(Value logits, Value labels) {
  const Dim& classes = logits.dims().back();
  Dims column = labels.dims();
  column.emplace_back(1);
  const Value numbers = iota(logits.graph(), {.shape = {classes}, .axis = 0, .dtype = DType::I64});
  const Value known = gather(numbers, labels, {.axis = 0});
  return eq(reshape_to(known, std::move(column)), numbers);
}

}  // namespace

// loss = log Σ_c e^(logits_c - m) - (logits_label - m), m = max_c logits_c
void eval(const op::SoftmaxCrossEntropyWithLogits&, EvalContext& c) {
  const RealNd logits = c.real(0);
  const IntNd labels = c.indices(1, logits.dims.back());
  RealNd loss(labels.dims);
  for (std::size_t k = 0; k < loss.size(); ++k) {
    const Row row = row_of(logits, k);
    const double chosen = row.logits[static_cast<std::size_t>(labels.data[k])];
    loss.data[k] = std::log(row.total) - (chosen - row.largest);
  }
  c.give(0, loss);
}

std::vector<Value> expand(const op::SoftmaxCrossEntropyWithLogits&, const ExpandContext& c) {
  const Axis last = static_cast<std::int64_t>(c[0].rank() - 1);
  const Value m = reduce(c[0], {.op = ReduceKind::Max, .axes = {last}, .keep_dim = true});
  const Value shifted = c[0] - m;
  // Selected, not multiplied by 0 and 1: the other logits may be -inf.
  const Value chosen = sum(where(is_label(c[0], c[1]), shifted, scalar_like(c[0], 0)), {last});
  return {log(sum(exp(shifted), {last})) - chosen};
}

// dlogits[.., c] = (softmax(logits)_c - [c = label]) · d_loss
void eval(const op::SoftmaxCrossEntropyBackward&, EvalContext& c) {
  const RealNd logits = c.real(0);
  const IntNd labels = c.indices(1, logits.dims.back());
  const RealNd d_loss = c.real(2);
  RealNd dlogits(logits.dims);
  const auto classes = static_cast<std::size_t>(logits.dims.back());
  for (std::size_t k = 0; k < d_loss.size(); ++k) {
    const Row row = row_of(logits, k);
    for (std::size_t i = 0; i < classes; ++i) {
      const double p = std::exp(row.logits[i] - row.largest) / row.total;
      const double onehot = static_cast<std::int64_t>(i) == labels.data[k] ? 1 : 0;
      dlogits.data[k * classes + i] = (p - onehot) * d_loss.data[k];
    }
  }
  c.give(0, dlogits);
}

std::vector<Value> expand(const op::SoftmaxCrossEntropyBackward&, const ExpandContext& c) {
  const Value p = softmax(c[0]);
  const Value onehot = cast_to(is_label(c[0], c[1]), p.dtype());
  Dims column = c[2].dims();
  column.emplace_back(1);
  return {(p - onehot) * reshape_to(c[2], std::move(column))};
}

}  // namespace ricci::rule
