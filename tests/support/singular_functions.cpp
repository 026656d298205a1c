// Singular points of functions applied element by element. The numbers were derived by hand.
#include <cmath>
#include <limits>
#include <numbers>

#include "ricci/build/build.h"
#include "ricci/build/elementwise.h"

#include "support/singular_points.h"

namespace ricci::testing {
namespace {

using std::numbers::ln2;
using std::numbers::pi;
constexpr double Inf = std::numeric_limits<double>::infinity();
constexpr double NaN = std::numeric_limits<double>::quiet_NaN();

using Point = SingularPoint;
using Function = std::function<Value(Value)>;

Function of(UnaryKind kind) {
  return [kind](Value x) { return activation(kind, x); };
}
Function of(BinaryKind kind) {
  return [kind](Value x) { return binary(kind, element(x, 0), element(x, 1)); };
}
Function power_of(double exponent) {
  return [exponent](Value x) { return pow(x, exponent); };
}
Function exponential_of(double base) {
  return [base](Value x) { return pow(base, x); };
}

Value positive(Value x) { return gt(x, scalar_like(x, 0)); }
Value nonzero(Value x) { return ne(x, scalar_like(x, 0)); }
// x where `safe` holds, and 1 elsewhere
Value guarded(Value safe, Value x) { return where(safe, x, scalar_like(x, 1)); }
Value or_zero(Value chosen, Value v) { return where(chosen, v, scalar_like(v, 0)); }

Value guarded_log(Value x) { return or_zero(positive(x), log(guarded(positive(x), x))); }
Value guarded_sqrt(Value x) { return or_zero(positive(x), sqrt(guarded(positive(x), x))); }
Value guarded_reciprocal(Value x) { return or_zero(nonzero(x), 1.0 / guarded(nonzero(x), x)); }
Value entropy_term(Value x) {
  const Value safe = guarded(positive(x), x);
  return or_zero(positive(x), safe * log(safe));
}
Value decaying(Value x) {
  const Value near = lt(x, scalar_like(x, 745));
  const Value safe = guarded(near, x);
  return or_zero(near, safe * exp(-safe));
}
Value clamped(Value x) { return min(max(x, 0.0), 1.0); }

SingularSection powers() {
  const std::string base = "b·x^(b-1), and 0 for b = 0";
  const std::string exponent = "no slope by the exponent unless the base is positive";
  return {
      "Powers",
      {{"x^0", power_of(0), {0}, 1, {0}, {{0}}, "0^0 = 1, a constant"},
       {"x^0.5", power_of(0.5), {0}, 0, {Inf}, {{-Inf}}, "the true slope; sqrt has its own kink"},
       {"x^1", power_of(1), {0}, 0, {1}, {{0}}, base},
       {"x^2", power_of(2), {0}, 0, {0}, {{2}}, base},
       {"x^3", power_of(3), {0}, 0, {0}, {{0}}, base},
       {"x^0", power_of(0), {-2}, 1, {0}, {{0}}, base},
       {"x^1", power_of(1), {-2}, -2, {1}, {{0}}, base},
       {"x^2", power_of(2), {-3}, 9, {-6}, {{2}}, "negative bases have integer powers"},
       {"x^3", power_of(3), {-2}, -8, {12}, {{-12}}, "negative bases have integer powers"},
       {"x^-1", power_of(-1), {-2}, -0.5, {-0.25}, {{-0.25}}, base},
       {"a^b",
        of(BinaryKind::Pow),
        {2, 0},
        1,
        {0, ln2},
        {{0.5, 0.5 + ln2 * ln2}},
        "the slope by a is 0 at b = 0, and grows with b as 1/a"},
       {"a^b", of(BinaryKind::Pow), {-2, 0}, 1, {0, 0}, {}, "no slope by b, but the one by a has"},
       {"a^b", of(BinaryKind::Pow), {0, 0}, 1, {0, 0}, {{0, 0}}, "both slopes are 0 there"},
       {"a^b", of(BinaryKind::Pow), {NaN, 0}, 1, {0, 0}, {{0, 0}}, "NaN^0 = 1, a constant"},
       {"2^x", exponential_of(2), {0}, 1, {ln2}, {{ln2 * ln2}}, "a^b·ln a"},
       {"0^x", exponential_of(0), {2}, 0, {0}, {{0}}, exponent},
       {"0^x", exponential_of(0), {0}, 1, {0}, {{0}}, exponent},
       {"(-2)^x", exponential_of(-2), {2}, 4, {0}, {{0}}, exponent},
       {"x^x", [](Value x) { return pow(x, x); }, {0}, 1, {0}, {{0}}, "both slopes are 0 there"}}};
}

SingularSection roots() {
  const auto norm_of_one = [](Value x) { return sqrt(square(x)); };
  return {"Roots and angles",
          {{"sqrt(x)", of(UnaryKind::Sqrt), {0}, 0, {0}, {{0}}, "a kink"},
           {"sqrt(x)",
            of(UnaryKind::Sqrt),
            {-1},
            NaN,
            {NaN},
            {{NaN}},
            "outside the domain nothing hides it"},
           {"rsqrt(x)", of(UnaryKind::Rsqrt), {0}, Inf, {0}, {{0}}, "a kink"},
           {"sqrt(x²)", norm_of_one, {0}, 0, {0}, {{0}}, "|x|, through sqrt's kink"},
           {"hypot(a, b)", of(BinaryKind::Hypot), {0, 0}, 0, {0, 0}, {{0, 0}}, "a kink"},
           {"hypot(a, b)", of(BinaryKind::Hypot), {0, 2}, 2, {0, 1}, {{0.5, 0}}, "x/r, on an axis"},
           {"hypot(a, b)",
            of(BinaryKind::Hypot),
            {3e200, 4e200},
            5e200,
            {0.6, 0.8},
            {},
            "no square overflows"},
           {"atan2(a, b)",
            of(BinaryKind::Atan2),
            {0, 0},
            0,
            {0, 0},
            {{0, 0}},
            "no angle at the origin"},
           {"atan2(a, b)", of(BinaryKind::Atan2), {0, 1}, 0, {1, 0}, {{-1, -1}}, "b/r², -a/r²"},
           {"atan2(a, b)", of(BinaryKind::Atan2), {1, 0}, pi / 2, {0, -1}, {{1, 1}}, "b/r², -a/r²"},
           {"atan2(a, b)",
            of(BinaryKind::Atan2),
            {0, -1},
            pi,
            {-1, 0},
            {{-1, -1}},
            "smooth across the cut"},
           {"atan2(a, b)",
            of(BinaryKind::Atan2),
            {1e200, 1e200},
            pi / 4,
            {5e-201, -5e-201},
            {},
            "r is never squared"},
           {"asin(x)", of(UnaryKind::Asin), {1}, pi / 2, {Inf}, {}, "the true slope"},
           {"acosh(x)", of(UnaryKind::Acosh), {1}, 0, {Inf}, {}, "the true slope"},
           {"atan(x)", of(UnaryKind::Atan), {Inf}, pi / 2, {0}, {}, "saturated"}}};
}

SingularSection kinks() {
  const auto twice = [](UnaryKind kind) {
    return [kind](Value x) { return activation(kind, x) * activation(kind, x); };
  };
  const std::string flat = "constant on either side";
  return {"Kinks and steps",
          {{"abs(x)", of(UnaryKind::Abs), {0}, 0, {0}, {{0}}, "sign(0) = 0"},
           {"abs(x)", of(UnaryKind::Abs), {-0.0}, 0, {0}, {{0}}, "sign(-0) = 0"},
           {"abs(x)·abs(x)",
            twice(UnaryKind::Abs),
            {0},
            0,
            {0},
            {{0}},
            "the kink of each factor counts"},
           {"relu(x)", of(UnaryKind::Relu), {0}, 0, {0}, {{0}}, "a kink"},
           {"relu(x)",
            of(UnaryKind::Relu),
            {NaN},
            NaN,
            {NaN},
            {{0}},
            "NaN stays NaN; straight on either side"},
           {"relu(x)·relu(x)", twice(UnaryKind::Relu), {0}, 0, {0}, {{0}}, "a kink"},
           {"max(x, 0)²",
            [](Value x) { return square(max(x, 0.0)); },
            {0},
            0,
            {0},
            {{0.5}},
            "2·(½)²: the tie is shared"},
           {"sign(x)", of(UnaryKind::Sign), {0}, 0, {0}, {{0}}, flat},
           {"floor(x)", of(UnaryKind::Floor), {2}, 2, {0}, {{0}}, flat},
           {"ceil(x)", of(UnaryKind::Ceil), {2}, 2, {0}, {{0}}, flat},
           {"trunc(x)", of(UnaryKind::Trunc), {-1}, -1, {0}, {{0}}, flat},
           {"round(x)", of(UnaryKind::Round), {0.5}, 0, {1}, {{0}}, "straight through"},
           {"round(x)", of(UnaryKind::Round), {2.2}, 2, {1}, {{0}}, "straight through"},
           {"rem(a, b)",
            of(BinaryKind::Rem),
            {4, 2},
            0,
            {1, -2},
            {{0, 0}},
            "1 and -n, where a = n·b + rem"},
           {"rem(a, b)",
            of(BinaryKind::Rem),
            {1, 0.1},
            0.1,
            {1, -9},
            {{0, 0}},
            "a/b rounds to 10, but 0.1 is left"},
           {"min(max(x, 0), 1)", clamped, {0}, 0, {0.5}, {{0}}, "a tie of x and its bound"},
           {"min(max(x, 0), 1)", clamped, {1}, 1, {0.5}, {{0}}, "a tie of x and its bound"},
           {"min(max(x, 0), 1)", clamped, {2}, 1, {0}, {{0}}, "beyond the bound"},
           {"reciprocal(x)",
            of(UnaryKind::Reciprocal),
            {0},
            Inf,
            {-Inf},
            {{Inf}},
            "a pole, not a kink"},
           {"a/b",
            of(BinaryKind::Div),
            {1e-200, 1e-200},
            1,
            {1e200, -1e200},
            {},
            "b is never squared"}}};
}

SingularSection choices() {
  return {"The larger of two",
          {{"max(a, b)", of(BinaryKind::Max), {1, 1}, 1, {0.5, 0.5}, {{0, 0}}, "shared equally"},
           {"min(a, b)", of(BinaryKind::Min), {1, 1}, 1, {0.5, 0.5}, {{0, 0}}, "shared equally"},
           {"max(a, b)",
            of(BinaryKind::Max),
            {0.0, -0.0},
            0,
            {0.5, 0.5},
            {{0, 0}},
            "0 and -0 are equal"},
           {"max(a, b)",
            of(BinaryKind::Max),
            {-Inf, -Inf},
            -Inf,
            {0.5, 0.5},
            {{0, 0}},
            "shared equally"},
           {"max(x, x)", [](Value x) { return max(x, x); }, {3}, 3, {1}, {{0}}, "½ + ½"},
           {"max(a, b)",
            of(BinaryKind::Max),
            {NaN, 1},
            NaN,
            {1, 0},
            {{0, 0}},
            "a NaN is always chosen"},
           {"min(a, b)",
            of(BinaryKind::Min),
            {1, NaN},
            NaN,
            {0, 1},
            {{0, 0}},
            "a NaN is always chosen"},
           {"max(a, b)",
            of(BinaryKind::Max),
            {NaN, NaN},
            NaN,
            {0.5, 0.5},
            {{0, 0}},
            "two of them tie"}}};
}

SingularSection saturation() {
  const double far = 4.248354255291589e-18;   // σ(40)·σ(-40)
  const double density = 0.3989422804014327;  // φ(0)
  const auto silu_of = of(UnaryKind::Silu);
  const auto gelu_of = of(UnaryKind::Gelu);
  const auto tanh_gelu_of = of(UnaryKind::GeluApprox);
  return {
      "Far away",
      {{"sigmoid(x)", of(UnaryKind::Sigmoid), {0}, 0.5, {0.25}, {{0}}, "s·(1 - s)"},
       {"sigmoid(x)", of(UnaryKind::Sigmoid), {40}, 1, {far}, {{-far}}, "1 - s is not formed"},
       {"sigmoid(x)", of(UnaryKind::Sigmoid), {1000}, 1, {0}, {{0}}, "saturated"},
       {"sigmoid(x)", of(UnaryKind::Sigmoid), {-1000}, 0, {0}, {{0}}, "saturated"},
       {"sigmoid(x)", of(UnaryKind::Sigmoid), {-Inf}, 0, {0}, {{0}}, "saturated"},
       {"tanh(x)", of(UnaryKind::Tanh), {1000}, 1, {0}, {{0}}, "saturated"},
       {"tanh(x)", of(UnaryKind::Tanh), {-Inf}, -1, {0}, {{0}}, "saturated"},
       {"softplus(x)",
        of(UnaryKind::Softplus),
        {1000},
        1000,
        {1},
        {{0}},
        "no exponential overflows"},
       {"softplus(x)", of(UnaryKind::Softplus), {-1000}, 0, {0}, {{0}}, "saturated"},
       {"softplus(x)", of(UnaryKind::Softplus), {Inf}, Inf, {1}, {{0}}, "its asymptote"},
       {"log_sigmoid(x)", of(UnaryKind::LogSigmoid), {1000}, 0, {0}, {{0}}, "saturated"},
       {"log_sigmoid(x)",
        of(UnaryKind::LogSigmoid),
        {-1000},
        -1000,
        {1},
        {{0}},
        "log 0 is not formed"},
       {"elu(x)", of(UnaryKind::Elu), {-1000}, -1, {0}, {{0}}, "saturated"},
       {"elu(x)", of(UnaryKind::Elu), {0}, 0, {1}, {{1}}, "the exponential's side"},
       {"elu(x)", of(UnaryKind::Elu), {Inf}, Inf, {1}, {{0}}, "no exponential overflows"},
       {"selu(x)", of(UnaryKind::Selu), {-1000}, -1.7580993408473768, {0}, {{0}}, "saturated"},
       {"hard_sigmoid(x)", of(UnaryKind::HardSigmoid), {3}, 1, {0}, {{0}}, "corners are flat"},
       {"hard_sigmoid(x)", of(UnaryKind::HardSigmoid), {-Inf}, 0, {0}, {{0}}, "saturated"},
       {"hard_swish(x)", of(UnaryKind::HardSwish), {3}, 3, {1}, {{0}}, "corners are straight"},
       {"hard_swish(x)", of(UnaryKind::HardSwish), {-3}, 0, {0}, {{0}}, "corners are straight"},
       {"hard_swish(x)", of(UnaryKind::HardSwish), {-Inf}, 0, {0}, {{0}}, "its asymptote"},
       {"mish(x)", of(UnaryKind::Mish), {1000}, 1000, {1}, {{0}}, "no exponential overflows"},
       {"mish(x)", of(UnaryKind::Mish), {-1000}, 0, {0}, {{0}}, "its asymptote"},
       {"mish(x)", of(UnaryKind::Mish), {-Inf}, 0, {0}, {{0}}, "x is kept within bounds: no inf·0"},
       {"softsign(x)", of(UnaryKind::Softsign), {0}, 0, {1}, {{0}}, "the slopes' mean of ∓2"},
       {"softsign(x)", of(UnaryKind::Softsign), {1e200}, 1, {0}, {{0}}, "saturated"},
       {"softsign(x)", of(UnaryKind::Softsign), {-Inf}, -1, {0}, {{0}}, "its limit, no inf/inf"},
       {"silu(x)", silu_of, {0}, 0, {0.5}, {{0.5}}, "smooth"},
       {"silu(x)", silu_of, {1000}, 1000, {1}, {{0}}, "its asymptote"},
       {"silu(x)", silu_of, {-1000}, 0, {0}, {{0}}, "its asymptote"},
       {"silu(x)", silu_of, {Inf}, Inf, {1}, {{0}}, "x is kept within bounds: no inf·0"},
       {"silu(x)", silu_of, {-Inf}, 0, {0}, {{0}}, "x is kept within bounds: no inf·0"},
       {"gelu(x)", gelu_of, {0}, 0, {0.5}, {{2 * density}}, "Φ + x·φ"},
       {"gelu(x)", gelu_of, {50}, 50, {1}, {{0}}, "its asymptote"},
       {"gelu(x)", gelu_of, {-50}, 0, {0}, {{0}}, "its asymptote"},
       {"gelu(x)", gelu_of, {Inf}, Inf, {1}, {{0}}, "x is kept within bounds: no inf·0"},
       {"gelu(x)", gelu_of, {-Inf}, 0, {0}, {{0}}, "x is kept within bounds: no inf·0"},
       {"gelu_approx(x)", tanh_gelu_of, {1000}, 1000, {1}, {{0}}, "its asymptote"},
       {"gelu_approx(x)", tanh_gelu_of, {-1000}, 0, {0}, {{0}}, "its asymptote"},
       {"gelu_approx(x)", tanh_gelu_of, {-Inf}, 0, {0}, {{0}}, "x is kept within bounds: no inf·0"},
       {"log1p(x)", of(UnaryKind::Log1p), {0}, 0, {1}, {{-1}}, "smooth"},
       {"log1p(x)", of(UnaryKind::Log1p), {1e-300}, 1e-300, {1}, {{-1}}, "no cancellation"},
       {"expm1(x)", of(UnaryKind::Expm1), {0}, 0, {1}, {{1}}, "smooth"},
       {"expm1(x)", of(UnaryKind::Expm1), {-1000}, -1, {0}, {{0}}, "saturated"},
       {"exp(x)", of(UnaryKind::Exp), {-Inf}, 0, {0}, {{0}}, "saturated"}}};
}

// A function of a number that is none: what is constant stays so, in every order.
SingularSection not_a_number() {
  SingularSection out{"NaN", {}};
  const auto add = [&](UnaryKind kind, double first, double second, const std::string& why) {
    const std::string name(name_of(kind));
    out.points.push_back({name + "(x)", of(kind), {NaN}, NaN, {first}, {{second}}, why});
  };
  add(UnaryKind::Abs, NaN, 0, "straight on either side");
  add(UnaryKind::Neg, -1, 0, "its slope is constant");
  add(UnaryKind::Round, 1, 0, "straight through");
  add(UnaryKind::Square, NaN, 2, "its second derivative is constant");
  add(UnaryKind::HardSigmoid, NaN, 0, "straight on either side");
  add(UnaryKind::HardSwish, NaN, 0, "its slope is straight");
  for (const UnaryKind k : {UnaryKind::Sign, UnaryKind::Floor, UnaryKind::Ceil, UnaryKind::Trunc}) {
    add(k, 0, 0, "constant on either side");
  }
  for (const UnaryKind k :
       {UnaryKind::Gelu,      UnaryKind::GeluApprox, UnaryKind::Silu,     UnaryKind::Sigmoid,
        UnaryKind::Tanh,      UnaryKind::Exp,        UnaryKind::Log,      UnaryKind::Sqrt,
        UnaryKind::Rsqrt,     UnaryKind::Sin,        UnaryKind::Cos,      UnaryKind::Tan,
        UnaryKind::Atan,      UnaryKind::Erf,        UnaryKind::Erfc,     UnaryKind::Expm1,
        UnaryKind::Log1p,     UnaryKind::Exp2,       UnaryKind::Log2,     UnaryKind::Sinh,
        UnaryKind::Cosh,      UnaryKind::Asin,       UnaryKind::Acos,     UnaryKind::Asinh,
        UnaryKind::Acosh,     UnaryKind::Atanh,      UnaryKind::Softplus, UnaryKind::LogSigmoid,
        UnaryKind::Mish,      UnaryKind::Softsign,   UnaryKind::Elu,      UnaryKind::Selu,
        UnaryKind::Reciprocal}) {
    add(k, NaN, NaN, "nothing hides it");
  }
  out.points.push_back({"hypot(a, b)",
                        of(BinaryKind::Hypot),
                        {NaN, 1},
                        NaN,
                        {NaN, NaN},
                        {{NaN, NaN}},
                        "nothing hides it"});
  out.points.push_back({"atan2(a, b)",
                        of(BinaryKind::Atan2),
                        {NaN, 1},
                        NaN,
                        {NaN, NaN},
                        {{NaN, NaN}},
                        "nothing hides it"});
  return out;
}

SingularSection guards() {
  const auto bare_sqrt = [](Value x) { return or_zero(positive(x), sqrt(x)); };
  const std::string side = "the other side sees 1 instead of x";
  return {
      "Guards",
      {{"where(x > 0, log(where(x > 0, x, 1)), 0)", guarded_log, {0}, 0, {0}, {{0}}, side},
       {"where(x > 0, log(where(x > 0, x, 1)), 0)", guarded_log, {-1}, 0, {0}, {{0}}, side},
       {"where(x > 0, log(where(x > 0, x, 1)), 0)",
        guarded_log,
        {2},
        ln2,
        {0.5},
        {{-0.25}},
        "the side that is taken"},
       {"where(x > 0, sqrt(where(x > 0, x, 1)), 0)", guarded_sqrt, {-1}, 0, {0}, {{0}}, side},
       {"where(x > 0, sqrt(x), 0)", bare_sqrt, {0}, 0, {0}, {{0}}, "sqrt's kink needs no guard"},
       {"where(x ≠ 0, 1/where(x ≠ 0, x, 1), 0)", guarded_reciprocal, {0}, 0, {0}, {{0}}, side},
       {"where(x > 0, x·log x, 0), guarded", entropy_term, {0}, 0, {0}, {{0}}, side},
       {"x·log x", [](Value x) { return x * log(x); }, {0}, NaN, {NaN}, {}, "0·inf: unguarded"},
       {"where(x < 745, x·exp(-x), 0), guarded",
        decaying,
        {Inf},
        0,
        {0},
        {{0}},
        "inf·0 never formed"}}};
}

SingularSection cuts() {
  const auto through_integer = [](Value x) {
    return cast_to(cast_to(x, DType::I32), DType::F64) * x;
  };
  return {"Where paths end",
          {{"float(int(x))·x",
            through_integer,
            {2.75},
            5.5,
            {2},
            {{0}},
            "integers carry no derivative"},
           {"float(x > 0)·x",
            [](Value x) { return cast_to(positive(x), DType::F64) * x; },
            {0},
            0,
            {0},
            {{0}},
            "nor do comparisons"},
           {"stop_gradient(x)·x",
            [](Value x) { return detach(x) * x; },
            {3},
            9,
            {3},
            {{0}},
            "a constant to derivatives of any order"},
           {"stop_gradient(x)",
            [](Value x) { return detach(x); },
            {3},
            3,
            {0},
            {{0}},
            "a constant to derivatives of any order"},
           {"f64(f32(x))²",
            [](Value x) { return square(cast_to(cast_to(x, DType::F32), DType::F64)); },
            {1.5},
            2.25,
            {3},
            {{2}},
            "between floats a cast is the identity"}}};
}

}  // namespace

std::vector<SingularSection> singular_functions() {
  return {powers(), roots(), kinks(), choices(), saturation(), not_a_number(), guards(), cuts()};
}

}  // namespace ricci::testing
