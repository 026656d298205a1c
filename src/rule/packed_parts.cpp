#include "rule/packed_parts.h"

#include "ricci/build/quant.h"
#include "ricci/quant/tiny_float.h"

#include "rule/derivative_parts.h"

namespace ricci::rule {
namespace {

using quant::SchemeKind;

Value times(Value a, Value b) { return b.valid() ? a * b : a; }

}  // namespace

bool WeightParts::has_codes() const {
  return size_.scheme.kind == SchemeKind::Int8Block ||
         size_.scheme.kind == SchemeKind::Int8BlockAsym;
}

Value WeightParts::nibbles() const {
  const Value flat = reshape_to(parts_[0], {*parts_[0].type().numel()});
  const Value all = unpack_nibbles(flat);
  return reshape_to(narrow(all, {.axis = 0, .start = 0, .len = size_.k * size_.n}),
                    {size_.k, size_.n});
}

Value WeightParts::codes() const {
  Value q;
  switch (size_.scheme.kind) {
    case SchemeKind::Int8Block: return dequantize(parts_[0]);
    case SchemeKind::Int8BlockAsym: q = dequantize(parts_[0]); break;
    case SchemeKind::Int4Block: q = cast_to(nibbles(), DType::F32); break;
    case SchemeKind::Fp8E4m3: return dequantize(parts_[0], {.from = CodeKind::E4m3});
    case SchemeKind::Fp8E5m2: return dequantize(parts_[0], {.from = CodeKind::E5m2});
    case SchemeKind::Nvfp4Block: {
      std::vector<double> values;
      for (int code = 0; code < 16; ++code) {
        values.push_back(quant::fp4_value(static_cast<std::uint8_t>(code)));
      }
      const Value table =
          parts_[0].graph().constant(Tensor::from_numbers<double>(f32({16}), values));
      return gather(table, cast_to(nibbles(), DType::I32), {.axis = 0});
    }
    case SchemeKind::Packed: return {};
  }
  return parts_.size() > 2 ? q - spread(parts_[2]) : q;
}

Value WeightParts::scales() const {
  if (parts_.size() < 2) return {};
  if (!size_.scheme.scale_is_fp8()) return spread(parts_[1]);
  return spread(dequantize(parts_[1], {.from = CodeKind::E4m3})) * parts_[2];
}

Value WeightParts::spread(Value part) const {
  const Dims whole{size_.k, size_.n};
  if (part.rank() == 1) return broadcast_to(part, whole);
  const std::int64_t group = size_.scheme.group();
  const Dim groups = part.dims()[0];
  const Value apart =
      broadcast_to(reshape_to(part, {groups, 1, size_.n}), {groups, group, size_.n});
  const Value rows = reshape_to(apart, {groups * Dim(group), size_.n});
  return narrow(rows, {.axis = 0, .start = 0, .len = size_.k});
}

Value WeightParts::gathered(Value v, Value like) const {
  if (like.rank() == 1) return sum(v, {0});
  const std::int64_t group = size_.scheme.group();
  const Dim groups = like.dims()[0];
  const Dim missing = groups * Dim(group) - Dim(size_.k);
  const Value whole = pad(v, zero_like(v), {.low = {0, 0}, .high = {missing, 0}});
  return sum(reshape_to(whole, {groups, group, size_.n}), {1});
}

Value WeightParts::by_codes(Value dw) const { return has_codes() ? times(dw, scales()) : Value(); }

Value WeightParts::by_scales(Value dw) const {
  if (size_.scheme.scale_is_fp8()) return {};
  return gathered(dw * codes(), parts_[1]);
}

Value WeightParts::by_offsets(Value dw) const {
  switch (size_.scheme.kind) {
    case SchemeKind::Int8BlockAsym:
    case SchemeKind::Int4Block: return -gathered(dw * scales(), parts_[2]);
    case SchemeKind::Nvfp4Block: {
      const Value block_scales = spread(dequantize(parts_[1], {.from = CodeKind::E4m3}));
      return reshape_to(sum(dw * codes() * block_scales), {1});
    }
    default: return {};
  }
}

Value WeightParts::tangent(Value codes_tangent, Value scales_tangent, Value offsets_tangent) const {
  Value t;
  if (codes_tangent.valid() && has_codes()) t = times(codes_tangent, scales());
  if (scales_tangent.valid()) t = sum_of(t, codes() * spread(scales_tangent));
  if (!offsets_tangent.valid()) return t;
  switch (size_.scheme.kind) {
    case SchemeKind::Int8BlockAsym:
    case SchemeKind::Int4Block: return sum_of(t, -spread(offsets_tangent) * scales());
    case SchemeKind::Nvfp4Block: {
      const Value block_scales = spread(dequantize(parts_[1], {.from = CodeKind::E4m3}));
      return sum_of(t, codes() * block_scales * offsets_tangent);
    }
    default: return t;
  }
}

}  // namespace ricci::rule
