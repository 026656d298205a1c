// What each member of the element-wise families accepts, means and keeps to the bit: one row a
// kind.
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
constexpr DTypeSet ordered = reals | booleans;

constexpr auto UnaryRows = std::to_array<ElementwiseRow>({
    {"gelu", floats, {}, "x·Φ(x) = x/2·(1 + erf(x/√2))"},
    {"gelu_approx", floats, {}, "x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³)))"},
    {"silu", floats, {}, "x·σ(x)"},
    {"relu", reals, {}, "max(x, 0); NaN stays NaN", reals},
    {"sigmoid", floats, {}, "1/(1 + e^-x)"},
    {"tanh", floats, {}, "tanh x"},
    {"exp", floats | complexes, {}, "e^x"},
    {"log", floats | complexes, {}, "ln x; -inf at 0, NaN below"},
    {"sqrt", floats | complexes, {}, "√x; NaN below 0", floats},
    {"rsqrt", floats, {}, "1/√x; NaN below 0"},
    {"neg", numbers, {}, "-x; integers wrap", numbers},
    {"abs", reals, {}, "|x|; integers wrap", reals},
    {"sin", floats, {}, "sin x"},
    {"cos", floats, {}, "cos x"},
    {"tan", floats, {}, "tan x"},
    {"atan", floats, {}, "arctan x"},
    {"round", reals, {}, "nearest integer, ties to even", reals},
    {"erf", floats, {}, "2/√π ∫₀ˣ e^-t² dt"},
    {"erfc", floats, {}, "1 - erf x, without cancellation"},
    {"expm1", floats, {}, "e^x - 1, without cancellation"},
    {"log1p", floats, {}, "ln(1 + x), without cancellation"},
    {"exp2", floats, {}, "2^x"},
    {"log2", floats, {}, "log₂ x"},
    {"sinh", floats, {}, "sinh x"},
    {"cosh", floats, {}, "cosh x"},
    {"asin", floats, {}, "arcsin x; NaN outside [-1, 1]"},
    {"acos", floats, {}, "arccos x; NaN outside [-1, 1]"},
    {"asinh", floats, {}, "arsinh x"},
    {"acosh", floats, {}, "arcosh x; NaN below 1"},
    {"atanh", floats, {}, "artanh x; ±inf at ±1, NaN outside"},
    {"softplus", floats, {}, "ln(1 + e^x), without overflow"},
    {"log_sigmoid", floats, {}, "ln σ(x) = -softplus(-x)"},
    {"elu", floats, {}, "x above 0, e^x - 1 below"},
    {"selu", floats, {}, "1.0507009873554805·(x above 0, 1.6732632423543772·(e^x - 1) below)"},
    {"hard_sigmoid", floats, {}, "(x + 3)/6, at least 0 and at most 1"},
    {"hard_swish", floats, {}, "x·hard_sigmoid(x)"},
    {"mish", floats, {}, "x·tanh(softplus(x))"},
    {"softsign", floats, {}, "x/(1 + |x|)"},
    {"square", reals, {}, "x²", reals},
    {"reciprocal", floats, {}, "1/x", floats},
    {"sign", reals, {}, "-1, 0 or 1; NaN stays NaN", reals},
    {"floor", reals, {}, "largest integer ≤ x", reals},
    {"ceil", reals, {}, "smallest integer ≥ x", reals},
    {"trunc", reals, {}, "x without its fraction", reals},
    {"conjugate",
     floats | complexes,
     {},
     "re x - i·im x; x itself when it is real",
     floats | complexes},
    {"is_nan", floats, DType::Bool, "x is NaN", floats},
    {"is_finite", floats, DType::Bool, "x is neither infinite nor NaN", floats},
    {"logical_not", booleans, {}, "not x", booleans},
    {"bitwise_not", ints | booleans, {}, "every bit flipped", ints | booleans},
});

// Every row says both: for which dtypes it is exact, and for which it commutes. Float max and min
// do not commute: which of -0.0 and 0.0 they give depends on the order. Nor does the complex
// product, whose imaginary part sums in the order of the operands.
constexpr auto BinaryRows = std::to_array<ElementwiseRow>({
    {"add", numbers, {}, "a + b; integers wrap", numbers, numbers},
    {"sub", numbers, {}, "a - b; integers wrap", numbers, none},
    {"mul", numbers, {}, "a·b; integers wrap", reals, reals},
    {"div", numbers, {}, "a/b; integers truncate, and dividing by 0 is an error", reals, none},
    {"max", reals, {}, "the larger; NaN if either is", reals, ints},
    {"min", reals, {}, "the smaller; NaN if either is", reals, ints},
    {"pow", reals, {}, "a^b; integers need b ≥ 0", ints, none},
    {"rem", reals, {}, "a - b·trunc(a/b), with a's sign", reals, none},
    {"atan2", floats, {}, "the angle of (b, a)", none, none},
    {"hypot", floats, {}, "√(a² + b²), without overflow", none, none},
    {"logical_and", booleans, {}, "a and b", booleans, booleans},
    {"logical_or", booleans, {}, "a or b", booleans, booleans},
    {"logical_xor", booleans, {}, "a or b, not both", booleans, booleans},
    {"bitwise_and", ints | booleans, {}, "a & b", ints | booleans, ints | booleans},
    {"bitwise_or", ints | booleans, {}, "a | b", ints | booleans, ints | booleans},
    {"bitwise_xor", ints | booleans, {}, "a ^ b", ints | booleans, ints | booleans},
    {"shift_left", ints, {}, "a·2^b, wrapping; 0 when b is not below the width", ints, none},
    {"shift_right",
     ints,
     {},
     "a/2^b, keeping the sign; b at or past the width fills with it",
     ints,
     none},
});

constexpr auto CompareRows = std::to_array<ElementwiseRow>({
    {"eq", dtypes::all, DType::Bool, "a = b", dtypes::all, dtypes::all},
    {"ne", dtypes::all, DType::Bool, "a ≠ b", dtypes::all, dtypes::all},
    {"lt", ordered, DType::Bool, "a < b", ordered, none},
    {"le", ordered, DType::Bool, "a ≤ b", ordered, none},
    {"gt", ordered, DType::Bool, "a > b", ordered, none},
    {"ge", ordered, DType::Bool, "a ≥ b", ordered, none},
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

const ElementwiseRow& row(UnaryKind kind) { return UnaryRows[static_cast<std::size_t>(kind)]; }
const ElementwiseRow& row(BinaryKind kind) { return BinaryRows[static_cast<std::size_t>(kind)]; }
const ElementwiseRow& row(CompareKind kind) { return CompareRows[static_cast<std::size_t>(kind)]; }

}  // namespace ricci
