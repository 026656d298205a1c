#include "rule/tables/derivative_table.h"

#include <array>
#include <numbers>
#include <optional>

#include "rule/activation_constants.h"

namespace ricci::rule {
namespace {

using E = Expression;
using std::numbers::inv_sqrtpi;
using std::numbers::ln2;
using std::numbers::sqrt2;

// The words formulas are written in.
E exp(const E& x) { return {UnaryKind::Exp, x}; }
E log(const E& x) { return {UnaryKind::Log, x}; }
E sqrt(const E& x) { return {UnaryKind::Sqrt, x}; }
E rsqrt(const E& x) { return {UnaryKind::Rsqrt, x}; }
E sigmoid(const E& x) { return {UnaryKind::Sigmoid, x}; }
E floor(const E& x) { return {UnaryKind::Floor, x}; }
E pow(const E& a, const E& b) { return {BinaryKind::Pow, a, b}; }
E hypot(const E& a, const E& b) { return {BinaryKind::Hypot, a, b}; }
E equal(const E& a, const E& b) { return {CompareKind::Eq, a, b}; }
E less(const E& a, const E& b) { return {CompareKind::Lt, a, b}; }
E select(const E& cond, const E& then, const E& otherwise) { return {cond, then, otherwise}; }

// The nearest whole number, constant on either side. x + ½ would be rounded where x is large.
E nearest(const E& x) {
  const E below = floor(x);
  return select(less(x - below, 0.5), below, below + 1);
}

// x kept within ±bound, beyond which a formula has reached its limit: stops inf·0.
E clamp(const E& x, double bound) {
  return {BinaryKind::Max, E(BinaryKind::Min, x, bound), -bound};
}

// 0 where `cond` holds and `formula(operand)` elsewhere. Where it holds the formula is given 1, so
// that it never sees the operand it would go wrong on; differentiating again is safe as well.
template <class F>
E unless(const E& cond, const E& operand, F&& formula) {
  return select(cond, 0, formula(select(cond, 1, operand)));
}

const E X(Variable::First);
const E A(Variable::First);
const E B(Variable::Second);
const E Y(Variable::Result);

E gelu_slope() {
  // Φ(x) + x·φ(x); the second term is 0 in f64 beyond 40.
  const E z = clamp(X, 40);
  const E density = exp(-0.5 * (z * z)) * (inv_sqrtpi / sqrt2);
  return 0.5 * E(UnaryKind::Erfc, X * (-1 / sqrt2)) + z * density;
}

E gelu_approx_slope() {
  // ½(1 + t) + ½x·(1 - t²)·u', t = tanh u, with ½(1 + t) = σ(2u) and ½(1 - t²) = 2σ(2u)σ(-2u),
  // which do not cancel.
  const double c = 2 * inv_sqrtpi / sqrt2;  // √(2/π)
  const double alpha = 0.044715;
  const E z = clamp(X, 30);
  const E square = z * z;
  const E twice_u = (2 * c) * (z * (1 + alpha * square));
  const E slope_of_u = c * (1 + 3 * alpha * square);
  const E rising = sigmoid(twice_u);
  return rising + 2 * z * (rising * sigmoid(-twice_u)) * slope_of_u;
}

E silu_slope() {
  // s·(1 + x·(1 - s)); the second term is 0 in f64 beyond 800.
  const E z = clamp(X, 800);
  const E s = sigmoid(z);
  return s + z * (s * sigmoid(-z));
}

E relu_slope() {
  // Of y, which is kept anyway: it is above 0 where x is, and NaN where x is.
  const E is_nan(CompareKind::Ne, Y, Y);
  // Not y itself, whose slope is not 0: the second derivative is 0 everywhere.
  return select(less(0, Y), 1, select(is_nan, E(UnaryKind::Sign, Y), 0));
}

// `right` above 0, left·e^x elsewhere.
E exponential_below(double right, double left) {
  const E above = less(0, X);
  return select(above, right, left * exp(select(above, 0, X)));
}

// `inside` between -3 and 3, 0 below and `right` above; the corners belong to the outside.
E within_three(const E& inside, double right) {
  const E is_nan(CompareKind::Ne, X, X);
  const E below = select(is_nan, E(UnaryKind::Sign, X), 0);
  return select(less(-3, X), select(less(X, 3), inside, right), below);
}

E mish_slope() {
  // t + x·(1 - t²)·σ(x) with t = n·r, n = w(w + 2), w = e^x, r = 1/(n + 2), and
  // (1 - t²)·σ(x) = 4·wr·(1 + w)r; the second term is 0 in f64 beyond these bounds.
  const E z(BinaryKind::Max, E(BinaryKind::Min, X, 30), -800);
  const E w = exp(z);
  const E n = w * (w + 2);
  const E r = 1 / (n + 2);
  return n * r + 4 * z * ((w * r) * ((1 + w) * r));
}

E softsign_slope() {
  const E r = 1 / (1 + E(UnaryKind::Abs, X));
  return r * r;
}

E sqrt_slope() {
  return unless(equal(X, 0), X, [](const E& x) { return 0.5 / sqrt(x); });
}

E rsqrt_slope() {
  return unless(equal(X, 0), X, [](const E& x) { return -(0.5 * rsqrt(x) / x); });
}

// The slope where it is defined by y alone, or by a standard formula.
std::optional<E> slope_of(UnaryKind kind) {
  switch (kind) {
    case UnaryKind::Gelu: return gelu_slope();
    case UnaryKind::GeluApprox: return gelu_approx_slope();
    case UnaryKind::Silu: return silu_slope();
    case UnaryKind::Relu: return relu_slope();
    case UnaryKind::Sigmoid: return Y * sigmoid(-X);
    case UnaryKind::Tanh: return 1 - Y * Y;
    case UnaryKind::Exp: return Y;
    case UnaryKind::Log: return 1 / X;
    case UnaryKind::Sqrt: return sqrt_slope();
    case UnaryKind::Rsqrt: return rsqrt_slope();
    case UnaryKind::Neg: return -E(1);
    case UnaryKind::Abs: return E(UnaryKind::Sign, X);
    case UnaryKind::Sin: return E(UnaryKind::Cos, X);
    case UnaryKind::Cos: return -E(UnaryKind::Sin, X);
    case UnaryKind::Tan: return 1 + Y * Y;
    case UnaryKind::Atan: return 1 / hypot(X, 1) / hypot(X, 1);
    case UnaryKind::Round: return E(1);
    case UnaryKind::Conjugate: return E(1);  // of reals; complex rules take it first
    case UnaryKind::Erf: return 2 * inv_sqrtpi * exp(-(X * X));
    case UnaryKind::Erfc: return -(2 * inv_sqrtpi * exp(-(X * X)));
    case UnaryKind::Expm1: return exp(X);
    case UnaryKind::Log1p: return 1 / (1 + X);
    case UnaryKind::Exp2: return Y * ln2;
    case UnaryKind::Log2: return 1 / ln2 / X;
    case UnaryKind::Sinh: return E(UnaryKind::Cosh, X);
    case UnaryKind::Cosh: return E(UnaryKind::Sinh, X);
    case UnaryKind::Asin: return rsqrt((1 - X) * (1 + X));
    case UnaryKind::Acos: return -rsqrt((1 - X) * (1 + X));
    case UnaryKind::Asinh: return 1 / hypot(X, 1);
    case UnaryKind::Acosh: return 1 / (sqrt(X - 1) * sqrt(X + 1));
    case UnaryKind::Atanh: return 1 / ((1 - X) * (1 + X));
    case UnaryKind::Softplus: return sigmoid(X);
    case UnaryKind::LogSigmoid: return sigmoid(-X);
    case UnaryKind::Elu: return exponential_below(1, 1);
    case UnaryKind::Selu: return exponential_below(SeluScale, SeluScale * SeluAlpha);
    case UnaryKind::HardSigmoid: return within_three(E(1) / 6, 0);
    case UnaryKind::HardSwish: return within_three((2 * X + 3) / 6, 1);
    case UnaryKind::Mish: return mish_slope();
    case UnaryKind::Softsign: return softsign_slope();
    case UnaryKind::Square: return 2 * X;
    case UnaryKind::Reciprocal: return -(Y * Y);
    case UnaryKind::Sign:
    case UnaryKind::Floor:
    case UnaryKind::Ceil:
    case UnaryKind::Trunc: return E(0);
    case UnaryKind::Imag:
    case UnaryKind::IsNan:
    case UnaryKind::IsFinite:
    case UnaryKind::LogicalNot:
    case UnaryKind::BitwiseNot: break;
  }
  return std::nullopt;
}

// Real formulas guard against overflow by order and length, which complex numbers do without.
std::optional<E> complex_slope_of(UnaryKind kind) {
  if (!row(kind).dtypes.has(DType::C128)) return std::nullopt;
  switch (kind) {
    case UnaryKind::Abs:
    case UnaryKind::Conjugate: return std::nullopt;
    case UnaryKind::Atan: return 1 / (1 + X * X);
    case UnaryKind::Asinh: return rsqrt(1 + X * X);
    default: return slope_of(kind);
  }
}

// The share of `mine` in the larger (or smaller) of two: 1 when it is chosen, ½ on a tie, 0
// otherwise. A NaN is always chosen, and two of them tie.
E share(const E& mine, const E& other, bool largest) {
  const E chosen = largest ? less(other, mine) : less(mine, other);
  const E beaten = largest ? less(mine, other) : less(other, mine);
  const E against_nan = select(equal(mine, mine), 0, select(equal(other, other), 1, 0.5));
  return select(chosen, 1, select(beaten, 0, select(equal(mine, other), 0.5, against_nan)));
}

// b·a^(b-1), and 0 for b = 0 [EW-12]. Only where a is 0 or NaN does that take a guard; elsewhere
// the formula gives 0 by itself, and the slope along b that the zero has there.
E pow_slope_of_base() {
  const E has_inverse = less(0, E(UnaryKind::Abs, A));
  const E guarded = equal(select(has_inverse, 1, B), 0);
  return unless(guarded, A, [](const E& a) { return B * pow(a, B - 1); });
}

// a^b·ln a for a > 0, and 0 elsewhere [EW-12]
E pow_slope_of_exponent() {
  const E positive = less(0, A);
  const E base = select(positive, A, 1);
  return select(positive, pow(base, B) * log(base), 0);
}

// b·a^(b-1) and a^b·ln a; where a or b is 0 as of real numbers
E complex_pow_slope(bool of_base) {
  if (of_base) {
    const E no_power = equal(B, 0);
    return select(no_power, 0, B * pow(select(no_power, 1, A), B - 1));
  }
  const E nothing = equal(A, 0);
  const E base = select(nothing, 1, A);
  return select(nothing, 0, pow(base, B) * log(base));
}

// A formula of the radius, and 0 at the origin
template <class F>
E of_radius(const E& radius, F&& formula) {
  return unless(equal(radius, 0), radius, formula);
}

std::optional<E> slope_of(BinaryKind kind, std::size_t operand) {
  const bool first = operand == 0;
  switch (kind) {
    case BinaryKind::Add: return E(1);
    case BinaryKind::Sub: return first ? E(1) : -E(1);
    case BinaryKind::Mul: return first ? B : A;
    case BinaryKind::Div: return first ? 1 / B : -(Y / B);
    case BinaryKind::Max: return first ? share(A, B, true) : share(B, A, true);
    case BinaryKind::Min: return first ? share(A, B, false) : share(B, A, false);
    case BinaryKind::Pow: return first ? pow_slope_of_base() : pow_slope_of_exponent();
    // a = n·b + y, where a/b may round to the next whole number; (a - y)/b is n, but for rounding.
    case BinaryKind::Rem: return first ? E(1) : -nearest((A - Y) / B);
    case BinaryKind::Atan2:
      // b/h² and -a/h², without squaring h
      return of_radius(hypot(A, B), [&](const E& h) { return first ? B / h / h : -(A / h / h); });
    case BinaryKind::Hypot: return of_radius(Y, [&](const E& h) { return first ? A / h : B / h; });
    case BinaryKind::MakeComplex:
    case BinaryKind::LogicalAnd:
    case BinaryKind::LogicalOr:
    case BinaryKind::LogicalXor:
    case BinaryKind::BitwiseAnd:
    case BinaryKind::BitwiseOr:
    case BinaryKind::BitwiseXor:
    case BinaryKind::ShiftLeft:
    case BinaryKind::ShiftRight: break;
  }
  return std::nullopt;
}

std::optional<E> complex_slope_of(BinaryKind kind, std::size_t operand) {
  if (!row(kind).dtypes.has(DType::C128)) return std::nullopt;
  return kind == BinaryKind::Pow ? complex_pow_slope(operand == 0) : slope_of(kind, operand);
}

constexpr std::size_t UnaryCount = enumerator_names(UnaryKind{}).size();
constexpr std::size_t BinaryCount = enumerator_names(BinaryKind{}).size();

template <class F>
std::array<std::optional<E>, UnaryCount> unary_rows(F slope) {
  std::array<std::optional<E>, UnaryCount> rows;
  for (std::size_t i = 0; i < UnaryCount; ++i) rows[i] = slope(static_cast<UnaryKind>(i));
  return rows;
}

template <class F>
std::array<std::array<std::optional<E>, 2>, BinaryCount> binary_rows(F slope) {
  std::array<std::array<std::optional<E>, 2>, BinaryCount> rows;
  for (std::size_t i = 0; i < BinaryCount; ++i) {
    for (std::size_t k = 0; k < 2; ++k) rows[i][k] = slope(static_cast<BinaryKind>(i), k);
  }
  return rows;
}

const E* entry(const std::optional<E>& row) { return row ? &*row : nullptr; }

}  // namespace

const Expression* derivative(UnaryKind kind) {
  static const auto table = unary_rows([](UnaryKind k) { return slope_of(k); });
  return entry(table[static_cast<std::size_t>(kind)]);
}

const Expression* complex_derivative(UnaryKind kind) {
  static const auto table = unary_rows([](UnaryKind k) { return complex_slope_of(k); });
  return entry(table[static_cast<std::size_t>(kind)]);
}

const Expression* derivative(BinaryKind kind, std::size_t operand) {
  static const auto table =
      binary_rows([](BinaryKind k, std::size_t at) { return slope_of(k, at); });
  return entry(table[static_cast<std::size_t>(kind)].at(operand));
}

const Expression* complex_derivative(BinaryKind kind, std::size_t operand) {
  static const auto table =
      binary_rows([](BinaryKind k, std::size_t at) { return complex_slope_of(k, at); });
  return entry(table[static_cast<std::size_t>(kind)].at(operand));
}

}  // namespace ricci::rule
