// Products with weights in few bits, decoded one matrix at a time.
#include "ricci/op/packed.h"

#include <algorithm>
#include <cmath>

#include "ricci/quant/scheme.h"

#include "op/packed_weight.h"
#include "rule/code_rounding.h"
#include "rule/tables/eval_rules.h"
#include "rule/tables/lower_rules.h"

namespace ricci::rule {
namespace {

std::vector<Type> operand_types(const EvalContext& c) {
  std::vector<Type> out;
  for (std::size_t k = 0; k < c.operands(); ++k) out.push_back(c.tensor(k).type());
  return out;
}

std::vector<float> floats(const Tensor& t) {
  const auto numbers = t.numbers<double>();
  return {numbers.begin(), numbers.end()};
}

// Ŵ [k, n] of a block format.
std::vector<float> decoded(const PackedWeight& weight, std::span<const std::byte> codes) {
  std::vector<float> out(static_cast<std::size_t>(weight.k * weight.n));
  quant::decode_matrix(weight.scheme, weight.k, weight.n, {.codes = codes}, out);
  return out;
}

std::vector<float> decoded(const PackedWeight& weight, const EvalContext& c) {
  const Tensor codes = c.tensor(1).contiguous();
  quant::MatrixParts parts{.codes = codes.bytes()};
  const bool has_zeros = quant::sizes_of(weight.scheme, weight.k, weight.n).zero_points > 0;
  std::vector<float> scales;
  std::vector<float> offsets;
  Tensor bytes;
  if (c.operands() > 2) {
    if (weight.scheme.scale_is_fp8()) {
      bytes = c.tensor(2).contiguous();
      parts.fp8_scales = bytes.bytes();
    } else {
      parts.scales = scales = floats(c.tensor(2));
    }
  }
  if (c.operands() > 3) {
    offsets = floats(c.tensor(3));
    if (weight.scheme.scale_is_fp8()) {
      parts.global = offsets[0];
    } else if (has_zeros) {
      parts.zero_points = offsets;
    }
  }
  // Zero points left out are 0.
  if (has_zeros && offsets.empty()) {
    offsets.assign(scales.size(), 0);
    parts.zero_points = offsets;
  }
  std::vector<float> out(static_cast<std::size_t>(weight.k * weight.n));
  quant::decode_matrix(weight.scheme, weight.k, weight.n, parts, out);
  return out;
}

// Rounds rows to 8 bits in blocks of 32, each with a scale of its own.
void round_to_int8(std::vector<double>& x, std::int64_t columns, const CodeRounding& rounded) {
  constexpr std::int64_t Block = 32;
  for (std::size_t row = 0; columns > 0 && row < x.size();
       row += static_cast<std::size_t>(columns)) {
    for (std::int64_t first = 0; first < columns; first += Block) {
      const std::span block(x.data() + row + first,
                            static_cast<std::size_t>(std::min(Block, columns - first)));
      double largest = 0;
      for (const double v : block) largest = std::isnan(v) ? v : std::max(largest, std::fabs(v));
      const double s = rounded(largest / 127);
      for (double& v : block) v = s == 0 ? 0 : std::nearbyint(rounded(v / s)) * s;
    }
  }
}

// The sum over k of one row and one column of Ŵ [k, n], or over n of one row of it.
double row_times(const double* row, const float* w, const PackedWeight& size, bool transposed,
                 std::int64_t column) {
  double total = 0;
  const std::int64_t depth = transposed ? size.n : size.k;
  for (std::int64_t i = 0; i < depth; ++i) {
    total +=
        row[i] * static_cast<double>(transposed ? w[column * size.n + i] : w[i * size.n + column]);
  }
  return total;
}

}  // namespace

// y[.., j] = Σ_p x[.., p] Ŵ[p, j], or transposed Σ_j x[.., j] Ŵ[p, j]
void eval(const op::DequantMatmul& op, EvalContext& c) {
  const PackedWeight weight = packed_weight(op, operand_types(c));
  const std::vector<float> w = decoded(weight, c);
  RealNd x = c.real(0);
  const std::int64_t depth = x.dims.back();
  if (op.int8_activations) round_to_int8(x.data, depth, CodeRounding(c.dtype(0)));
  RealNd y(c.result_dims(0));
  const std::int64_t columns = y.dims.back();
  for (std::size_t at = 0; at < y.size(); ++at) {
    const std::int64_t row = static_cast<std::int64_t>(at) / columns;
    y.data[at] = row_times(x.data.data() + row * depth, w.data(), weight, op.transpose,
                           static_cast<std::int64_t>(at) % columns);
  }
  c.give(0, y);
}

// out[i, j…] = x[i]·Ŵ[e]
void eval(const op::DequantGroupedMatmul& op, EvalContext& c) {
  const PackedWeight weight = packed_weight(op, operand_types(c));
  const IntNd experts = c.indices(2, weight.matrices);
  const std::int64_t picks = experts.dims.size() == 1 ? 1 : experts.dims[1];
  const RealNd x = c.real(0);
  const std::int64_t depth = x.dims[1];
  const Tensor codes = c.tensor(1).contiguous();
  const auto bytes =
      static_cast<std::size_t>(codes.numel() / std::max<std::int64_t>(weight.matrices, 1));
  RealNd out(c.result_dims(0));
  const std::int64_t columns = out.dims.back();
  for (std::int64_t e = 0; e < weight.matrices; ++e) {
    const std::vector<float> w =
        decoded(weight, codes.bytes().subspan(static_cast<std::size_t>(e) * bytes, bytes));
    for (std::size_t r = 0; r < experts.size(); ++r) {
      if (experts.data[r] != e) continue;
      const double* row = x.data.data() + static_cast<std::int64_t>(r) / picks * depth;
      for (std::int64_t j = 0; j < columns; ++j) {
        out.data[r * static_cast<std::size_t>(columns) + static_cast<std::size_t>(j)] =
            row_times(row, w.data(), weight, op.transpose, j);
      }
    }
  }
  c.give(0, out);
}

// out[e] = Ŵ_e
void eval(const op::DequantMoeWeights& op, EvalContext& c) {
  const PackedWeight weight = packed_weight(op, operand_types(c));
  const Tensor codes = c.tensor(0).contiguous();
  const auto bytes =
      static_cast<std::size_t>(codes.numel() / std::max<std::int64_t>(weight.matrices, 1));
  RealNd out(c.result_dims(0));
  auto to = out.data.begin();
  for (std::int64_t e = 0; e < weight.matrices; ++e) {
    const std::vector<float> w =
        decoded(weight, codes.bytes().subspan(static_cast<std::size_t>(e) * bytes, bytes));
    to = std::copy(w.begin(), w.end(), to);
  }
  c.give(0, out);
}

namespace {

std::vector<Type> operand_types(const LowerContext& c) {
  std::vector<Type> out;
  for (std::size_t k = 0; k < c.operands.size(); ++k) {
    out.push_back({c.dtypes[k], Dims(c.operands[k].begin(), c.operands[k].end())});
  }
  return out;
}

loop::PackedProduct product_of(const PackedWeight& weight, bool transposed) {
  return {
      .scheme = weight.scheme, .transposed = transposed, .depth = weight.k, .columns = weight.n};
}

}  // namespace

Lowering lower(const op::DequantMatmul& op, const LowerContext& c) {
  loop::PackedProduct product = product_of(packed_weight(op, operand_types(c)), op.transpose);
  const StaticDims& x = c.operands[0];
  product.rows = loop::split_at(x, x.size() - 1).outer;
  product.int8_activations = op.int8_activations;
  return as_call(std::move(product));
}

Lowering lower(const op::DequantGroupedMatmul& op, const LowerContext& c) {
  const PackedWeight weight = packed_weight(op, operand_types(c));
  // A product of no experts is, for devices, one of a single matrix, and there is none: the
  // reference says which index is out of range.
  if (weight.matrices == 0) return as_call(loop::HostCall{});
  loop::PackedProduct product = product_of(weight, op.transpose);
  product.rows = c.operands[0][0];
  product.picks = c.operands[2].size() == 1 ? 1 : c.operands[2][1];
  product.experts = weight.matrices;
  return as_call(std::move(product));
}

Lowering lower(const op::DequantMoeWeights& op, const LowerContext& c) {
  const PackedWeight weight = packed_weight(op, operand_types(c));
  return as_call(loop::PackedDecoding{.scheme = weight.scheme,
                                      .matrices = weight.matrices,
                                      .depth = weight.k,
                                      .columns = weight.n});
}

}  // namespace ricci::rule
