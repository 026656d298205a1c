// Values of the element-wise functions of complex numbers, on their principal branches.
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "rule/tables/eval_rules.h"

namespace ricci::rule {
namespace {

using Complex = std::complex<double>;

Complex one_over(Complex z) { return eval_binary(BinaryKind::Div, Complex(1), z); }

// e^x·(cos y + i sin y) - 1 = (e^x - 1)·cos y - 2 sin²(y/2) + i·e^x·sin y: nothing cancels.
Complex complex_expm1(Complex z) {
  if (z.imag() == 0) return {std::expm1(z.real()), z.imag()};
  const double half = std::sin(z.imag() / 2);
  return {std::expm1(z.real()) * std::cos(z.imag()) - 2 * half * half,
          std::exp(z.real()) * std::sin(z.imag())};
}

// |1 + z|² - 1 = x·(2 + x) + y² near zero; elsewhere 1 + z has all of its digits.
Complex complex_log1p(Complex z) {
  const double x = z.real();
  const double y = z.imag();
  if (std::fabs(x) >= 0.5 || std::fabs(y) >= 0.5 || std::isnan(x) || std::isnan(y)) {
    return std::log(Complex(1 + x, y));
  }
  return {0.5 * std::log1p(x * (2 + x) + y * y), std::atan2(y, 1 + x)};
}

Complex complex_exp2(Complex z) {
  if (z.imag() == 0) return {std::exp2(z.real()), z.imag()};
  const double angle = z.imag() * std::numbers::ln2;
  const double size = std::exp2(z.real());
  return {size * std::cos(angle), size * std::sin(angle)};
}

// Of e^z and e^-z the one that does not overflow.
Complex complex_sigmoid(Complex z) {
  const bool right = z.real() >= 0;
  const Complex e = std::exp(right ? -z : z);
  const Complex d = one_over(1.0 + e);
  return right ? d : e * d;
}

bool has_nan(Complex z) { return std::isnan(z.real()) || std::isnan(z.imag()); }
bool is_finite_number(Complex z) { return std::isfinite(z.real()) && std::isfinite(z.imag()); }

}  // namespace

std::complex<double> eval_unary(UnaryKind kind, std::complex<double> x) {
  switch (kind) {
    case UnaryKind::Neg: return -x;
    case UnaryKind::Exp: return std::exp(x);
    case UnaryKind::Log: return std::log(x);
    case UnaryKind::Sqrt: return std::sqrt(x);
    case UnaryKind::Rsqrt: return one_over(std::sqrt(x));
    case UnaryKind::Conjugate: return std::conj(x);
    case UnaryKind::Imag: return x.imag();
    case UnaryKind::Abs: return std::abs(x);
    case UnaryKind::Sin: return std::sin(x);
    case UnaryKind::Cos: return std::cos(x);
    case UnaryKind::Tan: return std::tan(x);
    case UnaryKind::Sinh: return std::sinh(x);
    case UnaryKind::Cosh: return std::cosh(x);
    case UnaryKind::Tanh: return std::tanh(x);
    case UnaryKind::Asin: return std::asin(x);
    case UnaryKind::Acos: return std::acos(x);
    case UnaryKind::Atan: return std::atan(x);
    case UnaryKind::Asinh: return std::asinh(x);
    case UnaryKind::Acosh: return std::acosh(x);
    case UnaryKind::Atanh: return std::atanh(x);
    case UnaryKind::Expm1: return complex_expm1(x);
    case UnaryKind::Log1p: return complex_log1p(x);
    case UnaryKind::Exp2: return complex_exp2(x);
    case UnaryKind::Log2: return std::log(x) / std::numbers::ln2;
    case UnaryKind::Sigmoid: return complex_sigmoid(x);
    case UnaryKind::Square: return x * x;
    case UnaryKind::Reciprocal: return one_over(x);
    case UnaryKind::IsNan: return has_nan(x) ? 1 : 0;
    case UnaryKind::IsFinite: return is_finite_number(x) ? 1 : 0;
    default: break;  // see the dtypes of its row
  }
  throw InternalError(fmt::format("'{}' is not defined for complex numbers", name_of(kind)));
}

// e^(b·ln a); anything to the power 0 is 1, and 0 to a power with a positive real part is 0.
std::complex<double> complex_power(std::complex<double> a, std::complex<double> b) {
  if (b == 0.0) return 1;
  if (a == 0.0) {
    return b.real() > 0 ? Complex(0) : Complex(std::numeric_limits<double>::quiet_NaN());
  }
  return std::exp(b * std::log(a));
}

}  // namespace ricci::rule
