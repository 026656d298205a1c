// What each member of the element-wise families accepts and means: one row a kind.
#include "ricci/op/elementwise.h"

namespace ricci {
namespace {

using dtypes::booleans;
using dtypes::complexes;
using dtypes::floats;
using dtypes::ints;

constexpr auto UnaryRows = std::to_array<ElementwiseRow>({
    {"gelu", floats, {}, "x·Φ(x) = x/2·(1 + erf(x/√2))"},
    {"gelu_approx", floats, {}, "x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³)))"},
    {"silu", floats, {}, "x·σ(x)"},
    {"relu", floats | ints, {}, "max(x, 0); NaN stays NaN"},
    {"sigmoid", floats, {}, "1/(1 + e^-x)"},
    {"tanh", floats, {}, "tanh x"},
    {"exp", floats | complexes, {}, "e^x"},
    {"log", floats | complexes, {}, "ln x; -inf at 0, NaN below"},
    {"sqrt", floats | complexes, {}, "√x; NaN below 0"},
    {"rsqrt", floats, {}, "1/√x; NaN below 0"},
    {"neg", floats | ints | complexes, {}, "-x; integers wrap"},
    {"abs", floats | ints, {}, "|x|; integers wrap"},
    {"sin", floats, {}, "sin x"},
    {"cos", floats, {}, "cos x"},
    {"tan", floats, {}, "tan x"},
    {"atan", floats, {}, "arctan x"},
    {"round", floats | ints, {}, "nearest integer, ties to even"},
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
    {"square", floats | ints, {}, "x²"},
    {"reciprocal", floats, {}, "1/x"},
    {"sign", floats | ints, {}, "-1, 0 or 1; NaN stays NaN"},
    {"floor", floats | ints, {}, "largest integer ≤ x"},
    {"ceil", floats | ints, {}, "smallest integer ≥ x"},
    {"trunc", floats | ints, {}, "x without its fraction"},
    {"is_nan", floats, DType::Bool, "x is NaN"},
    {"is_finite", floats, DType::Bool, "x is neither infinite nor NaN"},
    {"logical_not", booleans, {}, "not x"},
    {"bitwise_not", ints | booleans, {}, "every bit flipped"},
});

constexpr auto BinaryRows = std::to_array<ElementwiseRow>({
    {"add", floats | ints | complexes, {}, "a + b; integers wrap"},
    {"sub", floats | ints | complexes, {}, "a - b; integers wrap"},
    {"mul", floats | ints | complexes, {}, "a·b; integers wrap"},
    {"div", floats | ints | complexes, {}, "a/b; integers truncate, and dividing by 0 is an error"},
    {"max", floats | ints, {}, "the larger; NaN if either is"},
    {"min", floats | ints, {}, "the smaller; NaN if either is"},
    {"pow", floats | ints, {}, "a^b; integers need b ≥ 0"},
    {"rem", floats | ints, {}, "a - b·trunc(a/b), with a's sign"},
    {"atan2", floats, {}, "the angle of (b, a)"},
    {"hypot", floats, {}, "√(a² + b²), without overflow"},
    {"logical_and", booleans, {}, "a and b"},
    {"logical_or", booleans, {}, "a or b"},
    {"logical_xor", booleans, {}, "a or b, not both"},
    {"bitwise_and", ints | booleans, {}, "a & b"},
    {"bitwise_or", ints | booleans, {}, "a | b"},
    {"bitwise_xor", ints | booleans, {}, "a ^ b"},
    {"shift_left", ints, {}, "a·2^b, wrapping; 0 when b is not below the width"},
    {"shift_right", ints, {}, "a/2^b, keeping the sign; b at or past the width fills with it"},
});

constexpr auto CompareRows = std::to_array<ElementwiseRow>({
    {"eq", dtypes::all, DType::Bool, "a = b"},
    {"ne", dtypes::all, DType::Bool, "a ≠ b"},
    {"lt", floats | ints | booleans, DType::Bool, "a < b"},
    {"le", floats | ints | booleans, DType::Bool, "a ≤ b"},
    {"gt", floats | ints | booleans, DType::Bool, "a > b"},
    {"ge", floats | ints | booleans, DType::Bool, "a ≥ b"},
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
