// Derivatives and batches of products with weights in few bits.
#include <array>

#include "ricci/quant/scheme.h"

#include "op/packed_weight.h"
#include "rule/control/loop_rewriting.h"
#include "rule/derivative_parts.h"
#include "rule/merged_rows.h"
#include "rule/packed_parts.h"
#include "rule/tables/batch_rules.h"
#include "rule/tables/jvp_rules.h"
#include "rule/tables/vjp_rules.h"

namespace ricci::rule {
namespace {

std::vector<Value> weight_of(std::span<const Value> operands) {
  return {operands.begin() + 1, operands.end()};
}

// x·Ŵᵀ for x·Ŵ, and the other way round.
Value transposed_product(const op::DequantMatmul& op, std::int64_t k, Value g,
                         std::span<const Value> operands) {
  op::DequantMatmul other{.scheme = op.scheme, .transpose = !op.transpose};
  if (other.transpose) other.depth = k;
  std::vector<Value> all = weight_of(operands);
  all.insert(all.begin(), g);
  return g.graph().add_node(Op(other), all)[0];
}

// [.., n] → [rows, n] in f32, or f64
Value as_wide_rows(Value v) {
  Dim rows = 1;
  for (std::size_t i = 0; i + 1 < v.rank(); ++i) rows = rows * v.dims()[i];
  return cast_to(reshape_to(v, {rows, v.dims().back()}), widened(v.dtype()));
}

}  // namespace

// [dequant-vjp] dx through the transposed product; dŴ only where a part of the weight asks for it
Cotangents vjp(const op::DequantMatmul& op, const VjpContext& c) {
  Cotangents out = c.none();
  const Value g = c.cotangent();
  const PackedWeight size = packed_weight(op, types_of(c.operands()));
  if (c.needs(0)) out[0] = transposed_product(op, size.k, g, c.operands());
  bool wanted = false;
  for (std::size_t k = 1; k < c.size(); ++k) wanted = wanted || c.needs(k);
  if (!wanted) return out;
  const Value x = as_wide_rows(c[0]);
  const Value dy = as_wide_rows(g);
  const Value product =
      op.transpose ? matmul(transpose_last(dy), x) : matmul(transpose_last(x), dy);
  const Value dw = cast_to(product, DType::F32);
  const WeightParts parts(size, weight_of(c.operands()));
  if (c.needs(1)) out[1] = parts.by_codes(dw);
  if (c.size() > 2 && c.needs(2)) out[2] = parts.by_scales(dw);
  if (c.size() > 3 && c.needs(3)) out[3] = parts.by_offsets(dw);
  return out;
}

// [dequant-rest] t_x·Ŵ + x·t_Ŵ
Tangents jvp(const op::DequantMatmul& op, JvpContext& c) {
  const PackedWeight size = packed_weight(op, types_of(c.operands()));
  Value t;
  if (c.live(0)) {
    std::vector<Value> operands = weight_of(c.operands());
    operands.insert(operands.begin(), c.tangent(0));
    op::DequantMatmul exact = op;
    exact.int8_activations = false;
    t = c.graph().add_node(Op(exact), operands)[0];
  }
  const auto tangent = [&](std::size_t k) { return k < c.size() ? c.tangent(k) : Value(); };
  const WeightParts parts(size, weight_of(c.operands()));
  const Value dw = parts.tangent(tangent(1), tangent(2), tangent(3));
  if (dw.valid()) {
    const Value x = as_wide_rows(c[0]);
    const Value wide = cast_to(dw, x.dtype());
    const Value by_weight = matmul(x, op.transpose ? transpose_last(wide) : wide);
    const Type& y = c.node().types[0];
    t = sum_of(t, reshape_to(cast_to(by_weight, y.dtype), y.dims));
  }
  return {t};
}

// Examples of a shared weight are more rows; others are taken one after the other.
BatchedValues batch(const op::DequantMatmul& op, const VmapContext& c) {
  bool own_weight = false;
  for (std::size_t k = 1; k < c.size(); ++k) own_weight = own_weight || c.batched(k);
  if (!own_weight) {
    std::vector<Value> operands;
    for (std::size_t k = 0; k < c.size(); ++k) operands.push_back(c[k]);
    return c.emit(Op(op), operands);
  }
  op::Scan loop{.length = c.batch(), .num_carry = 0};
  std::vector<std::size_t> order;  // what all examples share comes first
  for (const bool batched : {false, true}) {
    for (std::size_t k = 0; k < c.size(); ++k) {
      if (c.batched(k) == batched) order.push_back(k);
    }
  }
  std::vector<Value> operands;
  std::vector<Type> examples;
  for (const std::size_t k : order) {
    operands.push_back(c[k]);
    examples.push_back(c.type(k));
    ++(c.batched(k) ? loop.num_xs : loop.num_bcast);
  }
  const auto body = make_body(
      "body", examples,
      [&](Graph& graph, std::span<const Value> in) {
        std::vector<Value> own(order.size());
        for (std::size_t i = 0; i < order.size(); ++i) own[order[i]] = in[i];
        return graph.add_node(Op(op), own);
      },
      c.graph());
  return {add_scan(c.graph(), loop, operands, body)[0]};
}

// dx[i] = Σ_j dy[i, j]·Ŵ[expert_idx[i, j]]ᵀ: a product for each pick, added up
Cotangents vjp(const op::DequantGroupedMatmul& op, const VjpContext& c) {
  Cotangents out = c.none();
  const PackedWeight size = packed_weight(op, types_of(c.operands()));
  const bool picks = c[2].rank() == 2;
  Value dy = c.cotangent();
  Value experts = c[2];
  const Dims per_row = experts.dims();
  if (picks) {
    const Dim all = per_row[0] * per_row[1];
    dy = reshape_to(dy, {all, dy.dims()[2]});
    experts = reshape_to(experts, {all});
  }
  op::DequantGroupedMatmul other = op;
  other.transpose = !op.transpose;
  other.depth = size.k;
  Value dx = dequant_grouped_matmul(dy, c[1], experts, other);
  if (picks) dx = sum(reshape_to(dx, {per_row[0], per_row[1], dx.dims()[1]}), {1});
  out[0] = dx;
  return out;
}

// Examples of shared experts are more rows; experts of their own follow each other.
BatchedValues batch(const op::DequantGroupedMatmul& op, const VmapContext& c) {
  Value w = c[1];
  Value experts = c.folded(2);
  if (c.batched(1)) {
    std::vector<Type> types;
    for (std::size_t k = 0; k < c.size(); ++k) types.push_back(c.type(k));
    w = c.folded(1);
    experts = merge_front(merged_rows(c.lifted(2), Dim(packed_weight(op, types).matrices)));
  }
  return {c.unfolded(c.emit(Op(op), std::array{c.folded(0), w, experts})[0].value)};
}

BatchedValues batch(const op::DequantMoeWeights& op, const VmapContext& c) {
  return {c.unfolded(c.emit(Op(op), std::array{c.folded(0)})[0].value)};
}

}  // namespace ricci::rule
