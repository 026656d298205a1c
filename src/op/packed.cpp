#include "ricci/op/packed.h"

#include <optional>

#include <fmt/format.h>

#include "ricci/support/checked.h"

#include "op/index_rules.h"
#include "op/packed_weight.h"

namespace ricci {
namespace {

using quant::Scheme;
using quant::SchemeKind;

bool has_nibbles(const Scheme& s) {
  return s.kind == SchemeKind::Int4Block || s.kind == SchemeKind::Nvfp4Block;
}
DType code_dtype(const Scheme& s) {
  return s.kind == SchemeKind::Int8Block || s.kind == SchemeKind::Int8BlockAsym ? DType::I8
                                                                                : DType::U8;
}

Scheme require_scheme(const InferContext& in, const std::string& name, bool block_format) {
  const auto scheme = quant::scheme_from_name(name);
  if (!scheme || (block_format && !scheme->is_packed())) {
    in.reject("c1",
              fmt::format("'{}' is no {}", name, block_format ? "block format" : "weight scheme"),
              "such are q4_0, q8_0, q4_k, q6_k, mxfp4; and for single matrices int8_block_32, "
              "int4_block_32, fp8_e4m3, nvfp4_block");
  }
  return *scheme;
}

// The known last size of x.
std::int64_t require_last(const InferContext& in) {
  if (in[0].rank() < 1 || !in[0].dims.back().is_static()) {
    in.reject("c3",
              fmt::format("x is {}, which has no last size that is known", in[0].to_string()));
  }
  return in[0].dims.back().value();
}

std::optional<std::int64_t> elements(const Type& t) { return t.numel(); }

// k and n from the operands; nothing where they do not say.
std::optional<PackedWeight> sizes_from(const op::DequantMatmul& op, const Scheme& scheme,
                                       std::span<const Type> operands) {
  const Type& w = operands[1];
  const auto last = operands[0].dims.empty() ? std::nullopt : operands[0].dims.back().try_value();
  const auto bytes = elements(w);
  if (!last || !bytes) return std::nullopt;
  PackedWeight out{scheme};
  if (scheme.is_packed()) {
    const quant::FormatInfo& format = quant::info(scheme.format);
    if (op.transpose) {
      out.n = *last;
      const std::int64_t blocks = out.n == 0 ? 0 : *bytes / format.block_bytes / out.n;
      out.k = op.depth.value_or(blocks * format.block_length);
    } else {
      out.k = *last;
      const std::int64_t row = out.k / format.block_length * format.block_bytes;
      out.n = row == 0 ? 0 : *bytes / row;
    }
    return out;
  }
  // Nibbles lie in a row of bytes: their sizes are those of the scales.
  const Type& sized = has_nibbles(scheme) ? operands[2] : w;
  if (sized.rank() != 2 || !sized.is_static()) return std::nullopt;
  out.n = sized.dims[1].value();
  if (!has_nibbles(scheme)) {
    out.k = w.dims[0].value();
  } else if (!op.transpose) {
    out.k = *last;
  } else {
    out.k = op.depth.value_or(out.n == 0 ? 0 : 2 * *bytes / out.n);
  }
  return out;
}

void require_parts(const InferContext& in, const Scheme& scheme) {
  const std::size_t given = in.operands.size() - 2;
  const bool fp8 = scheme.kind == SchemeKind::Fp8E4m3 || scheme.kind == SchemeKind::Fp8E5m2;
  // Zero points that a scheme does not use are tolerated beside its scales.
  const std::size_t most = scheme.is_packed() ? 0 : 2;
  std::size_t least = 1;
  if (scheme.is_packed() || fp8) least = 0;
  if (scheme.kind == SchemeKind::Int8BlockAsym || scheme.kind == SchemeKind::Nvfp4Block) least = 2;
  if (given < least || given > most) {
    in.reject("c5", fmt::format("{} takes {} to {} parts beside the codes, not {}",
                                quant::to_string(scheme), least, most, given));
  }
}

void require_part_dtypes(const InferContext& in, const Scheme& scheme) {
  bool fits = is_float(in[0].dtype) && in[1].dtype == code_dtype(scheme);
  if (in.operands.size() > 2) {
    fits = fits && in[2].dtype == (scheme.scale_is_fp8() ? DType::U8 : DType::F32);
  }
  if (in.operands.size() > 3) fits = fits && in[3].dtype == DType::F32;
  if (fits) return;
  in.reject("c2",
            fmt::format("x is {} and the codes of {} are {}", name(in[0].dtype),
                        quant::to_string(scheme), name(in[1].dtype)),
            fmt::format("codes are {}, scales and zero points f32 (scales of nvfp4_block u8)",
                        name(code_dtype(scheme))));
}

// A column of a packed weight is whole blocks.
void require_whole_blocks(const InferContext& in, std::string_view label, const Scheme& scheme,
                          std::int64_t k) {
  if (!scheme.is_packed()) return;
  const std::int64_t length = quant::info(scheme.format).block_length;
  if (k % length == 0) return;
  in.reject(
      label,
      fmt::format("the depth is {}, but blocks of {} are {} long", k, quant::to_string(scheme),
                  length),
      fmt::format("pad x and the weight to a depth of {}, or take a scheme with shorter blocks",
                  (k + length - 1) / length * length));
}

// Do all parts have the sizes the scheme gives them?
bool parts_fit(const PackedWeight& weight, std::span<const Type> operands) {
  const Scheme& s = weight.scheme;
  const quant::MatrixSizes sizes = quant::sizes_of(s, weight.k, weight.n);
  if (elements(operands[1]) != sizes.code_bytes) return false;
  const auto rows = [&](const Type& t, std::int64_t groups) {
    return t.dims == Dims{Dim(groups), Dim(weight.n)};
  };
  const std::int64_t group = s.group();
  const std::int64_t groups = group == 0 ? 1 : (weight.k + group - 1) / group;
  const bool by_column = group == 0;
  for (std::size_t k = 2; k < operands.size(); ++k) {
    const bool global = k == 3 && s.scale_is_fp8();
    const bool fits = global      ? operands[k].dims == Dims{Dim(1)}
                      : by_column ? operands[k].dims == Dims{Dim(weight.n)}
                                  : rows(operands[k], groups);
    if (!fits) return false;
  }
  return true;
}

std::int64_t matrix_bytes(const Scheme& scheme, std::int64_t k, std::int64_t n) {
  const quant::FormatInfo& format = quant::info(scheme.format);
  return saturating_mul(saturating_mul(k / format.block_length, format.block_bytes), n);
}

std::int64_t require_stack(const InferContext& in, std::string_view label, const Scheme& scheme,
                           std::size_t operand, std::int64_t k, std::int64_t n) {
  const auto bytes = elements(in[operand]);
  const std::int64_t each = matrix_bytes(scheme, k, n);
  if (!bytes || each == 0 || *bytes % each != 0) {
    in.reject(label, fmt::format("'w' ({}) is no whole number of matrices of {} bytes",
                                 in[operand].to_string(), each));
  }
  return *bytes / each;
}

}  // namespace

PackedWeight packed_weight(const op::DequantMatmul& op, std::span<const Type> operands) {
  return sizes_from(op, *quant::scheme_from_name(op.scheme), operands).value();
}

PackedWeight packed_weight(const op::DequantGroupedMatmul& op, std::span<const Type> operands) {
  PackedWeight out{*quant::scheme_from_name(op.scheme)};
  out.n = op.n;
  out.k = op.depth.value_or(operands[0].dims.back().try_value().value_or(0));
  out.matrices = *elements(operands[1]) / matrix_bytes(out.scheme, out.k, out.n);
  return out;
}

PackedWeight packed_weight(const op::DequantMoeWeights& op, std::span<const Type> operands) {
  PackedWeight out{*quant::scheme_from_name(op.scheme), op.k, op.n, 1};
  out.matrices = *elements(operands[0]) / matrix_bytes(out.scheme, out.k, out.n);
  return out;
}

Inferred infer(const op::DequantMatmul& op, const InferContext& in) {
  const Scheme scheme = require_scheme(in, op.scheme, false);
  require_parts(in, scheme);
  require_part_dtypes(in, scheme);
  const std::int64_t last = require_last(in);
  require_whole_blocks(in, "c4", scheme, op.transpose ? op.depth.value_or(0) : last);
  const auto weight = sizes_from(op, scheme, in.operands);
  if (!weight || !parts_fit(*weight, in.operands) ||
      (op.transpose ? weight->n : weight->k) != last) {
    std::string parts = in[1].to_string();
    for (std::size_t k = 2; k < in.operands.size(); ++k) parts += ", " + in[k].to_string();
    in.reject("c4", fmt::format("the parts {} are no weight in {} that goes with x {}", parts,
                                op.scheme, in[0].to_string()));
  }
  if (op.depth && *op.depth != weight->k) {
    in.reject("c6", fmt::format("the depth is {}, but the weight's is {}", *op.depth, weight->k));
  }
  Dims out = in[0].dims;
  out.back() = op.transpose ? weight->k : weight->n;
  return in[0].with(std::move(out));
}

Inferred infer(const op::DequantGroupedMatmul& op, const InferContext& in) {
  const Scheme scheme = require_scheme(in, op.scheme, true);
  if (!is_float(in[0].dtype) || in[1].dtype != DType::U8) {
    in.reject("c2", fmt::format("x is {} and w is {}", name(in[0].dtype), name(in[1].dtype)));
  }
  if (in[0].rank() != 2 || !in[0].dims[1].is_static()) {
    in.reject("c3", fmt::format("x is {}, not [M, K] with a known K", in[0].to_string()));
  }
  if (op.n < 1 || (op.transpose && !op.depth)) {
    in.reject("c7", fmt::format("n is {}{}", op.n, op.transpose ? " and no depth is given" : ""));
  }
  const std::int64_t columns = in[0].dims[1].value();
  const std::int64_t k = op.depth.value_or(columns);
  require_whole_blocks(in, "c3", scheme, k);
  if (columns != (op.transpose ? op.n : k)) {
    in.reject("c3", fmt::format("x {} does not go with matrices of {} x {} in {}",
                                in[0].to_string(), k, op.n, op.scheme));
  }
  (void)require_stack(in, "c4", scheme, 1, k, op.n);
  const Dims& picked = in[2].dims;
  if (picked.empty() || picked.size() > 2 || picked[0] != in[0].dims[0]) {
    in.reject("c5", fmt::format("'expert_idx' ({}) does not go with 'x' ({})", in[2].to_string(),
                                in[0].to_string()));
  }
  require_indices(in, "c6", 2);
  Dims out = picked;
  out.push_back(op.transpose ? k : op.n);
  return in[0].with(std::move(out));
}

Inferred infer(const op::DequantMoeWeights& op, const InferContext& in) {
  const Scheme scheme = require_scheme(in, op.scheme, true);
  if (in[0].dtype != DType::U8) in.reject("c2", fmt::format("w is {}", name(in[0].dtype)));
  if (op.k < 1 || op.n < 1) {
    in.reject("c3", fmt::format("matrices of {} x {} are none in {}", op.k, op.n, op.scheme));
  }
  require_whole_blocks(in, "c3", scheme, op.k);
  const std::int64_t matrices = require_stack(in, "c4", scheme, 0, op.k, op.n);
  return Type{DType::F32, {Dim(matrices), Dim(op.k), Dim(op.n)}};
}

}  // namespace ricci
