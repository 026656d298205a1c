#include "schedule/call_flops.h"

#include <algorithm>
#include <cmath>

#include "ricci/op/ops.h"

namespace ricci::schedule {
namespace {

double elements_of(const BufferView& v) { return static_cast<double>(v.type.numel().value_or(0)); }

double size(const BufferView& v, std::size_t from_end) {
  const StaticDims dims = v.type.static_dims();
  return static_cast<double>(dims[dims.size() - from_end]);
}

double wanted_results(const CallStep& c) {
  return static_cast<double>(
      std::ranges::count_if(c.results, [](const BufferView& v) { return v.buffer >= 0; }));
}

// A weight meets every image position once: all of it but its output channels.
double taps(const BufferView& weight) {
  return elements_of(weight) / std::max(size(weight, 4), 1.0);
}

// Keys that a query sees, on average.
double keys_seen(const op::Attention& op, const BufferView& k) {
  const double keys = size(k, op.layout == AttentionLayout::Bshd ? 3 : 2);
  switch (op.mask_kind.kind) {
    case MaskKind::Kind::Causal: return (keys + 1) / 2;
    case MaskKind::Kind::SlidingWindow:
      return std::min(keys, static_cast<double>(op.mask_kind.window) + 1);
    case MaskKind::Kind::None:
    case MaskKind::Kind::Custom:
    case MaskKind::Kind::Bias: break;
  }
  return keys;
}

// Each product of attention, scores or values, has two operations for every element of the queries
// and every key.
double attention_flops(const op::Attention& op, const CallStep& c, double products) {
  return 2 * products * elements_of(c.operands[0]) * keys_seen(op, c.operands[1]);
}

double solve_flops(const CallStep& c, bool factors) {
  const double n = size(c.operands[0], 1);
  const double substitution = elements_of(c.operands[1]) * n;
  return factors ? elements_of(c.operands[0]) * n * 2 / 3 + 2 * substitution : substitution;
}

double conv_flops(const CallStep& c) {
  if (c.op.is<op::Conv>()) return 2 * elements_of(c.results[0]) * taps(c.operands[1]);
  if (c.op.is<op::Conv2dBackwardInput>()) {
    return 2 * elements_of(c.operands[0]) * taps(c.operands[1]);
  }
  return 2 * elements_of(c.operands[1]) * taps(c.results[0]);
}

// Scaling the state, adding to it and reading it, for each of its elements and every step; the
// gradient goes through the steps twice, with two terms for each of the first's.
constexpr double StateOperations = 7;
constexpr double GradientOfState = 3;

double recurrence_flops(const CallStep& c) {
  if (const auto* op = c.op.as<op::SelectiveScan>()) {
    return StateOperations * elements_of(c.operands[0]) *
           static_cast<double>(op->state_size.value());
  }
  if (c.op.is<op::SelectiveScanBackward>()) {
    return GradientOfState * StateOperations * elements_of(c.operands[0]) * size(c.operands[2], 1);
  }
  const double state = elements_of(c.operands[2]) * size(c.operands[0], 1);
  return StateOperations * state * (c.op.is<op::GatedDeltaNet>() ? 1 : GradientOfState);
}

double pool_flops(const BufferView& windows, const HeightWidth& kernel) {
  return elements_of(windows) * static_cast<double>(kernel[0] * kernel[1]);
}

// Comparisons, n log n.
double order_flops(const CallStep& c) {
  const double n = elements_of(c.operands[0]);
  return n * std::log2(std::max(n, 2.0));
}

}  // namespace

double call_flops(const CallStep& c) {
  switch (c.op.kind()) {
    case OpKind::Matmul:
    case OpKind::GroupedMatmul: return 2 * elements_of(c.results[0]) * size(c.operands[0], 1);
    case OpKind::GroupedMatmulBackward:
      return 2 * wanted_results(c) * elements_of(c.operands[3]) * size(c.operands[0], 1);
    case OpKind::Conv:
    case OpKind::Conv2dBackwardInput:
    case OpKind::Conv2dBackwardWeight: return conv_flops(c);
    case OpKind::Attention: return attention_flops(*c.op.as<op::Attention>(), c, 2);
    case OpKind::AttentionBackward:  // scores again, and the four gradients' products
      return attention_flops(c.op.as<op::AttentionBackward>()->forward(), c, 5);
    case OpKind::DenseSolve:
    case OpKind::BatchedDenseSolve: return solve_flops(c, true);
    case OpKind::TriangularSolve: return solve_flops(c, false);
    case OpKind::SelectiveScan:
    case OpKind::SelectiveScanBackward:
    case OpKind::GatedDeltaNet:
    case OpKind::GatedDeltaNetBackward: return recurrence_flops(c);
    case OpKind::Pool: return pool_flops(c.results[0], c.op.as<op::Pool>()->kernel_size);
    case OpKind::MaxPool2dBackward:
      return pool_flops(c.operands[1], c.op.as<op::MaxPool2dBackward>()->kernel_size);
    case OpKind::Sort:
    case OpKind::TopK: return order_flops(c);
    default: break;
  }
  double flops = 0;
  for (const BufferView& v : c.results) flops += v.buffer < 0 ? 0 : elements_of(v);
  return flops;
}

}  // namespace ricci::schedule
