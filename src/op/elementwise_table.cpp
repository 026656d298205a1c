// What each member of the element-wise families costs, accepts, means and keeps to the bit: one row
// a kind.
#include "ricci/op/elementwise.h"

namespace ricci {
namespace {

using dtypes::booleans;
using dtypes::complexes;
using dtypes::floats;
using dtypes::ints;

constexpr DTypeSet none;
constexpr DTypeSet reals = floats | ints;
constexpr DTypeSet numbers = reals | complexes;
constexpr DTypeSet field_dtypes = floats | complexes;
constexpr DTypeSet part_dtypes = {DType::F32, DType::F64};  // of complex numbers
constexpr DTypeSet ordered = reals | booleans;

constexpr ElementCost Simple{1};
constexpr ElementCost Slow{4};  // an instruction that takes longer, or a few of them
constexpr ElementCost Polynomial{12};
constexpr ElementCost Longest{24};
constexpr ElementCost Function{12, 60};
constexpr ElementCost Rooted{4, 30};
constexpr ElementCost Measured{1, 12};
constexpr ElementCost Power{24, 120};
constexpr ElementCost Multiplied{1, 4};
constexpr ElementCost Divided{4, 24};

constexpr auto UnaryRows = std::to_array<ElementwiseRow>({
    {"gelu", Polynomial, floats, {}, "x·Φ(x) = x/2·(1 + erf(x/√2))"},
    {"gelu_approx", Polynomial, floats, {}, "x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³)))"},
    {"silu", Polynomial, floats, {}, "x·σ(x)"},
    {"relu", Simple, reals, {}, "max(x, 0); NaN stays NaN", reals},
    {"sigmoid", Function, field_dtypes, {}, "1/(1 + e^-x)"},
    {"tanh", Function, field_dtypes, {}, "tanh x"},
    {"exp", Function, field_dtypes, {}, "e^x"},
    {"log",
     Function,
     field_dtypes,
     {},
     "ln x; -inf at 0, NaN below, of complex numbers the branch with |im| ≤ π"},
    {"sqrt",
     Rooted,
     field_dtypes,
     {},
     "√x; NaN below 0, of complex numbers the root with re ≥ 0",
     floats},
    {"rsqrt", Function, field_dtypes, {}, "1/√x; NaN below 0"},
    {"neg", Simple, numbers, {}, "-x; integers wrap", numbers},
    {"abs", Measured, numbers, Gives::RealPart, "|x|; integers wrap", reals},
    {"sin", Function, field_dtypes, {}, "sin x"},
    {"cos", Function, field_dtypes, {}, "cos x"},
    {"tan", Function, field_dtypes, {}, "tan x"},
    {"atan", Function, field_dtypes, {}, "arctan x"},
    {"round", Slow, reals, {}, "nearest integer, ties to even", reals},
    {"erf", Polynomial, floats, {}, "2/√π ∫₀ˣ e^-t² dt"},
    {"erfc", Polynomial, floats, {}, "1 - erf x, without cancellation"},
    {"expm1", Function, field_dtypes, {}, "e^x - 1, without cancellation"},
    {"log1p", Function, field_dtypes, {}, "ln(1 + x), without cancellation"},
    {"exp2", Function, field_dtypes, {}, "2^x"},
    {"log2", Function, field_dtypes, {}, "log₂ x"},
    {"sinh", Function, field_dtypes, {}, "sinh x"},
    {"cosh", Function, field_dtypes, {}, "cosh x"},
    {"asin", Function, field_dtypes, {}, "arcsin x; NaN outside [-1, 1]"},
    {"acos", Function, field_dtypes, {}, "arccos x; NaN outside [-1, 1]"},
    {"asinh", Function, field_dtypes, {}, "arsinh x"},
    {"acosh", Function, field_dtypes, {}, "arcosh x; NaN below 1"},
    {"atanh", Function, field_dtypes, {}, "artanh x; ±inf at ±1, NaN outside"},
    {"softplus", Polynomial, floats, {}, "ln(1 + e^x), without overflow"},
    {"log_sigmoid", Polynomial, floats, {}, "ln σ(x) = -softplus(-x)"},
    {"elu", Polynomial, floats, {}, "x above 0, e^x - 1 below"},
    {"selu",
     Polynomial,
     floats,
     {},
     "1.0507009873554805·(x above 0, 1.6732632423543772·(e^x - 1) below)"},
    {"hard_sigmoid", Slow, floats, {}, "(x + 3)/6, at least 0 and at most 1"},
    {"hard_swish", Slow, floats, {}, "x·hard_sigmoid(x)"},
    {"mish", Polynomial, floats, {}, "x·tanh(softplus(x))"},
    {"softsign", Slow, floats, {}, "x/(1 + |x|)"},
    {"square", Multiplied, numbers, {}, "x²", reals},
    {"reciprocal", Divided, field_dtypes, {}, "1/x", floats},
    {"sign", Slow, reals, {}, "-1, 0 or 1; NaN stays NaN", reals},
    {"floor", Slow, reals, {}, "largest integer ≤ x", reals},
    {"ceil", Slow, reals, {}, "smallest integer ≥ x", reals},
    {"trunc", Slow, reals, {}, "x without its fraction", reals},
    {"conjugate",
     Simple,
     field_dtypes,
     {},
     "re x - i·im x; x itself when it is real",
     field_dtypes},
    {"imag", Simple, complexes, Gives::RealPart, "the imaginary part of x", complexes},
    {"is_nan", Simple, field_dtypes, Gives::Truth, "x, or a part of it, is NaN", field_dtypes},
    {"is_finite", Simple, field_dtypes, Gives::Truth, "x is neither infinite nor NaN",
     field_dtypes},
    {"logical_not", Simple, booleans, {}, "not x", booleans},
    {"bitwise_not", Simple, ints | booleans, {}, "every bit flipped", ints | booleans},
});

// Every row says both: for which dtypes it is exact, and for which it commutes. Float max and min
// do not commute: which of -0.0 and 0.0 they give depends on the order. Nor does the complex
// product, whose imaginary part sums in the order of the operands.
constexpr auto BinaryRows = std::to_array<ElementwiseRow>({
    {"add", Simple, numbers, {}, "a + b; integers wrap", numbers, numbers},
    {"sub", Simple, numbers, {}, "a - b; integers wrap", numbers, none},
    {"mul", Multiplied, numbers, {}, "a·b; integers wrap", reals, reals},
    {"div",
     Divided,
     numbers,
     {},
     "a/b; integers truncate, and dividing by 0 is an error",
     reals,
     none},
    {"max", Simple, reals, {}, "the larger; NaN if either is", reals, ints},
    {"min", Simple, reals, {}, "the smaller; NaN if either is", reals, ints},
    {"pow",
     Power,
     numbers,
     {},
     "a^b; integers need b ≥ 0; e^(b·ln a) of complex numbers",
     ints,
     none},
    {"rem", Longest, reals, {}, "a - b·trunc(a/b), with a's sign", reals, none},
    {"atan2", Longest, floats, {}, "the angle of (b, a)", none, none},
    {"hypot", Longest, floats, {}, "√(a² + b²), without overflow", none, none},
    {"make_complex", Simple, part_dtypes, Gives::Complex, "a + i·b", part_dtypes, none},
    {"logical_and", Simple, booleans, {}, "a and b", booleans, booleans},
    {"logical_or", Simple, booleans, {}, "a or b", booleans, booleans},
    {"logical_xor", Simple, booleans, {}, "a or b, not both", booleans, booleans},
    {"bitwise_and", Simple, ints | booleans, {}, "a & b", ints | booleans, ints | booleans},
    {"bitwise_or", Simple, ints | booleans, {}, "a | b", ints | booleans, ints | booleans},
    {"bitwise_xor", Simple, ints | booleans, {}, "a ^ b", ints | booleans, ints | booleans},
    {"shift_left",
     Simple,
     ints,
     {},
     "a·2^b, wrapping; 0 when b is not below the width",
     ints,
     none},
    {"shift_right",
     Simple,
     ints,
     {},
     "a/2^b, keeping the sign; b at or past the width fills with it",
     ints,
     none},
});

constexpr auto CompareRows = std::to_array<ElementwiseRow>({
    {"eq", Simple, dtypes::all, Gives::Truth, "a = b", dtypes::all, dtypes::all},
    {"ne", Simple, dtypes::all, Gives::Truth, "a ≠ b", dtypes::all, dtypes::all},
    {"lt", Simple, ordered, Gives::Truth, "a < b", ordered, none},
    {"le", Simple, ordered, Gives::Truth, "a ≤ b", ordered, none},
    {"gt", Simple, ordered, Gives::Truth, "a > b", ordered, none},
    {"ge", Simple, ordered, Gives::Truth, "a ≥ b", ordered, none},
});

// Rows stand in the order of their kinds; the build stops when one is out of step.
template <class Kind, std::size_t N>
constexpr bool in_step(const std::array<ElementwiseRow, N>& rows) {
  constexpr auto names = enumerator_names(Kind{});
  if (names.size() != N) return false;
  for (std::size_t i = 0; i < N; ++i) {
    if (rows[i].name != names[i]) return false;
  }
  return true;
}
static_assert(in_step<UnaryKind>(UnaryRows));
static_assert(in_step<BinaryKind>(BinaryRows));
static_assert(in_step<CompareKind>(CompareRows));

}  // namespace

DType ElementwiseRow::result_dtype(DType operands) const {
  switch (gives) {
    case Gives::Same: break;
    case Gives::Truth: return DType::Bool;
    case Gives::RealPart: return real_part_of(operands);
    case Gives::Complex: return complex_of(operands);
  }
  return operands;
}

const ElementwiseRow& row(UnaryKind kind) { return UnaryRows[static_cast<std::size_t>(kind)]; }
const ElementwiseRow& row(BinaryKind kind) { return BinaryRows[static_cast<std::size_t>(kind)]; }
const ElementwiseRow& row(CompareKind kind) { return CompareRows[static_cast<std::size_t>(kind)]; }

}  // namespace ricci
