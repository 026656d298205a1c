// Values of the element-wise functions of one operand.
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "rule/activation_constants.h"
#include "rule/tables/eval_rules.h"

namespace ricci::rule {
namespace {

double sigmoid_of(double x) {
  // Either form alone overflows on one side.
  if (x >= 0) return 1 / (1 + std::exp(-x));
  const double e = std::exp(x);
  return e / (1 + e);
}

double softplus_of(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }

double gelu_of(double x) {
  if (x == -std::numeric_limits<double>::infinity()) return -0.0;  // the limit, and its sign
  return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
}

double gelu_approx_of(double x) {
  if (x == -std::numeric_limits<double>::infinity()) return -0.0;
  const double c = std::sqrt(2 / std::numbers::pi);
  return 0.5 * x * (1 + std::tanh(c * (x + 0.044715 * x * x * x)));
}

double silu_of(double x) {
  return x == -std::numeric_limits<double>::infinity() ? -0.0 : x * sigmoid_of(x);
}

double hard_sigmoid_of(double x) { return x <= -3 ? 0 : x >= 3 ? 1 : (x + 3) / 6; }

// tanh(ln(1 + w)) = n/(n + 2) with n = w·(w + 2): nothing cancels. The quotient is 1 from 40 on.
double mish_of(double x) {
  if (x == -std::numeric_limits<double>::infinity()) return -0.0;
  const double w = std::exp(std::fmin(x, 40.0));
  const double n = w * (w + 2);
  return std::isnan(x) ? x : x * (n / (n + 2));
}

double sign_of(double x) { return std::isnan(x) ? x : static_cast<double>((x > 0) - (x < 0)); }

[[noreturn]] void not_defined(UnaryKind kind, const char* numbers) {
  throw InternalError(fmt::format("'{}' is not defined for {}", name_of(kind), numbers));
}

}  // namespace

double eval_unary(UnaryKind kind, double x) {
  switch (kind) {
    case UnaryKind::Gelu: return gelu_of(x);
    case UnaryKind::GeluApprox: return gelu_approx_of(x);
    case UnaryKind::Silu: return silu_of(x);
    case UnaryKind::Relu: return std::isnan(x) ? x : (x > 0 ? x : 0);
    case UnaryKind::Sigmoid: return sigmoid_of(x);
    case UnaryKind::Tanh: return std::tanh(x);
    case UnaryKind::Exp: return std::exp(x);
    case UnaryKind::Log: return std::log(x);
    case UnaryKind::Sqrt: return std::sqrt(x);
    case UnaryKind::Rsqrt: return 1 / std::sqrt(x);
    case UnaryKind::Neg: return -x;
    case UnaryKind::Abs: return std::fabs(x);
    case UnaryKind::Sin: return std::sin(x);
    case UnaryKind::Cos: return std::cos(x);
    case UnaryKind::Tan: return std::tan(x);
    case UnaryKind::Atan: return std::atan(x);
    case UnaryKind::Round: return std::nearbyint(x);
    case UnaryKind::Erf: return std::erf(x);
    case UnaryKind::Erfc: return std::erfc(x);
    case UnaryKind::Expm1: return std::expm1(x);
    case UnaryKind::Log1p: return std::log1p(x);
    case UnaryKind::Exp2: return std::exp2(x);
    case UnaryKind::Log2: return std::log2(x);
    case UnaryKind::Sinh: return std::sinh(x);
    case UnaryKind::Cosh: return std::cosh(x);
    case UnaryKind::Asin: return std::asin(x);
    case UnaryKind::Acos: return std::acos(x);
    case UnaryKind::Asinh: return std::asinh(x);
    case UnaryKind::Acosh: return std::acosh(x);
    case UnaryKind::Atanh: return std::atanh(x);
    case UnaryKind::Softplus: return softplus_of(x);
    case UnaryKind::LogSigmoid: return -softplus_of(-x);
    case UnaryKind::Elu: return x > 0 ? x : std::expm1(x);
    case UnaryKind::Selu: return SeluScale * (x > 0 ? x : SeluAlpha * std::expm1(x));
    case UnaryKind::HardSigmoid: return hard_sigmoid_of(x);
    case UnaryKind::HardSwish: return x <= -3 ? -0.0 : x * hard_sigmoid_of(x);
    case UnaryKind::Mish: return mish_of(x);
    case UnaryKind::Softsign: return std::isinf(x) ? std::copysign(1.0, x) : x / (1 + std::fabs(x));
    case UnaryKind::Square: return x * x;
    case UnaryKind::Reciprocal: return 1 / x;
    case UnaryKind::Sign: return sign_of(x);
    case UnaryKind::Floor: return std::floor(x);
    case UnaryKind::Ceil: return std::ceil(x);
    case UnaryKind::Trunc: return std::trunc(x);
    case UnaryKind::Conjugate: return x;
    case UnaryKind::IsNan: return std::isnan(x) ? 1 : 0;
    case UnaryKind::IsFinite: return std::isfinite(x) ? 1 : 0;
    case UnaryKind::Imag:
    case UnaryKind::LogicalNot:
    case UnaryKind::BitwiseNot: break;
  }
  not_defined(kind, "real numbers");
}

std::int64_t eval_unary(UnaryKind kind, std::int64_t x) {
  switch (kind) {
    case UnaryKind::Neg: return sub_wrapping<std::int64_t>(0, x);
    case UnaryKind::Abs: return x < 0 ? sub_wrapping<std::int64_t>(0, x) : x;
    case UnaryKind::Relu: return x > 0 ? x : 0;
    case UnaryKind::Round:
    case UnaryKind::Floor:
    case UnaryKind::Ceil:
    case UnaryKind::Trunc: return x;
    case UnaryKind::Square: return mul_wrapping(x, x);
    case UnaryKind::Sign: return (x > 0) - (x < 0);
    case UnaryKind::LogicalNot: return x == 0 ? 1 : 0;
    case UnaryKind::BitwiseNot: return ~x;
    default: break;  // see the dtypes of its row
  }
  not_defined(kind, "integers");
}

// out[i] = f(x[i])
void eval(const op::Unary& op, EvalContext& c) {
  with_number_class(c.dtype(0), [&]<class N>() {
    Nd<N> x = c.numbers<N>(0);
    for (N& v : x.data) v = eval_unary(op.kind, v, c.dtype(0));
    c.give(0, x);
  });
}

}  // namespace ricci::rule
