#include "support/vector_math_points.h"

#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>

#include "rule/activation_constants.h"
#include "rule/tables/eval_rules.h"

namespace ricci::testing {
namespace {

using Extended = long double;

Extended sigmoid(Extended x) {
  if (x >= 0) return 1 / (1 + std::exp(-x));
  const Extended e = std::exp(x);
  return e / (1 + e);
}

Extended softplus(Extended x) { return (x > 0 ? x : 0) + std::log1p(std::exp(-std::fabs(x))); }

/// x·σ(v), which is 0 at the left end.
Extended gated(Extended x, Extended v) {
  return x == -std::numeric_limits<Extended>::infinity() ? Extended(-0.0) : x * sigmoid(v);
}

Extended hard_sigmoid(Extended x) { return x <= -3 ? 0 : (x >= 3 ? 1 : (x + 3) / 6); }

Extended mish(Extended x) {
  return x == -std::numeric_limits<Extended>::infinity() ? Extended(-0.0)
                                                         : x * std::tanh(softplus(x));
}

Extended gelu(Extended x) {
  if (x == -std::numeric_limits<Extended>::infinity()) return -0.0L;
  return 0.5L * x * std::erfc(-x / std::numbers::sqrt2_v<Extended>);
}

}  // namespace

const std::vector<UnaryRow>& unary_rows() {
  using K = UnaryKind;
  static const std::vector<UnaryRow> rows{
      {K::Exp, {2, 1}, 110},      {K::Exp2, {2, 2}, 160},       {K::Expm1, {1, 2}, 40},
      {K::Sigmoid, {2, 2}, 110},  {K::Silu, {2, 2}, 110},       {K::GeluApprox, {2, 2}, 12},
      {K::Gelu, {5, 5}, 12},      {K::Tanh, {2, 2}, 10},        {K::Sinh, {1, 2}, 20},
      {K::Cosh, {1, 2}, 20},      {K::Log, {2, 1}, 20},         {K::Log2, {1, 1}, 20},
      {K::Log1p, {1, 1}, 20},     {K::Softplus, {1, 2}, 50},    {K::LogSigmoid, {1, 2}, 50},
      {K::Elu, {1, 2}, 40},       {K::Selu, {1, 4}, 40},        {K::Mish, {1, 4}, 50},
      {K::Softsign, {2, 2}, 100}, {K::HardSigmoid, {1, 1}, 5},  {K::HardSwish, {2, 2}, 5},
      {K::Asinh, {1, 2}, 20},     {K::Acosh, {1, 2}, 20},       {K::Atanh, {1, 2}, 1},
      {K::Sin, {2, 1}, 50},       {K::Cos, {2, 1}, 50},         {K::Tan, {1, 1}, 50},
      {K::Atan, {1, 1}, 10},      {K::Asin, {1, 1}, 1},         {K::Acos, {1, 1}, 1},
      {K::Erf, {2, 2}, 5},        {K::Erfc, {1, 3}, 12},        {K::Rsqrt, {2, 0}, 100},
      {K::Sqrt, {0, 0}, 100},     {K::Reciprocal, {0, 0}, 100}, {K::Square, {0, 0}, 100},
      {K::Neg, {0, 0}, 100},      {K::Abs, {0, 0}, 100},        {K::Relu, {0, 0}, 100},
      {K::Sign, {0, 0}, 100},     {K::Round, {0, 0}, 100},      {K::Floor, {0, 0}, 100},
      {K::Ceil, {0, 0}, 100},     {K::Trunc, {0, 0}, 100},      {K::Conjugate, {0, 0}, 100},
  };
  return rows;
}

const std::vector<BinaryRow>& binary_rows() {
  using K = BinaryKind;
  static const std::vector<BinaryRow> rows{
      {K::Pow, {1, 2}}, {K::Atan2, {1, 2}}, {K::Hypot, {1, 1}}, {K::Rem, {0, 0}}, {K::Max, {0, 0}},
      {K::Min, {0, 0}}, {K::Add, {0, 0}},   {K::Sub, {0, 0}},   {K::Mul, {0, 0}}, {K::Div, {0, 0}},
  };
  return rows;
}

Extended exact_unary(UnaryKind kind, Extended x) {
  switch (kind) {
    case UnaryKind::Exp: return std::exp(x);
    case UnaryKind::Exp2: return std::exp2(x);
    case UnaryKind::Expm1: return std::expm1(x);
    case UnaryKind::Sigmoid: return sigmoid(x);
    case UnaryKind::Silu: return gated(x, x);
    case UnaryKind::GeluApprox:
      return gated(x, 2 * std::sqrt(2 / std::numbers::pi_v<Extended>) *
                          (x + Extended(0.044715) * x * x * x));
    case UnaryKind::Gelu: return gelu(x);
    case UnaryKind::Tanh: return std::tanh(x);
    case UnaryKind::Sinh: return std::sinh(x);
    case UnaryKind::Cosh: return std::cosh(x);
    case UnaryKind::Log: return std::log(x);
    case UnaryKind::Log2: return std::log2(x);
    case UnaryKind::Log1p: return std::log1p(x);
    case UnaryKind::Softplus: return softplus(x);
    case UnaryKind::LogSigmoid: return -softplus(-x);
    case UnaryKind::Elu: return x > 0 ? x : std::expm1(x);
    case UnaryKind::Selu:
      return Extended(rule::SeluScale) * (x > 0 ? x : Extended(rule::SeluAlpha) * std::expm1(x));
    case UnaryKind::Mish: return mish(x);
    case UnaryKind::Softsign:
      return std::isinf(x) ? std::copysign(Extended(1), x) : x / (1 + std::fabs(x));
    case UnaryKind::HardSigmoid: return hard_sigmoid(x);
    case UnaryKind::HardSwish: return x <= -3 ? Extended(-0.0) : x * hard_sigmoid(x);
    case UnaryKind::Asinh: return std::asinh(x);
    case UnaryKind::Acosh: return std::acosh(x);
    case UnaryKind::Atanh: return std::atanh(x);
    case UnaryKind::Sin: return std::sin(x);
    case UnaryKind::Cos: return std::cos(x);
    case UnaryKind::Tan: return std::tan(x);
    case UnaryKind::Atan: return std::atan(x);
    case UnaryKind::Asin: return std::asin(x);
    case UnaryKind::Acos: return std::acos(x);
    case UnaryKind::Erf: return std::erf(x);
    case UnaryKind::Erfc: return std::erfc(x);
    case UnaryKind::Rsqrt: return 1 / std::sqrt(x);
    default: return rule::eval_unary(kind, static_cast<double>(x));
  }
}

Extended exact_binary(BinaryKind kind, Extended a, Extended b) {
  switch (kind) {
    case BinaryKind::Pow: return std::pow(a, b);
    case BinaryKind::Atan2: return std::atan2(a, b);
    case BinaryKind::Hypot: return std::hypot(a, b);
    default: return rule::eval_binary(kind, static_cast<double>(a), static_cast<double>(b));
  }
}

template <class T>
double ulps(T got, Extended exact) {
  const double never = std::numeric_limits<double>::infinity();
  if (std::isnan(got) || std::isnan(exact)) return std::isnan(got) && std::isnan(exact) ? 0 : never;
  const T nearest = static_cast<T>(exact);
  if (got == nearest) {
    if (std::isinf(got)) return 0;
  } else if (std::isinf(got) || std::isinf(nearest)) {
    // Just within or just beyond the largest number counts as one step.
    const T finite = std::isinf(got) ? nearest : got;
    const bool edge = std::fabs(finite) == std::numeric_limits<T>::max();
    return edge && std::signbit(got) == std::signbit(nearest) ? 1 : never;
  }
  int exponent = 0;
  std::frexp(exact, &exponent);
  const int least = std::numeric_limits<T>::min_exponent;
  const Extended unit =
      std::ldexp(Extended(1), std::max(exponent, least) - std::numeric_limits<T>::digits);
  return static_cast<double>(std::fabs(static_cast<Extended>(got) - exact) / unit);
}
template double ulps(float, Extended);
template double ulps(double, Extended);

template <class T>
const std::vector<T>& special_points() {
  static const std::vector<T> points = [] {
    using L = std::numeric_limits<T>;
    std::vector<T> p;
    const auto both = [&](double v) {
      const T x = static_cast<T>(v);
      for (const T y : {x, std::nextafter(x, L::infinity()), std::nextafter(x, -L::infinity())}) {
        p.push_back(y);
        p.push_back(-y);
      }
    };
    p.push_back(L::quiet_NaN());
    p.push_back(-L::quiet_NaN());
    for (const T x : {L::infinity(), L::max(), L::min(), L::denorm_min(), T(0), L::epsilon(),
                      L::min() / 2, L::denorm_min() * 3}) {
      p.push_back(x);
      p.push_back(-x);
    }
    for (const double v : {0.25,
                           0.5,
                           1.0,
                           1.5,
                           2.0,
                           2.5,
                           3.0,
                           4.0,
                           10.0,
                           40.0,
                           88.722839,
                           89.0,
                           103.97,
                           105.0,
                           127.0,
                           128.0,
                           149.0,
                           150.0,
                           709.78271,
                           710.4758,
                           745.13,
                           1023.0,
                           1024.0,
                           1074.0,
                           1075.0,
                           0.34657359,
                           0.70710678,
                           1.4142135,
                           0.41421356,
                           2.4142135,
                           0.78539816,
                           1.5707963,
                           3.1415926,
                           65536.0,
                           1048576.0,
                           8388607.5,
                           8388608.0,
                           16777216.0,
                           1e6,
                           1e10,
                           1e15,
                           1e16,
                           4503599627370495.5,
                           4503599627370496.0,
                           9007199254740992.0,
                           1e22,
                           1e30,
                           1e37}) {
      both(v);
    }
    return p;
  }();
  return points;
}
template const std::vector<float>& special_points();
template const std::vector<double>& special_points();

template <class T>
std::vector<T> sample_points(double range, std::size_t count, std::uint64_t seed) {
  using Pattern = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  std::vector<T> p = special_points<T>();
  p.reserve(count);
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> even(-1, 1);
  std::uniform_real_distribution<double> exponent(-40, 0);
  while (p.size() < count) {
    p.push_back(std::bit_cast<T>(static_cast<Pattern>(random())));
    p.push_back(static_cast<T>(range * even(random)));
    const double size = range * std::exp2(exponent(random));
    p.push_back(static_cast<T>(even(random) < 0 ? -size : size));
    p.push_back(static_cast<T>(range * even(random)));
    p.push_back(static_cast<T>(1 + even(random) * std::exp2(exponent(random) / 2)));
  }
  p.resize(count);
  return p;
}
template std::vector<float> sample_points(double, std::size_t, std::uint64_t);
template std::vector<double> sample_points(double, std::size_t, std::uint64_t);

}  // namespace ricci::testing
