#include "ricci/build/quant.h"

#include "ricci/build/reduce.h"
#include "ricci/compat/quant.h"

namespace ricci {

Value pack_nibbles(Value codes, std::source_location loc) {
  Dims dims = codes.dims();
  const auto pairs = dims.empty() ? std::nullopt : Dim::divide(dims.back(), 2);
  if (!pairs || size_of(codes.dtype()) != 1) {
    throw UserError(ErrorCode::Shape,
                    "codes of 4 bits are packed from i8 or u8 with a last size that is even, not " +
                        codes.type().to_string());
  }
  dims.back() = *pairs;
  const std::int64_t last = static_cast<std::int64_t>(codes.rank());
  Dims split = dims;
  split.emplace_back(2);
  const Value apart = reshape_to(bitwise_and(cast_to(codes, DType::U8, loc), 15, loc), split, loc);
  const auto half = [&](std::int64_t which) {
    return reshape_to(narrow(apart, {.axis = last, .start = which, .len = 1}, loc), dims, loc);
  };
  return bitwise_or(half(0), shift_left(half(1), 4, loc), loc);
}

Value unpack_nibbles(Value bytes, bool is_signed, std::source_location loc) {
  Dims column = bytes.dims();
  column.emplace_back(1);
  Dims dims = bytes.dims();
  dims.back() = dims.back() * Dim(2);
  const Value low = reshape_to(bitwise_and(bytes, 15, loc), column, loc);
  const Value high = reshape_to(shift_right(bytes, 4, loc), column, loc);
  const Value codes = reshape_to(
      concat({low, high}, {.axis = static_cast<std::int64_t>(bytes.rank())}, loc), dims, loc);
  if (!is_signed) return codes;
  // The sign is the fourth bit: (code ^ 8) - 8.
  return cast_to(bitwise_xor(codes, 8, loc), DType::I8, loc) - 8.0;
}

Value fake_quantize_backward(Value x, Value dy, op::FakeQuantizeBackward attrs,
                             std::source_location loc) {
  const op::FakeQuantize forward{
      .bits = attrs.bits, .axis = attrs.axis, .group = attrs.group, .asymmetric = attrs.asymmetric};
  NodeSpec spec{.op = Op(forward),
                .operands = {x.id()},
                .wanted = {false, true},
                .provenance = {.label = {}, .where = SourcePosition::from(loc), .origin = {}}};
  const NodeId id = x.graph().add(std::move(spec));
  return fake_quantize_backward(x, x.graph().value({id, 1}), dy, attrs, loc);
}

namespace {

Value one_gradient(Value x, Value scale, Value dy, const op::FakeQuantizeLsqBackward& attrs,
                   std::uint32_t which, std::source_location loc) {
  const std::vector<Value> both = x.graph().add_node(Op(attrs), std::array{x, scale, dy}, {}, loc);
  both[which].graph().set_wanted(both[1 - which].id(), false);
  return both[which];
}

}  // namespace

Value fake_quantize_lsq_backward_x(Value x, Value scale, Value dy,
                                   op::FakeQuantizeLsqBackward attrs, std::source_location loc) {
  return one_gradient(x, scale, dy, attrs, 0, loc);
}
Value fake_quantize_lsq_backward_scale(Value x, Value scale, Value dy,
                                       op::FakeQuantizeLsqBackward attrs,
                                       std::source_location loc) {
  return one_gradient(x, scale, dy, attrs, 1, loc);
}

Value dequant_matmul(Value x, std::span<const Value> weight, op::DequantMatmul attrs,
                     std::source_location loc) {
  std::vector<Value> operands{x};
  operands.insert(operands.end(), weight.begin(), weight.end());
  return x.graph().add_node(Op(std::move(attrs)), operands, {}, loc)[0];
}

Value dequant_matmul_t(Value dy, std::span<const Value> weight, op::DequantMatmul attrs,
                       std::source_location loc) {
  attrs.transpose = true;
  return dequant_matmul(dy, weight, std::move(attrs), loc);
}

Value lora_dequant_matmul(Value x, std::span<const Value> weight, Value a, Value b, double scale,
                          op::DequantMatmul attrs, std::source_location loc) {
  const Value base = dequant_matmul(x, weight, std::move(attrs), loc);
  Value rows = x.rank() == 1 ? reshape_to(x, {1, x.dims()[0]}, loc) : x;
  const Value correction = matmul(matmul(rows, a, {}, loc), b, {}, loc) * scale;
  return base + reshape_to(correction, base.dims(), loc);
}

Value lora_selected(Value x, Value base, Value a, Value b, Value adapter, double scale,
                    std::source_location loc) {
  const Value inner = grouped_matmul(x, a, adapter, {}, loc);
  return base + grouped_matmul(inner, b, adapter, {}, loc) * scale;
}

// [qat-weight-grad]
std::optional<std::int64_t> quantized_weight_bits(const Graph& graph, ValueId value) {
  while (true) {
    const Node& node = graph.node(value.node);
    if (const auto* fake = node.op.as<op::FakeQuantize>()) {
      return value.result == 0 ? std::optional(fake->bits) : std::nullopt;
    }
    if (const auto* learned = node.op.as<op::FakeQuantizeLsq>()) return learned->bits;
    const bool same = node.op.is<op::Reshape>() || node.op.is<op::Transpose>() ||
                      node.op.is<op::Expand>() || node.op.is<op::Cast>();
    if (!same) return std::nullopt;
    value = node.operands[0];
  }
}

}  // namespace ricci
