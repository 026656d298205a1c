#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ricci/array/ops.h"
#include "ricci/nn/adapters.h"
#include "ricci/nn/models.h"
#include "ricci/quant/scheme.h"
#include "ricci/support/error.h"

namespace ricci::detail {
namespace {

quant::Scheme scheme_named(const std::string& name) {
  if (const auto scheme = quant::scheme_from_name(name)) return *scheme;
  throw UserError(ErrorCode::Name, fmt::format("no weights are stored as '{}'", name),
                  "the schemes are q4_0, q8_0, q4_k, q6_k, int8_block_32 and others of "
                  "docs/QUANTIZATION.md");
}

Array bytes_as(std::span<const std::byte> bytes, DType dtype, const StaticDims& dims) {
  return Tensor::from_bytes({dtype, Dims(dims.begin(), dims.end())}, bytes);
}

// w [in, out] in floats.
nn::PackedWeight packed(const std::string& name, const Array& w, bool int8_activations) {
  const quant::Scheme scheme = scheme_named(name);
  const std::int64_t in = w.dim(0).value();
  const std::int64_t out = w.dim(1).value();
  const Tensor values = cast(w, DType::F32).tensor().contiguous();
  const quant::Matrix m = quant::encode_matrix(scheme, in, out, values.elements<float>());
  nn::PackedWeight result{.scheme = name,
                          .int8_activations = int8_activations,
                          .in = in,
                          .out = out,
                          .codes = {},
                          .scale = {},
                          .offset = {}};
  const auto count = static_cast<std::int64_t>(m.codes.size());
  const bool signed_codes = scheme.kind == quant::SchemeKind::Int8Block ||
                            scheme.kind == quant::SchemeKind::Int8BlockAsym;
  result.codes = signed_codes ? bytes_as(m.codes, DType::I8, {in, out})
                              : bytes_as(m.codes, DType::U8, {count});
  const auto rows = [&](std::size_t n) { return static_cast<std::int64_t>(n) / out; };
  if (!m.scales.empty()) {
    result.scale = Tensor::of<float>({rows(m.scales.size()), out}, m.scales);
  }
  if (!m.zero_points.empty()) {
    result.offset = Tensor::of<float>({rows(m.zero_points.size()), out}, m.zero_points);
  }
  return result;
}

}  // namespace

Packing::Packing(std::string scheme, nn::PackOptions options)
    : scheme_(std::move(scheme)), options_(std::move(options)) {
  const quant::Scheme known = scheme_named(scheme_);
  if (known.kind == quant::SchemeKind::Packed || known.kind == quant::SchemeKind::Int8Block ||
      known.kind == quant::SchemeKind::Int8BlockAsym) {
    return;
  }
  throw UserError(ErrorCode::Name, fmt::format("layers do not take weights in '{}'", scheme_),
                  "take a block format, such as q4_k, or int8_block_32");
}

bool Packing::takes(const Array& w, std::int64_t depth) {
  const std::int64_t group = scheme_named(scheme_).group();
  const bool takes = w.valid() && w.rank() == 2 && is_float(w.dtype()) &&
                     nn::matches(path(), options_.pattern) && (group == 0 || depth % group == 0);
  if (!takes) others_.push_back(path());
  return takes;
}

void Packing::object(const TreeType& type, void* self) {
  if (type.id == TreeTypeOf<nn::Llama>.id) {
    ties_ = !static_cast<nn::Llama*>(self)->head.w.valid();
  } else if (type.id == TreeTypeOf<nn::MambaModel>.id) {
    ties_ = !static_cast<nn::MambaModel*>(self)->head.w.valid();
  } else if (type.id == TreeTypeOf<nn::Linear>.id) {
    auto& map = *static_cast<nn::Linear*>(self);
    if (map.adapter || map.packed || !map.w.valid() || !takes(map.w, map.w.dim(0).value())) return;
    map.packed = packed(scheme_, map.w, options_.int8_activations);
    map.w = Array();
    ++packed_;
  } else if (type.id == TreeTypeOf<nn::Embedding>.id) {
    auto& table = *static_cast<nn::Embedding*>(self);
    // Tables of places are never a last layer.
    if (!ties_ || !path().ends_with("tokens") || table.packed ||
        !takes(table.w, table.w.dim(1).value()))
      return;
    table.packed = packed(scheme_, transpose(table.w), options_.int8_activations);
    ++packed_;
  }
}

void Packing::require_some() const {
  if (packed_ > 0) return;
  throw UserError(ErrorCode::Name,
                  fmt::format("no weight of the model can be packed as {}", scheme_),
                  others_.empty() ? "it has no linear maps"
                                  : fmt::format("of {} none matches '{}' with a depth of whole "
                                                "blocks",
                                                fmt::join(others_, ", "), options_.pattern));
}

}  // namespace ricci::detail
