#include "backend/cuda/codegen/expression.h"

#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>

#include <fmt/format.h>

#include "ricci/support/error.h"

#include "loop/of_nothing.h"
#include "op/kinds.h"
#include "type/elements.h"
#include "type/small_dtype.h"

namespace ricci::cuda {
namespace {

bool is_unsigned(DType d) { return d == DType::U8 || d == DType::U32 || d == DType::Bool; }

// A number as it reads when it has been stored.
template <class N>
N as_stored(DType dtype, const loop::Number& number) {
  std::array<std::byte, sizeof(std::complex<double>)> element{};
  std::visit([&](auto n) { detail::store_number(dtype, element.data(), n); }, number);
  return detail::load_number<N>(dtype, element.data());
}

std::string double_text(double v) {
  if (std::isnan(v)) return "NotANumber";
  if (std::isinf(v)) return v > 0 ? "Infinity" : "-Infinity";
  std::string text = fmt::format("{}", v);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string float_text(double v) {
  if (!std::isfinite(v)) return fmt::format("float({})", double_text(v));
  std::string text = fmt::format("{}", static_cast<float>(v));
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text + "f";
}

// Whole numbers wrap in their own width, which signed ones of C++ may not.
std::string wrapped(DType dtype, const char* op, const std::string& a, const std::string& b) {
  switch (dtype) {
    case DType::I64: return fmt::format("i64(u64({}) {} u64({}))", a, op, b);
    case DType::I32: return fmt::format("int(unsigned({}) {} unsigned({}))", a, op, b);
    case DType::U32: return fmt::format("({} {} {})", a, op, b);
    default: return fmt::format("{}({} {} {})", held_type(dtype), a, op, b);
  }
}

std::string int_unary(UnaryKind kind, DType dtype, const std::string& x) {
  switch (kind) {
    case UnaryKind::Neg: return wrapped(dtype, "-", "0", x);
    case UnaryKind::Square: return wrapped(dtype, "*", x, x);
    case UnaryKind::LogicalNot: return fmt::format("(!{})", x);
    case UnaryKind::BitwiseNot:
      if (dtype == DType::Bool) return fmt::format("(!{})", x);
      return fmt::format("{}(~{})", held_type(dtype), x);
    case UnaryKind::Abs:
      return is_unsigned(dtype)
                 ? x
                 : fmt::format("({0} < 0 ? {1} : {0})", x, wrapped(dtype, "-", "0", x));
    case UnaryKind::Relu: return fmt::format("({0} > 0 ? {0} : {1}(0))", x, held_type(dtype));
    case UnaryKind::Sign: return fmt::format("{0}(({1} > 0) - ({1} < 0))", held_type(dtype), x);
    case UnaryKind::Round:
    case UnaryKind::Floor:
    case UnaryKind::Ceil:
    case UnaryKind::Trunc: return x;
    default: break;  // see the dtypes of its row
  }
  throw InternalError("a function of integers has no CUDA code");
}

// Functions that CUDA has under C's names; those of float end with an f.
const char* built_in(UnaryKind kind) {
  switch (kind) {
    case UnaryKind::Tanh: return "tanh";
    case UnaryKind::Exp: return "exp";
    case UnaryKind::Log: return "log";
    case UnaryKind::Sqrt: return "sqrt";
    case UnaryKind::Rsqrt: return "rsqrt";
    case UnaryKind::Abs: return "fabs";
    case UnaryKind::Sin: return "sin";
    case UnaryKind::Cos: return "cos";
    case UnaryKind::Tan: return "tan";
    case UnaryKind::Atan: return "atan";
    case UnaryKind::Round: return "rint";
    case UnaryKind::Erf: return "erf";
    case UnaryKind::Erfc: return "erfc";
    case UnaryKind::Expm1: return "expm1";
    case UnaryKind::Log1p: return "log1p";
    case UnaryKind::Exp2: return "exp2";
    case UnaryKind::Log2: return "log2";
    case UnaryKind::Sinh: return "sinh";
    case UnaryKind::Cosh: return "cosh";
    case UnaryKind::Asin: return "asin";
    case UnaryKind::Acos: return "acos";
    case UnaryKind::Asinh: return "asinh";
    case UnaryKind::Acosh: return "acosh";
    case UnaryKind::Atanh: return "atanh";
    case UnaryKind::Floor: return "floor";
    case UnaryKind::Ceil: return "ceil";
    case UnaryKind::Trunc: return "trunc";
    default: return nullptr;
  }
}

std::string float_unary(UnaryKind kind, bool wide, const std::string& x) {
  if (const char* name = built_in(kind)) return fmt::format("{}{}({})", name, wide ? "" : "f", x);
  const char* one = wide ? "1.0" : "1.0f";
  switch (kind) {
    // A constant may have a sign of its own.
    case UnaryKind::Neg:
      return x.starts_with('-') ? fmt::format("(-({}))", x) : fmt::format("(-{})", x);
    case UnaryKind::Square: return fmt::format("({0} * {0})", x);
    case UnaryKind::Reciprocal: return fmt::format("({} / {})", one, x);
    case UnaryKind::Conjugate: return x;
    case UnaryKind::IsNan: return fmt::format("({0} != {0})", x);
    case UnaryKind::IsFinite: return fmt::format("is_finite({})", x);
    default: return fmt::format("{}({})", row(kind).name, x);
  }
}

std::string complex_unary(UnaryKind kind, DType dtype, const std::string& x) {
  switch (kind) {
    case UnaryKind::Abs:
    case UnaryKind::Square:
    case UnaryKind::IsNan:
    case UnaryKind::IsFinite: return fmt::format("complex_{}({})", row(kind).name, x);
    case UnaryKind::Neg: return fmt::format("(-{})", x);
    case UnaryKind::Conjugate: return fmt::format("conjugate({})", x);
    case UnaryKind::Imag: return fmt::format("{}.im", x);
    default: break;
  }
  if (dtype == DType::C128) return fmt::format("complex_{}({})", row(kind).name, x);
  return fmt::format("to_c64(complex_{}(to_c128({})))", row(kind).name, x);
}

std::string int_binary(BinaryKind kind, DType dtype, const std::string& a, const std::string& b) {
  const char* type = held_type(dtype);
  switch (kind) {
    case BinaryKind::Add: return wrapped(dtype, "+", a, b);
    case BinaryKind::Sub: return wrapped(dtype, "-", a, b);
    case BinaryKind::Mul: return wrapped(dtype, "*", a, b);
    case BinaryKind::Div: return fmt::format("quotient({}, {}, fault, origin)", a, b);
    case BinaryKind::Rem: return fmt::format("remainder({}, {}, fault, origin)", a, b);
    case BinaryKind::Pow: return fmt::format("power({}, {}, fault, origin)", a, b);
    case BinaryKind::Max: return fmt::format("({0} > {1} ? {0} : {1})", a, b);
    case BinaryKind::Min: return fmt::format("({0} < {1} ? {0} : {1})", a, b);
    case BinaryKind::LogicalAnd:
    case BinaryKind::BitwiseAnd: return fmt::format("{}({} & {})", type, a, b);
    case BinaryKind::LogicalOr:
    case BinaryKind::BitwiseOr: return fmt::format("{}({} | {})", type, a, b);
    case BinaryKind::LogicalXor:
    case BinaryKind::BitwiseXor: return fmt::format("{}({} ^ {})", type, a, b);
    case BinaryKind::ShiftLeft: return fmt::format("shift_left({}, {})", a, b);
    case BinaryKind::ShiftRight: return fmt::format("shift_right({}, {})", a, b);
    case BinaryKind::Atan2:
    case BinaryKind::Hypot:
    case BinaryKind::MakeComplex: break;
  }
  throw InternalError("a function of two integers has no CUDA code");
}

std::string float_binary(BinaryKind kind, bool wide, const std::string& a, const std::string& b) {
  const char* f = wide ? "" : "f";
  switch (kind) {
    case BinaryKind::Add: return fmt::format("({} + {})", a, b);
    case BinaryKind::Sub: return fmt::format("({} - {})", a, b);
    case BinaryKind::Mul: return fmt::format("({} * {})", a, b);
    case BinaryKind::Div: return fmt::format("({} / {})", a, b);
    case BinaryKind::Max: return fmt::format("larger({}, {})", a, b);
    case BinaryKind::Min: return fmt::format("smaller({}, {})", a, b);
    case BinaryKind::Pow: return fmt::format("pow{}({}, {})", f, a, b);
    case BinaryKind::Rem: return fmt::format("fmod{}({}, {})", f, a, b);
    case BinaryKind::Atan2: return fmt::format("atan2{}({}, {})", f, a, b);
    case BinaryKind::Hypot: return fmt::format("hypot{}({}, {})", f, a, b);
    case BinaryKind::MakeComplex: return fmt::format("{}{{{}, {}}}", wide ? "c128" : "c64", a, b);
    default: break;  // see the dtypes of its row
  }
  throw InternalError("a function of two real numbers has no CUDA code");
}

std::string complex_binary(BinaryKind kind, const std::string& a, const std::string& b) {
  switch (kind) {
    case BinaryKind::Add: return fmt::format("({} + {})", a, b);
    case BinaryKind::Sub: return fmt::format("({} - {})", a, b);
    case BinaryKind::Mul: return fmt::format("({} * {})", a, b);
    case BinaryKind::Div: return fmt::format("complex_quotient({}, {})", a, b);
    case BinaryKind::Pow: return fmt::format("complex_power({}, {})", a, b);
    default: break;  // see the dtypes of its row
  }
  throw InternalError("a function of two complex numbers has no CUDA code");
}

}  // namespace

const char* stored_type(DType dtype) {
  switch (dtype) {
    case DType::F64: return "double";
    case DType::F32: return "float";
    case DType::F16: return "f16";
    case DType::BF16: return "bf16";
    case DType::I64: return "i64";
    case DType::I32: return "int";
    case DType::I16: return "short";
    case DType::I8: return "i8";
    case DType::U8: return "u8";
    case DType::U32: return "unsigned";
    case DType::Bool: return "u8";
    case DType::C64: return "c64";
    case DType::C128: return "c128";
  }
  throw InternalError("a dtype has no CUDA type");
}

const char* held_type(DType dtype) {
  if (dtype == DType::Bool) return "bool";
  return stored_type(widened(dtype));
}

std::string from_stored(DType dtype, const std::string& x) {
  if (is_small_float(dtype)) return fmt::format("to_float({})", x);
  return dtype == DType::Bool ? fmt::format("({} != 0)", x) : x;
}

std::string to_stored(DType dtype, const std::string& x) {
  if (dtype == DType::F16) return fmt::format("to_f16({})", x);
  return dtype == DType::BF16 ? fmt::format("to_bf16({})", x) : x;
}

std::string cut_to_stored(DType dtype, const std::string& x) {
  return dtype == DType::BF16 ? fmt::format("cut_to_bf16({})", x) : to_stored(dtype, x);
}

std::string integer_text(std::int64_t n) {
  if (n == std::numeric_limits<std::int64_t>::min()) return "(-9223372036854775807LL - 1)";
  const bool is_short = n >= std::numeric_limits<std::int32_t>::min() + std::int64_t{1} &&
                        n <= std::numeric_limits<std::int32_t>::max();
  return fmt::format("{}{}", n, is_short ? "" : "LL");
}

std::string constant_text(DType dtype, const loop::Number& number) {
  if (is_complex(dtype)) {
    const auto z = as_stored<std::complex<double>>(dtype, number);
    const auto part = dtype == DType::C64 ? float_text : double_text;
    return fmt::format("{}{{{}, {}}}", stored_type(dtype), part(z.real()), part(z.imag()));
  }
  if (is_float(dtype)) {
    const double v = as_stored<double>(dtype, number);
    return dtype == DType::F64 ? double_text(v) : float_text(v);
  }
  const auto n = as_stored<std::int64_t>(dtype, number);
  if (dtype == DType::Bool) return n != 0 ? "true" : "false";
  return fmt::format("{}({})", held_type(dtype), integer_text(n));
}

std::string rounded_text(DType dtype, const std::string& x) {
  if (dtype == DType::F16) return fmt::format("as_f16({})", x);
  return dtype == DType::BF16 ? fmt::format("as_bf16({})", x) : x;
}

std::string unary_text(UnaryKind kind, DType dtype, const std::string& x) {
  if (is_complex(dtype)) return complex_unary(kind, dtype, x);
  if (!is_float(dtype)) return int_unary(kind, dtype, x);
  return rounded_text(row(kind).result_dtype(dtype), float_unary(kind, dtype == DType::F64, x));
}

std::string binary_text(BinaryKind kind, DType dtype, const std::string& a, const std::string& b) {
  if (is_complex(dtype)) return complex_binary(kind, a, b);
  if (!is_float(dtype)) return int_binary(kind, dtype, a, b);
  return rounded_text(dtype, float_binary(kind, dtype == DType::F64, a, b));
}

std::string compare_text(CompareKind kind, const std::string& a, const std::string& b) {
  switch (kind) {
    case CompareKind::Eq: return fmt::format("({} == {})", a, b);
    case CompareKind::Ne: return fmt::format("({} != {})", a, b);
    case CompareKind::Lt: return fmt::format("({} < {})", a, b);
    case CompareKind::Le: return fmt::format("({} <= {})", a, b);
    case CompareKind::Gt: return fmt::format("({} > {})", a, b);
    case CompareKind::Ge: return fmt::format("({} >= {})", a, b);
  }
  throw InternalError("a comparison has no CUDA code");
}

std::string nonzero_text(DType dtype, const std::string& x) {
  if (dtype == DType::Bool) return x;
  if (is_complex(dtype)) return fmt::format("is_nonzero({})", x);
  return fmt::format("({} != 0)", x);
}

std::string cast_text(DType from, DType to, const std::string& x) {
  if (from == to) return x;
  if (to == DType::Bool) return nonzero_text(from, x);
  const char* type = held_type(to);
  if (is_complex(to)) {
    if (is_complex(from)) return fmt::format("to_{}({})", name(to), x);
    return fmt::format("{}{{{}, 0}}", type, cast_text(from, real_part_of(to), x));
  }
  if (is_complex(from)) return cast_text(real_part_of(from), to, x + ".re");
  if (is_float(to)) {
    if (is_small_float(to) && (from == DType::F64 || !is_float(from))) {
      return rounded_text(to, fmt::format("rounded_to_odd({})", x));
    }
    if (is_float(from) && widened(from) == widened(to)) return rounded_text(to, x);
    return rounded_text(to, fmt::format("{}({})", type, x));
  }
  if (is_float(from)) return fmt::format("saturated<{}>({})", type, x);
  return fmt::format("{}({})", type, x);
}

DType reduced_in(ReduceKind kind, DType dtype) {
  return is_logical(kind) ? DType::Bool : widened(dtype);
}

std::string reduction_of_nothing(ReduceKind kind, DType dtype) {
  const DType held = reduced_in(kind, dtype);
  return constant_text(held, loop::reduction_of_nothing(kind, held));
}

const char* combiner(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::Sum: return "Sum";
    case ReduceKind::Prod: return "Product";
    case ReduceKind::Max: return "Larger";
    case ReduceKind::Min: return "Smaller";
    case ReduceKind::Any: return "Either";
    case ReduceKind::All: return "Both";
    case ReduceKind::Mean:
    case ReduceKind::LogSumExp: break;
  }
  throw InternalError("a reduction was not rewritten");
}

std::string combined_text(ReduceKind kind, DType dtype, const std::string& so_far,
                          const std::string& x) {
  const DType held = reduced_in(kind, dtype);
  switch (kind) {
    case ReduceKind::Sum: return binary_text(BinaryKind::Add, held, so_far, x);
    case ReduceKind::Prod: return binary_text(BinaryKind::Mul, held, so_far, x);
    case ReduceKind::Max:
    case ReduceKind::Min: return fmt::format("{}()({}, {})", combiner(kind), so_far, x);
    case ReduceKind::Any: return fmt::format("({} || {})", so_far, x);
    case ReduceKind::All: return fmt::format("({} && {})", so_far, x);
    case ReduceKind::Mean:
    case ReduceKind::LogSumExp: break;
  }
  throw InternalError("a reduction was not rewritten");
}

}  // namespace ricci::cuda
