// What happens where numbers and arrays of different dtypes meet.
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "ricci/op/elementwise.h"
#include "ricci/support/error.h"

#include "array/node.h"

namespace ricci::detail {
namespace {

template <class T>
T stored(const Tensor& t) {
  T value{};
  std::memcpy(&value, t.data(), sizeof(T));
  return value;
}

// What a message calls an operand: a number that was written down, or a type.
std::string operand_text(const Array& x) {
  const ArrayNode& n = *x.node();
  if (!n.weak) return x.type().to_string();
  if (n.kind != ArrayNode::Kind::Number) return fmt::format("a number, {}", name(x.dtype()));
  const Tensor& value = n.values[0];
  switch (value.dtype()) {
    case DType::I64: return fmt::format("the number {}", stored<std::int64_t>(value));
    case DType::F64: return fmt::format("the number {:#}", stored<double>(value));
    default: return "a complex number";
  }
}

[[noreturn]] void fail_mixed(std::string_view op, const Array& a, const Array& b,
                             std::source_location where) {
  const DType wider = promote(a.dtype(), b.dtype());
  refuse(ErrorCode::DType, "mixed",
         fmt::format("'{}' of {} and {}", op, operand_text(a), operand_text(b)),
         fmt::format("cast one of them: cast(x, DType::{})",
                     [&] {
                       std::string upper(name(wider));
                       for (char& c : upper)
                         c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
                       return upper == "BOOL" ? std::string("Bool") : upper;
                     }()),
         where);
}

// Does every integer of one dtype have its own float of another?
bool exact(DType integer, DType floating) {
  if (integer == DType::I8 || integer == DType::U8) return true;
  if (integer == DType::I16) return floating == DType::F32 || floating == DType::F64;
  return (integer == DType::I32 || integer == DType::U32) && floating == DType::F64;
}

// The dtype two arrays meet in without losing anything or leaving the width of their floats.
std::optional<DType> meeting(DType a, DType b) {
  const DType both = promote(a, b);
  for (const DType d : {a, b}) {
    if (d == both || d == DType::Bool) continue;
    if (is_int(d) && is_int(both)) continue;
    if (is_int(d) && exact(d, real_part_of(both))) continue;
    if (is_float(d) && is_complex(both) && real_part_of(both) == d) continue;
    return std::nullopt;
  }
  return both;
}

// The dtype a number and an array meet in.
std::optional<DType> meeting_number(DType number, DType array) {
  if (is_int(number)) return array == DType::Bool ? number : array;
  if (is_float(number)) {
    if (array == DType::Bool) return number;
    return is_float(array) || is_complex(array) ? std::optional(array) : std::nullopt;
  }
  if (is_complex(array)) return array;
  if (array == DType::F64) return DType::C128;
  return array == DType::F32 ? std::optional(DType::C64) : std::nullopt;
}

Array cast_to(const Array& x, DType dtype, std::source_location where) {
  if (x.node()->weak) return strong_operand(x, dtype, where);
  return x.dtype() == dtype ? x : apply(Op(op::Cast{.to = dtype}), {x}, where);
}

}  // namespace

bool holds(DType dtype, std::int64_t value) {
  switch (dtype) {
    case DType::I32: return std::in_range<std::int32_t>(value);
    case DType::I16: return std::in_range<std::int16_t>(value);
    case DType::I8: return std::in_range<std::int8_t>(value);
    case DType::U8: return std::in_range<std::uint8_t>(value);
    case DType::U32: return std::in_range<std::uint32_t>(value);
    default: return true;
  }
}

std::int64_t whole_number(std::uint64_t value) {
  if (std::in_range<std::int64_t>(value)) return static_cast<std::int64_t>(value);
  throw UserError(ErrorCode::DType, fmt::format("{} does not fit into i64", value),
                  "no dtype holds it; as a float it is rounded: static_cast<double>(value)");
}

Array number_as(const Array& number, DType dtype, std::source_location where) {
  const Tensor& exact_value = number.node()->values[0];
  const Type type{dtype, {}};
  switch (exact_value.dtype()) {
    case DType::I64: {
      const auto value = stored<std::int64_t>(exact_value);
      if (!holds(dtype, value)) {
        refuse(ErrorCode::DType, "range",
               fmt::format("{} does not fit into {}", value, name(dtype)),
               "cast the array to a wider dtype first", where);
      }
      return number_array(Tensor::splat(type, value));
    }
    case DType::F64: return number_array(Tensor::splat(type, stored<double>(exact_value)));
    default: return number_array(Tensor::splat(type, stored<std::complex<double>>(exact_value)));
  }
}

Array strengthened(const Array& x, DType dtype, std::source_location where) {
  if (!x.node()->weak) return x;
  if (x.node()->kind == ArrayNode::Kind::Number) return number_as(x, dtype, where);
  return apply(Op(op::Cast{.to = dtype}), {x}, where);
}

Array strengthened(const Array& x, std::source_location where) {
  return x.node()->weak ? strengthened(x, x.dtype(), where) : x;
}

Array strong_operand(const Array& x, DType dtype, std::source_location where) {
  Array out = strengthened(x, dtype, where);
  const bool number = x.node()->weak && x.node()->kind == ArrayNode::Kind::Number;
  if (number && dtype == DType::F32) out.node()->exact = x;
  return out;
}

// What is made of numbers alone takes the dtype of a float it meets, as numbers do.
static void meet_as_number(Array& x, const Array& other, std::source_location where) {
  const Array& exact = x.node()->exact;
  if (other.node()->weak || !exact.valid() || other.dtype() == x.dtype()) return;
  if (!is_float(other.dtype())) return;
  x = cast_to(exact, other.dtype(), where);
}

void unify(std::string_view op, Array& a, Array& b, std::source_location where) {
  require_valid(a, op, where);
  require_valid(b, op, where);
  meet_as_number(a, b, where);
  meet_as_number(b, a, where);
  const bool a_weak = a.node()->weak;
  const bool b_weak = b.node()->weak;
  if (!a_weak && !b_weak && a.dtype() == b.dtype()) return;
  std::optional<DType> both;
  if (a_weak == b_weak) {
    both = a_weak ? std::optional(promote(a.dtype(), b.dtype())) : meeting(a.dtype(), b.dtype());
    if (a_weak && is_float(*both)) both = DType::F32;
  } else {
    both = a_weak ? meeting_number(a.dtype(), b.dtype()) : meeting_number(b.dtype(), a.dtype());
  }
  if (!both) fail_mixed(op, a, b, where);
  a = cast_to(a, *both, where);
  b = cast_to(b, *both, where);
}

}  // namespace ricci::detail
