// Binary functions, comparisons, selection and conversion.
#include "ricci/op/elementwise.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "rule/number_functions.h"
#include "rule/tables/eval_rules.h"

namespace ricci::rule {
namespace {

[[noreturn]] void not_defined(BinaryKind kind, const char* numbers) {
  throw InternalError(fmt::format("'{}' is not defined for {}", name_of(kind), numbers));
}

std::int64_t int_pow(std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result = mul_wrapping(result, base);
    base = mul_wrapping(base, base);
  }
  return result;
}

std::int64_t shift_left(std::int64_t a, std::int64_t b, std::int64_t width) {
  if (b < 0 || b >= width) return 0;
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) << b);
}

std::int64_t shift_right(std::int64_t a, std::int64_t b, std::int64_t width) {
  return a >> (b < 0 || b >= width ? 63 : b);
}

// A number as digits·2^exponent, so that no product of two leaves the range. Zero has an exponent
// below all others: beside it no digit of another number is lost.
struct Apart {
  explicit Apart(double x) : digits(std::frexp(x, &exponent)) {
    if (x == 0) exponent = BelowAll;
  }
  static constexpr int BelowAll = -10000;
  int exponent = 0;
  double digits;
};

// a·b + c·d, rounded about once where the two nearly cancel too: what the second product has lost
// is added in the end.
Apart sum_of_products(Apart a, Apart b, Apart c, Apart d) {
  const int exponent = std::max(a.exponent + b.exponent, c.exponent + d.exponent);
  const double u = std::scalbn(a.digits, a.exponent + b.exponent - exponent);
  const double v = std::scalbn(c.digits, c.exponent + d.exponent - exponent);
  const double second = v * d.digits;
  const double lost = std::fma(v, d.digits, -second);
  const double sum = std::fma(u, b.digits, second);
  Apart result(lost == 0 ? sum : sum + lost);  // -0 stays as it is
  result.exponent += exponent;
  return result;
}

double quotient(Apart n, Apart d) {
  return std::scalbn(n.digits / d.digits, std::clamp(n.exponent - d.exponent, -5000, 5000));
}

// Compilers' libraries overflow where parts are large and the quotient is not. What has infinities,
// and quotients by zero, are theirs, as Annex G of C has them.
std::complex<double> quotient(std::complex<double> x, std::complex<double> y) {
  const auto finite = [](std::complex<double> z) {
    return std::isfinite(z.real()) && std::isfinite(z.imag());
  };
  if (!finite(x) || !finite(y) || y == 0.0) return x / y;
  const Apart a(x.real());
  const Apart b(x.imag());
  const Apart c(y.real());
  const Apart d(y.imag());
  const Apart minus_a(-x.real());
  const Apart size = sum_of_products(c, c, d, d);
  return {quotient(sum_of_products(a, c, b, d), size),
          quotient(sum_of_products(b, c, minus_a, d), size)};
}

}  // namespace

std::int64_t eval_binary(BinaryKind kind, std::int64_t a, std::int64_t b, std::int64_t width) {
  switch (kind) {
    case BinaryKind::Add: return add_wrapping(a, b);
    case BinaryKind::Sub: return sub_wrapping(a, b);
    case BinaryKind::Mul: return mul_wrapping(a, b);
    case BinaryKind::Div:
      if (b == 0) throw UserError(ErrorCode::Attr, "integer division by zero");
      return b == -1 ? sub_wrapping<std::int64_t>(0, a) : a / b;
    case BinaryKind::Rem:
      if (b == 0) throw UserError(ErrorCode::Attr, "integer remainder by zero");
      return b == -1 ? 0 : a % b;
    case BinaryKind::Pow:
      if (b < 0) {
        throw UserError(ErrorCode::Attr, fmt::format("integer power with exponent {}", b));
      }
      return int_pow(a, b);
    case BinaryKind::Max: return std::max(a, b);
    case BinaryKind::Min: return std::min(a, b);
    case BinaryKind::LogicalAnd:
    case BinaryKind::BitwiseAnd: return a & b;
    case BinaryKind::LogicalOr:
    case BinaryKind::BitwiseOr: return a | b;
    case BinaryKind::LogicalXor:
    case BinaryKind::BitwiseXor: return a ^ b;
    case BinaryKind::ShiftLeft: return shift_left(a, b, width);
    case BinaryKind::ShiftRight: return shift_right(a, b, width);
    case BinaryKind::Atan2:
    case BinaryKind::Hypot:
    case BinaryKind::MakeComplex: break;
  }
  not_defined(kind, "integers");
}

double eval_binary(BinaryKind kind, double a, double b) {
  switch (kind) {
    case BinaryKind::Add: return a + b;
    case BinaryKind::Sub: return a - b;
    case BinaryKind::Mul: return a * b;
    case BinaryKind::Div: return a / b;
    case BinaryKind::Max: return std::isnan(a) ? a : (std::isnan(b) ? b : (a > b ? a : b));
    case BinaryKind::Min: return std::isnan(a) ? a : (std::isnan(b) ? b : (a < b ? a : b));
    case BinaryKind::Pow: return std::pow(a, b);
    case BinaryKind::Rem: return std::fmod(a, b);
    case BinaryKind::Atan2: return std::atan2(a, b);
    case BinaryKind::Hypot: return std::hypot(a, b);
    default: break;  // see the dtypes of its row
  }
  not_defined(kind, "real numbers");
}

std::complex<double> eval_binary(BinaryKind kind, std::complex<double> a, std::complex<double> b) {
  switch (kind) {
    case BinaryKind::Add: return a + b;
    case BinaryKind::Sub: return a - b;
    case BinaryKind::Mul: return a * b;
    case BinaryKind::Div: return quotient(a, b);
    case BinaryKind::Pow: return complex_power(a, b);
    default: break;  // see the dtypes of its row
  }
  not_defined(kind, "complex numbers");
}

bool eval_compare(CompareKind kind, double a, double b) { return compare_numbers(kind, a, b); }

namespace {

// out[i] = a[i] + i·b[i]
void eval_make_complex(EvalContext& c) {
  const RealNd a = c.real(0);
  const RealNd b = c.real(1);
  ComplexNd out(c.result_dims(0));
  for_each_index(out.dims, [&](const StaticDims& index) {
    out.at(index) = std::complex<double>(a.at(index), b.at(index));
  });
  c.give(0, out);
}

}  // namespace

// out[i] = f(a[i], b[i])
void eval(const op::Binary& op, EvalContext& c) {
  if (op.kind == BinaryKind::MakeComplex) return eval_make_complex(c);
  with_number_class(c.dtype(0), [&]<class N>() {
    const Nd<N> a = c.numbers<N>(0);
    const Nd<N> b = c.numbers<N>(1);
    Nd<N> out(c.result_dims(0));
    for_each_index(out.dims, [&](const StaticDims& index) {
      out.at(index) = eval_binary(op.kind, a.at(index), b.at(index), c.dtype(0));
    });
    c.give(0, out);
  });
}

// out[i] = a[i] ? b[i]
void eval(const op::Compare& op, EvalContext& c) {
  with_number_class(c.dtype(0), [&]<class N>() {
    const Nd<N> a = c.numbers<N>(0);
    const Nd<N> b = c.numbers<N>(1);
    IntNd out(c.result_dims(0));
    for_each_index(out.dims, [&](const StaticDims& index) {
      out.at(index) = compare_numbers(op.kind, a.at(index), b.at(index)) ? 1 : 0;
    });
    c.give(0, out);
  });
}

// out[i] = cond[i] ≠ 0 ? a[i] : b[i]
void eval(const op::Where&, EvalContext& c) {
  const ComplexNd cond = c.numbers<std::complex<double>>(0);
  c.give_moved(0, [&](const StaticDims& index) -> EvalContext::Source {
    const std::size_t chosen = cond.at(index) != std::complex<double>(0) ? 1 : 2;
    return {chosen, flat_index(c.dims(chosen), index)};
  });
}

// out[i] = x[i] as `to`
void eval(const op::Cast&, EvalContext& c) {
  with_number_class(c.dtype(0), [&]<class N>() { c.give(0, c.numbers<N>(0)); });
}

void eval(const op::StopGradient&, EvalContext& c) { c.give(0, c.tensor(0)); }

}  // namespace ricci::rule
