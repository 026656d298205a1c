#include <algorithm>
#include <array>

#include "ricci/io/safetensors.h"

#include "io/safetensors_layout.h"

namespace ricci::io {
namespace {

using quant::Format;

// As the format's library lists them; files have the last ones first.
const auto& all_types() {
  static const auto all = std::to_array<SafetensorsType>({
      {"BOOL", StoredType::of(DType::Bool)},
      {"F4", {"F4", 2, 1}},
      {"F6_E2M3", {"F6_E2M3", 4, 3}},
      {"F6_E3M2", {"F6_E3M2", 4, 3}},
      {"U8", StoredType::of(DType::U8)},
      {"I8", StoredType::of(DType::I8)},
      {"F8_E5M2", StoredType::of(Format::Fp8E5m2)},
      {"F8_E4M3", StoredType::of(Format::Fp8E4m3)},
      {"F8_E8M0", {"F8_E8M0", 1, 1}},
      {"F8_E4M3FNUZ", {"F8_E4M3FNUZ", 1, 1}},
      {"F8_E5M2FNUZ", {"F8_E5M2FNUZ", 1, 1}},
      {"I16", StoredType::of(DType::I16)},
      {"U16", {"U16", 1, 2, {}, {}, DType::U32}},
      {"F16", StoredType::of(DType::F16)},
      {"BF16", StoredType::of(DType::BF16)},
      {"I32", StoredType::of(DType::I32)},
      {"U32", StoredType::of(DType::U32)},
      {"F32", StoredType::of(DType::F32)},
      {"C64", StoredType::of(DType::C64)},
      {"F64", StoredType::of(DType::F64)},
      {"I64", StoredType::of(DType::I64)},
      {"U64", {"U64", 1, 8, {}, {}, DType::I64}},
  });
  return all;
}

}  // namespace

const SafetensorsType* find_safetensors_type(const StoredType& type) {
  const auto found = std::ranges::find(all_types(), type, &SafetensorsType::type);
  return found == all_types().end() ? nullptr : &*found;
}

std::optional<StoredType> safetensors_type(std::string_view name) {
  const auto found = std::ranges::find(all_types(), name, &SafetensorsType::name);
  return found == all_types().end() ? std::nullopt : std::optional(found->type);
}

std::optional<std::string_view> safetensors_name(const StoredType& type) {
  const SafetensorsType* found = find_safetensors_type(type);
  return found == nullptr ? std::nullopt : std::optional(found->name);
}

// Elements of less than a byte are packed across rows.
std::optional<std::int64_t> safetensors_size(const StoredType& type, const StaticDims& dims) {
  if (type.block_length == 1) return stored_bytes(type, dims);
  const auto elements = stored_bytes({type.name, 1, 1}, dims);
  return elements ? stored_bytes(type, {*elements}) : std::nullopt;
}

const std::string* Safetensors::find(std::string_view key) const {
  const auto found = std::ranges::find(metadata, key, [](const auto& m) { return m.first; });
  return found == metadata.end() ? nullptr : &found->second;
}

const StoredTensor* Safetensors::find_tensor(std::string_view name) const {
  const auto found = std::ranges::find(tensors, name, &StoredTensor::name);
  return found == tensors.end() ? nullptr : &*found;
}

}  // namespace ricci::io
