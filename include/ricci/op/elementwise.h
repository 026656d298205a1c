// Element-wise ops. `unary`, `binary` and `compare` are families: the kind names the function, and
// each kind is one row of a table (dtypes, value, derivative, documentation).
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "ricci/op/fields.h"

namespace ricci {

enum class UnaryKind : std::uint8_t {
#define RICCI_UNARY(Kind, name) Kind,
#include "ricci/op/unary.def"
};
constexpr auto enumerator_names(UnaryKind) {
  return std::to_array<std::string_view>({
#define RICCI_UNARY(Kind, name) #name,
#include "ricci/op/unary.def"
  });
}

enum class BinaryKind : std::uint8_t {
#define RICCI_BINARY(Kind, name) Kind,
#include "ricci/op/binary.def"
};
constexpr auto enumerator_names(BinaryKind) {
  return std::to_array<std::string_view>({
#define RICCI_BINARY(Kind, name) #name,
#include "ricci/op/binary.def"
  });
}

enum class CompareKind : std::uint8_t { Eq, Ne, Lt, Le, Gt, Ge };
constexpr auto enumerator_names(CompareKind) {
  return std::to_array<std::string_view>({"eq", "ne", "lt", "le", "gt", "ge"});
}

/// What a function of one element costs, in units of a simple machine instruction.
struct ElementCost {
  std::int64_t real = 1;
  std::int64_t complex = real;
};

/// The dtype a function gives: its operands', or one that follows from it.
enum class Gives : std::uint8_t {
  Same,
  Truth,     ///< bool
  RealPart,  ///< of complex operands their parts', otherwise the same
  Complex    ///< the one whose parts the operands are
};

/// What a member of an element-wise family costs, accepts, gives and means; one row a kind.
struct ElementwiseRow {
  std::string_view name;
  ElementCost cost;
  DTypeSet dtypes;  ///< operand dtypes; there is code for these and no others
  Gives gives;
  std::string_view formula;
  /// Operand dtypes for which every backend gives the same bits: the value is exact or rounded
  /// once.
  DTypeSet exact = {};
  /// Operand dtypes for which the operands may change places without changing a bit.
  DTypeSet commutes = {};

  [[nodiscard]] DType result_dtype(DType operands) const;
};
[[nodiscard]] const ElementwiseRow& row(UnaryKind kind);
[[nodiscard]] const ElementwiseRow& row(BinaryKind kind);
[[nodiscard]] const ElementwiseRow& row(CompareKind kind);

}  // namespace ricci

namespace ricci::op {

/// A function of one operand, element by element.   out[i] = f(x[i])
struct Unary {
  UnaryKind kind = UnaryKind::Tanh;

  static constexpr OpInfo info{.name = "unary",
                               .operands = "x",
                               .results = "out",
                               .traits = Trait::Elementwise,
                               .help = "a function of one operand, element by element",
                               .formula = "out[i] = f(x[i])",
                               .constraints = "c1 dtype: the function is defined for x's dtype"};
  static constexpr bool named_by_kind = true;
  static void fields(auto& self, auto&& f) { f("kind", self.kind, "which function"); }
  bool operator==(const Unary&) const = default;
};

/// A function of two operands with broadcasting.   out[i] = f(a[i], b[i])
struct Binary {
  BinaryKind kind = BinaryKind::Add;

  static constexpr OpInfo info{.name = "binary",
                               .operands = "a, b",
                               .results = "out",
                               .traits = Trait::Elementwise,
                               .help = "a function of two operands, element by element",
                               .formula = "out[i] = f(a[i], b[i]) after broadcasting",
                               .constraints = "c1 dtype: a and b have one dtype\n"
                                              "c2 shape: a and b broadcast together\n"
                                              "c3 dtype: the function is defined for that dtype"};
  static constexpr bool named_by_kind = true;
  static void fields(auto& self, auto&& f) { f("kind", self.kind, "which function"); }
  bool operator==(const Binary&) const = default;
};

/// A comparison with broadcasting; a NaN operand gives false, except for `ne`.
///   out[i] = a[i] < b[i] as bool
struct Compare {
  CompareKind kind = CompareKind::Eq;

  static constexpr OpInfo info{.name = "compare",
                               .operands = "a, b",
                               .results = "out",
                               .traits = Trait::Elementwise | Trait::NoGradient,
                               .help = "a comparison, element by element",
                               .formula = "out[i] = (a[i] ? b[i]) as bool, after broadcasting",
                               .constraints = "c1 dtype: a and b have one dtype\n"
                                              "c2 shape: a and b broadcast together\n"
                                              "c3 dtype: complex numbers have no order"};
  static constexpr bool named_by_kind = true;
  static void fields(auto& self, auto&& f) { f("kind", self.kind, "which comparison"); }
  bool operator==(const Compare&) const = default;
};

/// Selects element by element; never multiplies, so the other side may be anything.
///   out[i] = cond[i] ? a[i] : b[i]
struct Where {
  static constexpr OpInfo info{.name = "where",
                               .operands = "cond, a, b",
                               .results = "out",
                               .traits = Trait::Elementwise,
                               .help = "selects between two operands, element by element",
                               .formula = "out[i] = cond[i] ≠ 0 ? a[i] : b[i], after broadcasting",
                               .constraints = "c1 dtype: a and b have one dtype\n"
                                              "c2 shape: cond, a and b broadcast together",
                               .no_gradient = "cond"};
  static void fields(auto&, auto&&) {}
  bool operator==(const Where&) const = default;
};

/// Value conversion: float to int truncates and saturates (NaN gives 0), narrower floats round to
/// nearest even, anything to bool is x ≠ 0, complex to real takes the real part.
struct Cast {
  DType to = DType::F32;

  static constexpr OpInfo info{.name = "cast",
                               .operands = "x",
                               .results = "out",
                               .traits = Trait::Elementwise,
                               .help = "converts values to another dtype",
                               .formula = "out[i] = x[i] as `to`",
                               .numerics = Numerics::Boundary};
  static void fields(auto& self, auto&& f) {
    f("to", self.to, "dtype of the result", Presence::Required);
  }
  bool operator==(const Cast&) const = default;
};

/// The identity, through which no derivative passes.   out = x
struct StopGradient {
  static constexpr OpInfo info{
      .name = "stop_gradient",
      .operands = "x",
      .results = "out",
      .traits = Trait::Elementwise | Trait::NoGradient | Trait::DataMovement,
      .help = "the identity, through which no derivative passes",
      .formula = "out = x"};
  static void fields(auto&, auto&&) {}
  bool operator==(const StopGradient&) const = default;
};

/// The cotangent of relu's operand.   dx[i] = dy[i] where x[i] > 0, else 0; NaN where x[i] is
struct ReluBackward {
  static constexpr OpInfo info{.name = "relu_backward",
                               .operands = "x, dy",
                               .results = "dx",
                               .traits = Trait::Elementwise,
                               .help = "the cotangent of relu's operand",
                               .formula = "dx[i] = x[i] > 0 ? dy[i] : 0; NaN where x[i] is NaN",
                               .constraints = "c1 dtype: x and dy have one floating dtype\n"
                                              "c2 shape: x and dy have one shape",
                               .batch = RuleSource::Written};
  static void fields(auto&, auto&&) {}
  bool operator==(const ReluBackward&) const = default;
};

/// The cotangent of a unary function's operand.   dx[i] = conj(f'(x[i]))·dy[i]
struct ActivationBackward {
  UnaryKind kind = UnaryKind::Tanh;

  static constexpr OpInfo info{.name = "activation_backward",
                               .operands = "x, dy",
                               .results = "dx",
                               .traits = Trait::Elementwise | Trait::Conjugates,
                               .help = "the cotangent of a unary function's operand",
                               .formula = "dx[i] = f'(x[i])·dy[i]; conj(f'(x[i]))·dy[i] of "
                                          "complex numbers",
                               .constraints =
                                   "c1 dtype: x and dy have one floating or complex dtype\n"
                                   "c2 shape: x and dy have one shape\n"
                                   "c3 attr: the function has a derivative for that dtype",
                               .batch = RuleSource::Written};
  static void fields(auto& self, auto&& f) {
    f("kind", self.kind, "which function", Presence::Required);
  }
  bool operator==(const ActivationBackward&) const = default;
};

}  // namespace ricci::op
