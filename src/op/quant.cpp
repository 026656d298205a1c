#include "ricci/op/quant.h"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "op/code_range.h"
#include "op/infer_rules.h"

namespace ricci {

DType code_dtype_of(CodeKind kind) noexcept {
  switch (kind) {
    case CodeKind::I8:
    case CodeKind::I4: return DType::I8;
    case CodeKind::I16: return DType::I16;
    case CodeKind::U8:
    case CodeKind::U4:
    case CodeKind::E4m3:
    case CodeKind::E5m2: return DType::U8;
  }
  return DType::I8;
}

CodeRange range_of(CodeKind kind) {
  if (kind == CodeKind::I4) return {-8, 7};
  if (kind == CodeKind::U4) return {0, 15};
  return range_of(code_dtype_of(kind));
}

CodeRange range_of(DType dtype) {
  switch (dtype) {
    case DType::I8: return {-128, 127};
    case DType::U8: return {0, 255};
    case DType::I16: return {-32768, 32767};
    default:
      return {std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()};
  }
}

std::optional<CodeKind> code_kind_of(DType dtype) {
  switch (dtype) {
    case DType::I8: return CodeKind::I8;
    case DType::U8: return CodeKind::U8;
    case DType::I16: return CodeKind::I16;
    default: return std::nullopt;
  }
}

std::optional<ScaleSharing> scale_sharing(const Dims& x, const std::optional<Axis>& axis,
                                          const std::optional<std::int64_t>& group) {
  ScaleSharing out{x, {}, x, {Dim(1)}};
  if (group) {
    const auto at = static_cast<std::ptrdiff_t>(axis->index());
    const auto groups = Dim::divide(x[axis->index()], *group);
    if (!groups) return std::nullopt;
    out.scales = x;
    out.scales[axis->index()] = *groups;
    out.split = out.scales;
    out.split.insert(out.split.begin() + at + 1, Dim(*group));
    out.shared = {Axis(at + 1)};
  } else {
    if (axis) out.scales = {x[axis->index()]};
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (!axis || axis->index() != i) out.shared.emplace_back(static_cast<std::int64_t>(i));
    }
  }
  out.kept = out.split;
  for (const Axis a : out.shared) out.kept[a.index()] = 1;
  return out;
}

namespace {

// Scales and zero points for the channels of `x` (c2, c4), positive scales (c3).
template <class O>
void require_channels(const O& op, const InferContext& in, bool floating) {
  const Dim channels = op.axis ? in[0].dims[op.axis->index()] : Dim(1);
  const Dim scales(static_cast<std::int64_t>(op.scales.size()));
  const bool points_fit = op.zero_points.empty() || op.zero_points.size() == op.scales.size();
  if (channels != scales || !points_fit) {
    in.reject("c2", fmt::format("{} scales and {} zero points are given for {} channels of {}",
                                op.scales.size(), op.zero_points.size(), channels.to_string(),
                                in[0].to_string()));
  }
  for (const Real s : op.scales) {
    if (!(s.value > 0)) in.reject("c3", fmt::format("a scale is {}, not positive", s.value));
  }
  if (floating && !op.zero_points.empty()) {
    in.reject("c4", "codes that are floats have no zero points", "leave zero_points out");
  }
}

void require_bits(const InferContext& in, std::int64_t bits) {
  if (bits >= 2 && bits <= 16) return;
  in.reject("c2", fmt::format("bits is {}, not between 2 and 16", bits));
}

template <class O>
ScaleSharing require_sharing(const O& op, const InferContext& in, std::string_view label) {
  if (op.group && (!op.axis || *op.group < 1)) {
    in.reject(label, fmt::format("a group of {} has no axis, or no elements", *op.group),
              "name the axis along which elements share a scale");
  }
  auto sharing = scale_sharing(in[0].dims, op.axis, op.group);
  if (!sharing) {
    in.reject(label, fmt::format("groups of {} do not divide axis {} of {}", *op.group,
                                 op.axis->value, in[0].to_string()));
  }
  return *sharing;
}

void require_dims(const InferContext& in, std::string_view label, std::size_t k, const Dims& dims,
                  std::string_view what) {
  if (in[k].dims == dims) return;
  in.reject(label,
            fmt::format("{} is {} instead of {}", what, to_string(in[k].dims), to_string(dims)));
}

// Scales, or ranges in two rows.
Dims state_dims(const ScaleSharing& sharing, bool asymmetric) {
  Dims dims = sharing.scales;
  if (asymmetric) dims.insert(dims.begin(), Dim(2));
  return dims;
}

Dims lsq_scales(const std::optional<Axis>& axis, const Type& x) {
  return {axis ? x.dims[axis->index()] : Dim(1)};
}

}  // namespace

Inferred infer(const op::Quantize& op, const InferContext& in) {
  require_dtypes(in, "c1", 0, 1, dtypes::floats);
  require_channels(op, in, is_floating_code(op.to));
  if (!is_floating_code(op.to)) {
    const CodeRange range = range_of(op.to);
    for (const std::int64_t z : op.zero_points) {
      if (!range.holds(z)) in.reject("c3", fmt::format("a zero point is {}, which is no code", z));
    }
  }
  return in[0].with(code_dtype_of(op.to));
}

Inferred infer(const op::Dequantize& op, const InferContext& in) {
  const DType dtype = in[0].dtype;
  const bool fits = op.from ? code_dtype_of(*op.from) == dtype : code_kind_of(dtype).has_value();
  if (!fits) {
    in.reject("c1", fmt::format("{} holds no such codes", name(dtype)),
              "codes are i8, u8 or i16; those of 4 bits are kept in i8 and u8, FP8 in u8");
  }
  require_channels(op, in, op.from && is_floating_code(*op.from));
  if (!is_float(op.to)) in.reject("c5", fmt::format("{} is not floating", name(op.to)));
  return in[0].with(op.to);
}

Inferred infer(const op::FakeQuantize& op, const InferContext& in) {
  require_dtypes(in, "c1", 0, in.operands.size(), dtypes::floats);
  require_bits(in, op.bits);
  const bool stateful = op.scale_mode != ScaleMode::PerBatch;
  if (stateful != (in.operands.size() == 2)) {
    in.reject("c3", fmt::format("scales that are {} {} a state", name_of(op.scale_mode),
                                stateful ? "need" : "have no use for"));
  }
  if (!(op.decay.value >= 0 && op.decay.value <= 1)) {
    in.reject("c4", fmt::format("decay is {}, not between 0 and 1", op.decay.value));
  }
  const Dims state = state_dims(require_sharing(op, in, "c5"), op.asymmetric);
  if (stateful) require_dims(in, "c6", 1, state, "the state");
  return {{in[0], in[0].with(state)}, 1};
}

Inferred infer(const op::FakeQuantizeBackward& op, const InferContext& in) {
  require_dtypes(in, "c1", 0, 3, dtypes::floats);
  require_bits(in, op.bits);
  const Dims state = state_dims(require_sharing(op, in, "c3"), op.asymmetric);
  require_dims(in, "c4", 1, state, "scale");
  require_dims(in, "c5", 2, in[0].dims, "dy");
  return in[0];
}

Inferred infer(const op::FakeQuantizeLsq& op, const InferContext& in) {
  require_dtypes(in, "c1", 0, 2, dtypes::floats);
  require_bits(in, op.bits);
  require_dims(in, "c3", 1, lsq_scales(op.axis, in[0]), "scale");
  return in[0];
}

Inferred infer(const op::FakeQuantizeLsqBackward& op, const InferContext& in) {
  require_dtypes(in, "c1", 0, 3, dtypes::floats);
  require_bits(in, op.bits);
  require_dims(in, "c3", 1, lsq_scales(op.axis, in[0]), "scale");
  require_dims(in, "c4", 2, in[0].dims, "dy");
  return std::vector<Type>{in[0], in[1]};
}

namespace {

void require_code_operands(const InferContext& in) {
  const bool fits = (in[0].dtype == DType::I8 || in[0].dtype == DType::U8) &&
                    in[1].dtype == DType::I8 &&
                    (in.operands.size() < 3 || in[2].dtype == DType::I32);
  if (fits) return;
  in.reject(
      "c3",
      fmt::format("x is {} and w is {}{}", name(in[0].dtype), name(in[1].dtype),
                  in.operands.size() < 3 ? "" : fmt::format(", the bias {}", name(in[2].dtype))),
      "quantize them: x to i8 or u8, w to i8; a bias is i32, in units of both scales");
}

// How sums become codes (c5 to c8).
template <class O>
void require_rescaling(const O& op, const InferContext& in, const Dim& columns) {
  const auto fits = [&](std::size_t count) {
    return count == 1 || columns == Dim(static_cast<std::int64_t>(count));
  };
  if (!fits(op.w_zp.size()) || !fits(op.mult.size())) {
    in.reject("c5", fmt::format("w_zp has {} entries and mult has {}, for {} columns",
                                op.w_zp.size(), op.mult.size(), columns.to_string()));
  }
  if (op.to != DType::I8 && op.to != DType::U8 && op.to != DType::I32) {
    in.reject("c6", fmt::format("sums are not given in {}", name(op.to)), "choose i8, u8 or i32");
  }
  const bool plain = op.out_zp == 0 && !op.low && !op.high &&
                     std::ranges::all_of(op.mult, [](const Real& m) { return m.value == 1; });
  if (op.to == DType::I32 && !plain) {
    in.reject("c7", "sums in i32 are given as they are", "leave mult, out_zp, low and high out");
  }
  const CodeRange out = range_of(op.to);
  const CodeRange range = clamped_range(op);
  const bool in_w =
      std::ranges::all_of(op.w_zp, [](std::int64_t z) { return range_of(DType::I8).holds(z); });
  if (!range_of(in[0].dtype).holds(op.x_zp) || !in_w || !out.holds(op.out_zp) ||
      !out.holds(range.low) || !out.holds(range.high) || range.low > range.high) {
    in.reject("c8", fmt::format("x_zp {}, out_zp {} or the range {} to {} is outside its dtype",
                                op.x_zp, op.out_zp, range.low, range.high));
  }
}

}  // namespace

Inferred infer(const op::QMatmul& op, const InferContext& in) {
  const Dims& x = in[0].dims;
  const Dims& w = in[1].dims;
  const bool matrices = x.size() >= 2 && w.size() >= 2;
  const auto batch =
      matrices ? broadcast(std::span(x).first(x.size() - 2), std::span(w).first(w.size() - 2))
               : std::nullopt;
  if (!batch) {
    in.reject("c1", fmt::format("'x' ({}) and 'w' ({}) are no matrices, or batches that clash",
                                in[0].to_string(), in[1].to_string()));
  }
  if (x.back() != w[w.size() - 2]) {
    in.reject("c2", fmt::format("inner sizes differ: {} in 'x' and {} in 'w'", x.back().to_string(),
                                w[w.size() - 2].to_string()));
  }
  require_code_operands(in);
  Dims out = *batch;
  out.push_back(x[x.size() - 2]);
  out.push_back(w.back());
  if (in.operands.size() == 3) {
    const auto together = broadcast(in[2].dims, out);
    if (!together || *together != out) {
      in.reject("c4", fmt::format("the bias {} does not broadcast to {}", to_string(in[2].dims),
                                  to_string(out)));
    }
  }
  require_rescaling(op, in, w.back());
  return Type{op.to, std::move(out)};
}

Inferred infer(const op::QConv2d& op, const InferContext& in) {
  if (in[0].rank() != 4 || in[1].rank() != 4) {
    in.reject("c1", fmt::format("'x' ({}) and 'w' ({}) have not rank 4", in[0].to_string(),
                                in[1].to_string()));
  }
  require_code_operands(in);
  const op::Conv conv{
      .stride = op.stride, .padding = op.padding, .dilation = op.dilation, .groups = op.groups};
  const Op as_conv(conv);
  const std::array<Type, 2> floats{in[0].with(DType::F32), in[1].with(DType::F32)};
  Type out;
  try {
    out = infer(conv, InferContext(as_conv, floats, {}, in.registry)).types[0];
  } catch (const Rejection& r) {
    in.reject("c2", r.message, r.help);
  }
  const Dim& channels = in[1].dims[0];
  if (in.operands.size() == 3) require_dims(in, "c4", 2, {channels}, "the bias");
  require_rescaling(op, in, channels);
  return out.with(op.to);
}

}  // namespace ricci
