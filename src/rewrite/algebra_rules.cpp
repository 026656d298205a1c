// Identities that hold to the bit, with any NaN counting as any other. The guards say for which
// numbers: most of what is true of integers is not true of -0.0, infinities and NaN.
#include "ricci/compiler/rewrite/canonicalize.h"

#include "rewrite/pattern.h"

namespace ricci {
namespace {

bool integer(DType d) { return is_int(d) || d == DType::Bool; }
bool floating(DType d) { return is_float(d); }
bool real(DType d) { return !is_complex(d); }
bool with_sign(DType d) { return is_float(d) || (is_int(d) && d != DType::U8 && d != DType::U32); }
bool ordered(DType d) { return real(d); }

}  // namespace

std::span<const Identity> algebra_identities() {
  using U = UnaryKind;
  using B = BinaryKind;
  using C = CompareKind;
  const Pattern x = variable(0);
  const Pattern y = variable(1);
  const Pattern z = variable(2);
  const Pattern zero = number(0);
  const Pattern one = number(1);
  static const std::vector<Identity> table = {
      // Signs.
      {"neg_neg", "-(-x) -> x", -(-x), x},
      {"sub_neg", "x - (-y) -> x + y", x - (-y), x + y},
      {"add_neg", "x + (-y) -> x - y", x + (-y), x - y},
      {"mul_negs", "(-x)·(-y) -> x·y", (-x) * (-y), x * y, real},
      {"div_negs", "(-x)/(-y) -> x/y", (-x) / (-y), x / y, floating},
      {"neg_sub", "-(x - y) -> y - x", -(x - y), y - x, integer},  // floats: x = y gives -0.0
      {"mul_minus_one", "x·(-1) -> -x", x * number(-1), -x, with_sign},
      {"abs_neg", "|-x| -> |x|", apply(U::Abs, -x), apply(U::Abs, x), with_sign},
      {"square_neg", "(-x)² -> x²", apply(U::Square, -x), apply(U::Square, x)},
      {"square_abs", "|x|² -> x²", apply(U::Square, apply(U::Abs, x)), apply(U::Square, x), real},
      // Neutral elements.
      {"add_zero", "x + 0 -> x", x + zero, x, integer},  // -0.0 + 0.0 is 0.0
      {"add_minus_zero", "x + (-0.0) -> x", x + number(-0.0), x, floating},
      {"sub_zero", "x - 0 -> x", x - zero, x},
      {"mul_one", "x·1 -> x", x * one, x, real},
      {"div_one", "x/1 -> x", x / one, x, real},
      {"pow_one", "x^1 -> x", apply(B::Pow, x, one), x, real},
      {"shift_left_zero", "x << 0 -> x", apply(B::ShiftLeft, x, zero), x},
      {"shift_right_zero", "x >> 0 -> x", apply(B::ShiftRight, x, zero), x},
      {"bitwise_or_zero", "x | 0 -> x", apply(B::BitwiseOr, x, zero), x},
      {"bitwise_xor_zero", "x ^ 0 -> x", apply(B::BitwiseXor, x, zero), x},
      {"and_true", "x and true -> x", apply(B::LogicalAnd, x, one), x},
      {"or_false", "x or false -> x", apply(B::LogicalOr, x, zero), x},
      {"xor_false", "x xor false -> x", apply(B::LogicalXor, x, zero), x},
      {"xor_true", "x xor true -> not x", apply(B::LogicalXor, x, one), apply(U::LogicalNot, x)},
      // Absorbing elements.
      {"mul_zero", "x·0 -> 0", x * zero, zero, integer},  // floats: inf·0 is NaN
      {"bitwise_and_zero", "x & 0 -> 0", apply(B::BitwiseAnd, x, zero), zero},
      {"and_false", "x and false -> false", apply(B::LogicalAnd, x, zero), zero},
      {"or_true", "x or true -> true", apply(B::LogicalOr, x, one), one},
      {"rem_one", "x rem 1 -> 0", apply(B::Rem, x, one), zero, integer},
      // A value with itself.
      {"sub_self", "x - x -> 0", x - x, zero, integer},  // floats: inf - inf is NaN
      {"max_self", "max(x, x) -> x", apply(B::Max, x, x), x},
      {"min_self", "min(x, x) -> x", apply(B::Min, x, x), x},
      {"and_self", "x and x -> x", apply(B::LogicalAnd, x, x), x},
      {"or_self", "x or x -> x", apply(B::LogicalOr, x, x), x},
      {"xor_self", "x xor x -> false", apply(B::LogicalXor, x, x), zero},
      {"bitwise_and_self", "x & x -> x", apply(B::BitwiseAnd, x, x), x},
      {"bitwise_or_self", "x | x -> x", apply(B::BitwiseOr, x, x), x},
      {"bitwise_xor_self", "x ^ x -> 0", apply(B::BitwiseXor, x, x), zero},
      {"eq_self", "x = x -> true", apply(C::Eq, x, x), one, integer},  // NaN is not itself
      {"ne_self", "x ≠ x -> false", apply(C::Ne, x, x), zero, integer},
      {"le_self", "x ≤ x -> true", apply(C::Le, x, x), one, integer},
      {"ge_self", "x ≥ x -> true", apply(C::Ge, x, x), one, integer},
      {"lt_self", "x < x -> false", apply(C::Lt, x, x), zero, ordered},
      {"gt_self", "x > x -> false", apply(C::Gt, x, x), zero, ordered},
      // A function twice.
      {"not_not", "not not x -> x", apply(U::LogicalNot, apply(U::LogicalNot, x)), x},
      {"bitwise_not_twice", "~~x -> x", apply(U::BitwiseNot, apply(U::BitwiseNot, x)), x},
      {"abs_abs", "||x|| -> |x|", apply(U::Abs, apply(U::Abs, x)), apply(U::Abs, x), real},
      {"relu_relu", "relu(relu(x)) -> relu(x)", apply(U::Relu, apply(U::Relu, x)),
       apply(U::Relu, x)},
      {"sign_sign", "sign(sign(x)) -> sign(x)", apply(U::Sign, apply(U::Sign, x)),
       apply(U::Sign, x)},
      {"floor_floor", "floor(floor(x)) -> floor(x)", apply(U::Floor, apply(U::Floor, x)),
       apply(U::Floor, x)},
      {"ceil_ceil", "ceil(ceil(x)) -> ceil(x)", apply(U::Ceil, apply(U::Ceil, x)),
       apply(U::Ceil, x)},
      {"trunc_trunc", "trunc(trunc(x)) -> trunc(x)", apply(U::Trunc, apply(U::Trunc, x)),
       apply(U::Trunc, x)},
      {"round_round", "round(round(x)) -> round(x)", apply(U::Round, apply(U::Round, x)),
       apply(U::Round, x)},
      // Integers are whole already.
      {"floor_integer", "floor(x) -> x", apply(U::Floor, x), x, integer},
      {"ceil_integer", "ceil(x) -> x", apply(U::Ceil, x), x, integer},
      {"trunc_integer", "trunc(x) -> x", apply(U::Trunc, x), x, integer},
      {"round_integer", "round(x) -> x", apply(U::Round, x), x, integer},
      // Selection.
      {"where_same", "where(x, y, y) -> y", select(x, y, y), y},
      {"where_not", "where(not x, y, z) -> where(x, z, y)", select(apply(U::LogicalNot, x), y, z),
       select(x, z, y)},
  };
  return table;
}

Replacement apply_algebra(Rewriter& rewriter, std::string_view& name) {
  for (const Identity& identity : algebra_identities()) {
    if (Replacement found = apply_identity(identity, rewriter)) {
      name = identity.name;
      return found;
    }
  }
  return std::nullopt;
}

void list_algebra(std::vector<RuleInfo>& into) {
  for (const Identity& i : algebra_identities()) into.push_back({i.name, i.text});
}

}  // namespace ricci
