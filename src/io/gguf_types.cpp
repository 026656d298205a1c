// The element types of GGUF, and metadata as text.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "ricci/io/gguf.h"
#include "ricci/support/text.h"

namespace ricci::io {
namespace {

struct TypeRow {
  std::uint32_t number;
  StoredType type;
};

// Types that are known by size only, so that files that hold them can be listed and the rest of
// them read.
constexpr StoredType sized(std::string_view name, std::int64_t length, std::int64_t bytes) {
  return {name, length, bytes, std::nullopt, std::nullopt};
}

std::span<const TypeRow> type_rows() {
  static const std::vector<TypeRow> rows = [] {
    std::vector<TypeRow> out = {
        {0, StoredType::of(DType::F32)},  {1, StoredType::of(DType::F16)},
        {24, StoredType::of(DType::I8)},  {25, StoredType::of(DType::I16)},
        {26, StoredType::of(DType::I32)}, {27, StoredType::of(DType::I64)},
        {28, StoredType::of(DType::F64)}, {30, StoredType::of(DType::BF16)},
        {16, sized("iq2_xxs", 256, 66)},  {17, sized("iq2_xs", 256, 74)},
        {18, sized("iq3_xxs", 256, 98)},  {19, sized("iq1_s", 256, 50)},
        {20, sized("iq4_nl", 32, 18)},    {21, sized("iq3_s", 256, 110)},
        {22, sized("iq2_s", 256, 82)},    {23, sized("iq4_xs", 256, 136)},
        {29, sized("iq1_m", 256, 56)},    {34, sized("tq1_0", 256, 54)},
        {35, sized("tq2_0", 256, 66)},    {41, sized("q1_0", 128, 18)},
    };
    for (const quant::FormatInfo& f : quant::all_formats()) {
      if (f.gguf_type) out.push_back({*f.gguf_type, StoredType::of(f.format)});
    }
    return out;
  }();
  return rows;
}

constexpr std::array<std::string_view, 13> KindNames = {
    "u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "string", "array", "u64", "i64", "f64"};

std::string element_text(bool b) { return b ? "true" : "false"; }
std::string element_text(float v) { return print_f32(v); }
std::string element_text(double v) { return print_f64(v); }
template <class T>
  requires std::is_integral_v<T>
std::string element_text(T v) {
  return std::to_string(v);
}

// As many elements as fit.
std::string array_text(const GgufArray& array, std::size_t most) {
  std::string out = "[";
  std::visit(
      [&](const auto& elements) {
        for (std::size_t i = 0; i < elements.size(); ++i) {
          if (i != 0) out += ", ";
          if (out.size() >= most) {
            out += "…";
            break;
          }
          using Element = typename std::remove_cvref_t<decltype(elements)>::value_type;
          if constexpr (std::is_same_v<Element, GgufArray>) {
            out += array_text(elements[i], most - std::min(most, out.size()));
          } else if constexpr (std::is_same_v<Element, std::string>) {
            out += quote(shortened(elements[i], most));
          } else {
            out += element_text(static_cast<Element>(elements[i]));
          }
        }
      },
      array.elements);
  return out + "]";
}

}  // namespace

std::optional<StoredType> gguf_type(std::uint32_t number) {
  const auto rows = type_rows();
  const auto found = std::ranges::find(rows, number, &TypeRow::number);
  if (found == rows.end()) return std::nullopt;
  return found->type;
}

std::optional<std::uint32_t> gguf_number(const StoredType& type) {
  const auto rows = type_rows();
  const auto found = std::ranges::find(rows, type, &TypeRow::type);
  if (found == rows.end()) return std::nullopt;
  return found->number;
}

std::size_t GgufArray::size() const {
  return std::visit([](const auto& e) { return e.size(); }, elements);
}

std::string kind_of(const GgufValue& value) {
  const auto* array = std::get_if<GgufArray>(&value);
  if (array == nullptr) return std::string(KindNames[value.index()]);
  return fmt::format("{}[{}]", KindNames[array->elements.index()], array->size());
}

std::string to_text(const GgufValue& value, std::size_t most) {
  return std::visit(
      [&](const auto& v) {
        using Held = std::remove_cvref_t<decltype(v)>;
        if constexpr (std::is_same_v<Held, GgufArray>) {
          return array_text(v, most);
        } else if constexpr (std::is_same_v<Held, std::string>) {
          return quote(shortened(v, most));
        } else {
          return element_text(v);
        }
      },
      value);
}

const GgufValue* Gguf::find(std::string_view key) const {
  const auto found =
      std::ranges::find(metadata, key, [](const auto& kv) -> std::string_view { return kv.first; });
  return found == metadata.end() ? nullptr : &found->second;
}

const StoredTensor* Gguf::find_tensor(std::string_view name) const {
  const auto found = std::ranges::find(
      tensors, name, [](const StoredTensor& t) -> std::string_view { return t.name; });
  return found == tensors.end() ? nullptr : &*found;
}

}  // namespace ricci::io
