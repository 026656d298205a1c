// Further builders of quantisation: codes of 4 bits in pairs, products on weights in few bits with
// low-rank corrections, and what a value was rounded to.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ricci/build/build.h"

namespace ricci {

/// Codes of 4 bits [.., n], n even, as bytes [.., n/2]: the first of a pair in the low half.
Value pack_nibbles(Value codes, std::source_location loc = std::source_location::current());
/// The other way: u8 codes 0 to 15, or with `is_signed` i8 codes -8 to 7.
Value unpack_nibbles(Value bytes, bool is_signed = false,
                     std::source_location loc = std::source_location::current());

/// dequant_matmul on a weight given as a list of its parts.
Value dequant_matmul(Value x, std::span<const Value> weight, op::DequantMatmul attrs,
                     std::source_location loc = std::source_location::current());
/// The same with the transpose of the weight: the gradient of it by x.
Value dequant_matmul_t(Value dy, std::span<const Value> weight, op::DequantMatmul attrs,
                       std::source_location loc = std::source_location::current());

/// x·Ŵ + scale·(x·a)·b: a low-rank correction of a weight in few bits, which stays as it is.
Value lora_dequant_matmul(Value x, std::span<const Value> weight, Value a, Value b, double scale,
                          op::DequantMatmul attrs,
                          std::source_location loc = std::source_location::current());
/// Rows x [m, k] with corrections a [A, k, r], b [A, r, n] of which each row picks one.
///   y[i] = base[i] + scale·(x[i]·a[p])·b[p], p = adapter[i]
Value lora_selected(Value x, Value base, Value a, Value b, Value adapter, double scale,
                    std::source_location loc = std::source_location::current());

/// The bits a value was rounded to: it is, or views, reorders, repeats or casts, what fake_quantize
/// or fake_quantize_lsq gave.
[[nodiscard]] std::optional<std::int64_t> quantized_weight_bits(const Graph& graph, ValueId value);

}  // namespace ricci
