#include "rule/code_products.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "rule/derivative_parts.h"
#include "rule/quant_parts.h"

namespace ricci::rule {
namespace {

// A difference of two codes is at most 255: so many products of two of them are no more than i32
// holds.
constexpr std::int64_t LongestSum = 1 << 15;

// The op for its sums alone.
template <class O>
O for_sums(O op) {
  op.to = DType::I32;
  op.mult = {1.0};
  op.out_zp = 0;
  op.low = op.high = std::nullopt;
  op.clip = false;
  return op;
}

template <class O>
Value unclamped(const O& op, Value sums, std::size_t axis) {
  std::vector<double> factors;
  for (const Real& m : op.mult) factors.push_back(m.value);
  std::optional<Axis> along;
  if (factors.size() > 1) along = Axis(static_cast<std::int64_t>(axis));
  const Value scale = per_channel(sums.graph(), factors, DType::F64, along, sums.rank());
  return round(sums * scale) + static_cast<double>(op.out_zp);
}

// The sum of f64 pieces [start, start + len) of `count`; of a count that is not known, one piece.
template <class Piece>
Value in_pieces(const Dim& count, std::int64_t most, Piece&& piece) {
  const auto known = count.try_value();
  if (!known || *known <= most) return cast_to(piece(Dim(0), count), DType::F64);
  Value total;
  for (std::int64_t start = 0; start < *known; start += most) {
    const Dim len = std::min(most, *known - start);
    total = sum_of(total, cast_to(piece(Dim(start), len), DType::F64));
  }
  return total;
}

Value part_of_axis(Value x, std::size_t axis, const Dim& start, const Dim& len) {
  if (x.dims()[axis] == len) return x;
  return narrow(x, {.axis = static_cast<std::int64_t>(axis), .start = start, .len = len});
}

Dim product_of(std::span<const Dim> dims) {
  return std::accumulate(dims.begin(), dims.end(), Dim(1), std::multiplies<>());
}

bool is_one(const Dim& d) { return d.is(1); }

// `dims` with sizes of 1 before them, up to a rank.
Dims with_leading_ones(const Dims& dims, std::size_t rank) {
  Dims out(rank - dims.size(), Dim(1));
  out.insert(out.end(), dims.begin(), dims.end());
  return out;
}

Dims joined_dims(std::span<const Dim> front, std::initializer_list<Dim> behind) {
  Dims out(front.begin(), front.end());
  out.insert(out.end(), behind);
  return out;
}

// The product without a bias, or with one a column, of operands that broadcast.
Value by_batches(const op::QMatmul& op, Value x, Value w, Value bias, const Dims& result) {
  const std::size_t batch = result.size() - 2;
  const Dims x_dims = with_leading_ones(x.dims(), result.size());
  const Dims w_dims = with_leading_ones(w.dims(), result.size());
  // The axes of w's batch up to the last that is not 1; examples along those behind them share w.
  const auto w_batch = std::span(w_dims).first(batch);
  const auto behind = std::find_if_not(w_batch.rbegin(), w_batch.rend(), is_one);
  const auto own = static_cast<std::size_t>(w_batch.rend() - behind);
  const auto front = std::span(result).first(own);
  const Dim rows = product_of(std::span(result).subspan(own, batch - own)) * result[batch];
  const Dim depth = x_dims.back();
  Dims x_wide = x_dims;
  std::copy(front.begin(), front.end(), x_wide.begin());
  std::vector<Value> operands{
      reshape_to(broadcast_to(reshape_to(x, x_dims), x_wide), joined_dims(front, {rows, depth})),
      broadcast_to(reshape_to(w, joined_dims(std::span(w_dims).first(own), {depth, result.back()})),
                   joined_dims(front, {depth, result.back()}))};
  if (bias.valid()) operands.push_back(bias);
  return reshape_to(x.graph().add_node(Op(op), operands)[0], result);
}

}  // namespace

bool is_broadcast_code_product(const Graph& graph, const Node& node) {
  if (!node.op.is<op::QMatmul>()) return false;
  std::vector<Dims> operands;
  for (const ValueId v : node.operands) operands.push_back(graph.type(v).dims);
  return !is_plain_code_product(operands);
}

std::optional<std::vector<Value>> plain_code_product(const Node& node,
                                                     std::span<const Value> operands) {
  const auto* op = node.op.as<op::QMatmul>();
  if (op == nullptr) return std::nullopt;
  std::vector<Dims> dims;
  for (const Value& v : operands) dims.push_back(v.dims());
  if (is_plain_code_product(dims)) return std::nullopt;
  const Dims& result = node.types[0].dims;
  const Value x = operands[0];
  const Value w = operands[1];
  Value bias = operands.size() == 3 ? operands[2] : Value();
  if (!bias.valid()) return std::vector{by_batches(*op, x, w, {}, result)};
  const Dims padded = with_leading_ones(bias.dims(), result.size());
  if (std::all_of(padded.begin(), padded.end() - 1, is_one)) {
    bias = broadcast_to(reshape_to(bias, {padded.back()}), {result.back()});
    return std::vector{by_batches(*op, x, w, bias, result)};
  }
  if (op->to == DType::I32) return std::vector{by_batches(*op, x, w, {}, result) + bias};
  const Value product = exact_sums(*op, x, w) + cast_to(bias, DType::F64);
  const CodeRange range = clamped_range(*op);
  const Value code = clamped(unclamped_codes(*op, product, result.size() - 1),
                             static_cast<double>(range.low), static_cast<double>(range.high));
  return std::vector{cast_to(code, op->to)};
}

Value exact_sums(const op::QMatmul& op, Value x, Value w) {
  const op::QMatmul sums = for_sums(op);
  return in_pieces(x.dims().back(), LongestSum, [&](const Dim& start, const Dim& len) {
    return q_matmul(part_of_axis(x, x.rank() - 1, start, len),
                    part_of_axis(w, w.rank() - 2, start, len), sums);
  });
}

Value exact_sums(const op::QConv2d& op, Value x, Value w) {
  const op::QConv2d sums = for_sums(op);
  const Dims& in = x.dims();
  const Dim each = w.dims()[1];
  const auto taps = (w.dims()[2] * w.dims()[3]).try_value().value_or(1);
  const std::int64_t most = std::max<std::int64_t>(1, LongestSum / std::max<std::int64_t>(taps, 1));
  return in_pieces(each, most, [&](const Dim& start, const Dim& len) {
    if (len == each) return q_conv2d(x, w, sums);
    const Value groups = reshape_to(x, {in[0], Dim(op.groups), each, in[2], in[3]});
    const Value part = reshape_to(part_of_axis(groups, 2, start, len),
                                  {in[0], Dim(op.groups) * len, in[2], in[3]});
    return q_conv2d(part, part_of_axis(w, 1, start, len), sums);
  });
}

Value unclamped_codes(const op::QMatmul& op, Value sums, std::size_t axis) {
  return unclamped(op, sums, axis);
}
Value unclamped_codes(const op::QConv2d& op, Value sums, std::size_t axis) {
  return unclamped(op, sums, axis);
}

}  // namespace ricci::rule
