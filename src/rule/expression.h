// Small formulas as data: trees over a function's operands and result, constants and the members of
// the element-wise families. One formula can be evaluated on numbers, built as graph values and
// printed, so a derivative is written down once.
#pragma once

#include <array>
#include <complex>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "ricci/ir/graph.h"
#include "ricci/op/elementwise.h"

namespace ricci::rule {

/// What a formula can refer to: a function's operands and its result.
enum class Variable : std::uint8_t { First, Second, Result };

class Expression {
 public:
  struct Unary;
  struct Binary;
  struct Compare;
  struct Select;
  struct Node;

  Expression(double constant);    // NOLINT: numbers are formulas
  Expression(Variable variable);  // NOLINT: so are variables
  Expression(UnaryKind kind, Expression x);
  Expression(BinaryKind kind, Expression a, Expression b);
  Expression(CompareKind kind, Expression a, Expression b);
  /// cond ? then : otherwise
  Expression(Expression cond, Expression then, Expression otherwise);

  [[nodiscard]] const Node& node() const noexcept { return *node_; }
  /// Is this the number `v`?
  [[nodiscard]] bool is(double v) const noexcept;

 private:
  std::shared_ptr<const Node> node_;
};

struct Expression::Unary {
  UnaryKind kind;
  Expression x;
};
struct Expression::Binary {
  BinaryKind kind;
  Expression a;
  Expression b;
};
struct Expression::Compare {
  CompareKind kind;
  Expression a;
  Expression b;
};
struct Expression::Select {
  Expression cond;
  Expression then;
  Expression otherwise;
};

struct Expression::Node {
  std::variant<Variable, double, Unary, Binary, Compare, Select> value;
};

[[nodiscard]] Expression operator+(const Expression& a, const Expression& b);
[[nodiscard]] Expression operator-(const Expression& a, const Expression& b);
[[nodiscard]] Expression operator*(const Expression& a, const Expression& b);
[[nodiscard]] Expression operator/(const Expression& a, const Expression& b);
[[nodiscard]] Expression operator-(const Expression& a);

/// Where a formula's variables come from; asked only for those it mentions.
using Numbers = std::function<double(Variable)>;
using ComplexNumbers = std::function<std::complex<double>(Variable)>;
using Values = std::function<Value(Variable)>;

/// The formula's value.
[[nodiscard]] double evaluate(const Expression& e, const Numbers& variables);
/// The formula times `g`. A branch that is exactly 0 gives 0 and one that is 1 gives `g`, whatever
/// `g` is: an infinite `g` does not turn an unchosen slope into NaN.
[[nodiscard]] double evaluate_times(const Expression& e, double g, const Numbers& variables);
[[nodiscard]] std::complex<double> evaluate_times(const Expression& e, std::complex<double> g,
                                                  const ComplexNumbers& variables);

/// The same two as graph values. Constants are rank 0, so a result may still need broadcasting.
/// `like` gives constants their graph and dtype.
[[nodiscard]] Value build(const Expression& e, Value like, const Values& variables);
[[nodiscard]] Value build_times(const Expression& e, Value g, const Values& variables);

/// As documentation writes it: `exp(x)*(1 - y*y)`. Names are those of the three variables.
[[nodiscard]] std::string to_string(const Expression& e, const std::array<std::string, 3>& names);

}  // namespace ricci::rule
