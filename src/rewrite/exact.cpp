#include "rewrite/exact.h"

#include "ricci/op/elementwise.h"
#include "ricci/op/reduce.h"

namespace ricci {
namespace {

// Max and min of floats are left out for the signs of zeros, which an order of visiting decides.
bool is_exact(ReduceKind kind, DType dtype) {
  switch (kind) {
    case ReduceKind::Any:
    case ReduceKind::All: return true;
    case ReduceKind::Sum:
    case ReduceKind::Prod:
    case ReduceKind::Max:
    case ReduceKind::Min: return is_int(dtype) || dtype == DType::Bool;
    case ReduceKind::Mean:
    case ReduceKind::LogSumExp: return false;
  }
  return false;
}

struct NumberRange {
  int digits = 0;         // binary digits of precision
  int exponent = 0;       // values lie below 2^exponent
  int tiny_exponent = 0;  // the smallest positive value is 2^tiny_exponent
  bool is_signed = true;
};

NumberRange numbers_of(DType dtype) {
  switch (dtype) {
    case DType::F64:
    case DType::C128: return {53, 1024, -1074};
    case DType::F32:
    case DType::C64: return {24, 128, -149};
    case DType::F16: return {11, 16, -24};
    case DType::BF16: return {8, 128, -133};
    case DType::I64: return {63, 63, 0};
    case DType::I32: return {31, 31, 0};
    case DType::I16: return {15, 15, 0};
    case DType::I8: return {7, 7, 0};
    case DType::U32: return {32, 32, 0, false};
    case DType::U8: return {8, 8, 0, false};
    case DType::Bool: return {1, 1, 0, false};
  }
  return {};
}

}  // namespace

bool is_exact(const Op& op, std::span<const Type> operands) {
  if (op.has(Trait::Random) || operands.empty()) return false;
  const DType dtype = operands[0].dtype;
  if (const auto* unary = op.as<op::Unary>()) return row(unary->kind).exact.has(dtype);
  if (const auto* binary = op.as<op::Binary>()) return row(binary->kind).exact.has(dtype);
  if (const auto* compare = op.as<op::Compare>()) return row(compare->kind).exact.has(dtype);
  if (const auto* reduce = op.as<op::Reduce>()) return is_exact(reduce->op, dtype);
  return op.is<op::Where>() || op.is<op::Cast>() || op.has(Trait::DataMovement);
}

bool cast_loses_nothing(DType from, DType to) {
  if (from == to) return true;
  if (is_complex(from) && !is_complex(to)) return false;
  const bool to_number_with_fraction = is_float(to) || is_complex(to);
  if ((is_float(from) || is_complex(from)) && !to_number_with_fraction) return false;
  if (to == DType::Bool) return false;
  const NumberRange a = numbers_of(from);
  const NumberRange b = numbers_of(to);
  // An integer below zero, -2^63, needs no more digits than its neighbours in a float.
  const bool sign_fits = !a.is_signed || b.is_signed;
  return sign_fits && a.digits <= b.digits && a.exponent <= b.exponent &&
         a.tiny_exponent >= b.tiny_exponent;
}

bool cast_may_skip(DType from, DType middle, DType to) {
  if (!cast_loses_nothing(from, middle)) return false;
  // Integers wrap where floats saturate, so the way to an integer matters.
  const bool same_class =
      is_float(from) == is_float(middle) && is_complex(from) == is_complex(middle);
  return same_class || !is_int(to);
}

}  // namespace ricci
