#include "ricci/type/dtype.h"

#include <algorithm>

namespace ricci {
namespace {

enum class Category : std::uint8_t { Float, Signed, Unsigned, Bool, Complex };

struct Row {
  DType dtype;
  std::string_view name;
  std::int64_t size;
  Category category;
};

constexpr std::array DTypeRows = {
    Row{DType::F64, "f64", 8, Category::Float},      Row{DType::F32, "f32", 4, Category::Float},
    Row{DType::F16, "f16", 2, Category::Float},      Row{DType::BF16, "bf16", 2, Category::Float},
    Row{DType::I64, "i64", 8, Category::Signed},     Row{DType::I32, "i32", 4, Category::Signed},
    Row{DType::I16, "i16", 2, Category::Signed},     Row{DType::I8, "i8", 1, Category::Signed},
    Row{DType::U8, "u8", 1, Category::Unsigned},     Row{DType::U32, "u32", 4, Category::Unsigned},
    Row{DType::Bool, "bool", 1, Category::Bool},     Row{DType::C64, "c64", 8, Category::Complex},
    Row{DType::C128, "c128", 16, Category::Complex},
};

constexpr const Row& row(DType d) noexcept { return DTypeRows[static_cast<std::size_t>(d)]; }

DType signed_of_size(std::int64_t bytes) noexcept {
  if (bytes <= 1) return DType::I8;
  if (bytes == 2) return DType::I16;
  return bytes == 4 ? DType::I32 : DType::I64;
}

// The smallest signed dtype that holds every value of an unsigned and a signed one.
DType mix_signedness(DType unsigned_one, DType signed_one) noexcept {
  return signed_of_size(
      std::min<std::int64_t>(8, std::max(size_of(unsigned_one) * 2, size_of(signed_one))));
}

DType promote_ints(DType a, DType b) noexcept {
  const bool a_signed = row(a).category == Category::Signed;
  const bool b_signed = row(b).category == Category::Signed;
  if (a_signed == b_signed) return size_of(a) >= size_of(b) ? a : b;
  return a_signed ? mix_signedness(b, a) : mix_signedness(a, b);
}

DType promote_int_float(DType integer, DType floating) noexcept {
  if (floating == DType::F64 || integer == DType::I64) return DType::F64;
  return DType::F32;
}

DType promote_floats(DType a, DType b) noexcept {
  if (size_of(a) == 2 && size_of(b) == 2) return DType::F32;  // f16 with bf16
  return size_of(a) >= size_of(b) ? a : b;
}

DType promote_complex(DType complex, DType other) noexcept {
  if (complex == DType::C128 || other == DType::C128) return DType::C128;
  return other == DType::F64 || other == DType::I64 ? DType::C128 : DType::C64;
}

}  // namespace

std::string_view name(DType dtype) noexcept { return row(dtype).name; }

std::optional<DType> dtype_from_name(std::string_view name) noexcept {
  for (const Row& r : DTypeRows) {
    if (r.name == name) return r.dtype;
  }
  return std::nullopt;
}

std::int64_t size_of(DType dtype) noexcept { return row(dtype).size; }
bool is_float(DType dtype) noexcept { return row(dtype).category == Category::Float; }
bool is_int(DType dtype) noexcept {
  return row(dtype).category == Category::Signed || row(dtype).category == Category::Unsigned;
}
bool is_complex(DType dtype) noexcept { return row(dtype).category == Category::Complex; }
bool is_differentiable(DType dtype) noexcept { return is_float(dtype) || is_complex(dtype); }
DType tangent_dtype(DType dtype) noexcept { return is_int(dtype) ? DType::F32 : dtype; }

DType real_part_of(DType dtype) noexcept {
  if (dtype == DType::C64) return DType::F32;
  return dtype == DType::C128 ? DType::F64 : dtype;
}

DType complex_of(DType dtype) noexcept {
  if (is_complex(dtype)) return dtype;
  return dtype == DType::F64 ? DType::C128 : DType::C64;
}

DType promote(DType a, DType b) noexcept {
  if (a == b) return a;
  if (a == DType::Bool) return b;
  if (b == DType::Bool) return a;
  if (is_complex(a)) return promote_complex(a, b);
  if (is_complex(b)) return promote_complex(b, a);
  if (is_float(a) && is_float(b)) return promote_floats(a, b);
  if (is_float(a)) return promote_int_float(b, a);
  if (is_float(b)) return promote_int_float(a, b);
  return promote_ints(a, b);
}

}  // namespace ricci
