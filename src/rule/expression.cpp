#include "rule/expression.h"

#include <map>

#include <fmt/format.h>

#include "ricci/build/build.h"

#include "rule/number_functions.h"
#include "rule/tables/eval_rules.h"

namespace ricci::rule {
namespace {

// What the three uses of a formula (numbers, graph values, text) have in common: a walk over the
// tree that visits shared parts once. A domain says what each kind of node means to it.
template <class Domain>
class Walk {
 public:
  using T = typename Domain::Result;
  explicit Walk(Domain& domain) : domain_(domain) {}

  T operator()(const Expression& e) {
    const auto known = seen_.find(&e.node());
    if (known != seen_.end()) return known->second;
    T result = std::visit([this](const auto& node) { return this->visit(node); }, e.node().value);
    seen_.emplace(&e.node(), result);
    return result;
  }

  // e·g, with the product taken into quotients and branches.
  T times(const Expression& e, const T& g) {
    if (e.is(0)) return domain_.constant(0);
    if (e.is(1)) return g;
    if (const auto* u = std::get_if<Expression::Unary>(&e.node().value)) {
      if (u->kind == UnaryKind::Neg) return domain_.unary(u->kind, times(u->x, g));
    }
    if (const auto* b = std::get_if<Expression::Binary>(&e.node().value)) {
      // Not into a plain quotient: the product may overflow where the quotient does not.
      const bool plain = std::holds_alternative<Variable>(b->a.node().value);
      if (b->kind == BinaryKind::Div && !plain) {
        // In this order with every compiler: nodes are built on the way.
        const T top = times(b->a, g);
        return domain_.binary(b->kind, top, (*this)(b->b));
      }
    }
    if (const auto* s = std::get_if<Expression::Select>(&e.node().value)) {
      const T cond = (*this)(s->cond);
      const T then = times(s->then, g);
      return domain_.select(cond, then, times(s->otherwise, g));
    }
    return domain_.binary(BinaryKind::Mul, (*this)(e), g);
  }

 private:
  T visit(Variable v) { return domain_.variable(v); }
  T visit(double c) { return domain_.constant(c); }
  T visit(const Expression::Unary& n) { return domain_.unary(n.kind, (*this)(n.x)); }
  T visit(const Expression::Binary& n) {
    const T a = (*this)(n.a);
    return domain_.binary(n.kind, a, (*this)(n.b));
  }
  T visit(const Expression::Compare& n) {
    const T a = (*this)(n.a);
    return domain_.compare(n.kind, a, (*this)(n.b));
  }
  T visit(const Expression::Select& n) {
    const T cond = (*this)(n.cond);
    const T then = (*this)(n.then);
    return domain_.select(cond, then, (*this)(n.otherwise));
  }

  Domain& domain_;
  std::map<const Expression::Node*, T> seen_;
};

template <class N>
struct NumberDomain {
  using Result = N;
  const std::function<N(Variable)>& variables;

  N variable(Variable v) const { return variables(v); }
  static N constant(double c) { return c; }
  static N unary(UnaryKind k, N x) { return eval_unary(k, x); }
  static N binary(BinaryKind k, N a, N b) { return eval_binary(k, a, b); }
  static N compare(CompareKind k, N a, N b) { return compare_numbers(k, a, b) ? 1 : 0; }
  static N select(N c, N a, N b) { return c != N(0) ? a : b; }
};

struct GraphDomain {
  using Result = Value;
  Value like;
  const Values& variables;

  [[nodiscard]] Value variable(Variable v) const { return variables(v); }
  [[nodiscard]] Value constant(double c) const { return scalar_like(like, c); }
  static Value unary(UnaryKind k, Value x) { return activation(k, x); }
  static Value binary(BinaryKind k, Value a, Value b) { return ricci::binary(k, a, b); }
  static Value compare(CompareKind k, Value a, Value b) { return ricci::compare(k, a, b); }
  static Value select(Value c, Value a, Value b) { return where(c, a, b); }
};

// Text with how tightly it binds: 1 comparisons, 2 sums, 3 products, 4 signs, 5 atoms.
struct TextDomain {
  struct Result {
    std::string text;
    int binding = 5;
  };
  const std::array<std::string, 3>& names;

  [[nodiscard]] Result variable(Variable v) const { return {names[static_cast<std::size_t>(v)]}; }
  static Result constant(double c) { return {fmt::format("{}", c), c < 0 ? 4 : 5}; }
  static std::string within(const Result& r, int binding) {
    return r.binding < binding ? "(" + r.text + ")" : r.text;
  }
  static Result unary(UnaryKind k, const Result& x) {
    if (k == UnaryKind::Neg) return {"-" + within(x, 4), 4};
    return {fmt::format("{}({})", name_of(k), x.text)};
  }
  static Result binary(BinaryKind k, const Result& a, const Result& b) {
    switch (k) {
      case BinaryKind::Add: return {within(a, 2) + " + " + within(b, 2), 2};
      case BinaryKind::Sub: return {within(a, 2) + " - " + within(b, 3), 2};
      case BinaryKind::Mul: return {within(a, 3) + "*" + within(b, 3), 3};
      case BinaryKind::Div: return {within(a, 3) + "/" + within(b, 4), 3};
      default: return {fmt::format("{}({}, {})", name_of(k), a.text, b.text)};
    }
  }
  static Result compare(CompareKind k, const Result& a, const Result& b) {
    static constexpr auto Signs = std::to_array<std::string_view>({"=", "≠", "<", "≤", ">", "≥"});
    return {fmt::format("{} {} {}", within(a, 2), Signs[static_cast<std::size_t>(k)], within(b, 2)),
            1};
  }
  static Result select(const Result& c, const Result& a, const Result& b) {
    return {fmt::format("where({}, {}, {})", c.text, a.text, b.text)};
  }
};

}  // namespace

Expression::Expression(double constant) : node_(std::make_shared<const Node>(Node{constant})) {}

// One node per variable, so that a walk asks for each variable once.
Expression::Expression(Variable variable) {
  static const std::array nodes = {std::make_shared<const Node>(Node{Variable::First}),
                                   std::make_shared<const Node>(Node{Variable::Second}),
                                   std::make_shared<const Node>(Node{Variable::Result})};
  node_ = nodes[static_cast<std::size_t>(variable)];
}

Expression::Expression(UnaryKind kind, Expression x)
    : node_(std::make_shared<const Node>(Node{Unary{kind, std::move(x)}})) {}
Expression::Expression(BinaryKind kind, Expression a, Expression b)
    : node_(std::make_shared<const Node>(Node{Binary{kind, std::move(a), std::move(b)}})) {}
Expression::Expression(CompareKind kind, Expression a, Expression b)
    : node_(std::make_shared<const Node>(Node{Compare{kind, std::move(a), std::move(b)}})) {}
Expression::Expression(Expression cond, Expression then, Expression otherwise)
    : node_(std::make_shared<const Node>(
          Node{Select{std::move(cond), std::move(then), std::move(otherwise)}})) {}

bool Expression::is(double v) const noexcept {
  const auto* c = std::get_if<double>(&node_->value);
  return c != nullptr && *c == v;
}

Expression operator+(const Expression& a, const Expression& b) { return {BinaryKind::Add, a, b}; }
Expression operator-(const Expression& a, const Expression& b) { return {BinaryKind::Sub, a, b}; }
Expression operator*(const Expression& a, const Expression& b) { return {BinaryKind::Mul, a, b}; }
Expression operator/(const Expression& a, const Expression& b) { return {BinaryKind::Div, a, b}; }
Expression operator-(const Expression& a) { return {UnaryKind::Neg, a}; }

double evaluate(const Expression& e, const Numbers& variables) {
  NumberDomain<double> domain{variables};
  return Walk(domain)(e);
}

double evaluate_times(const Expression& e, double g, const Numbers& variables) {
  NumberDomain<double> domain{variables};
  return Walk(domain).times(e, g);
}

std::complex<double> evaluate_times(const Expression& e, std::complex<double> g,
                                    const ComplexNumbers& variables) {
  NumberDomain<std::complex<double>> domain{variables};
  return Walk(domain).times(e, g);
}

Value build(const Expression& e, Value like, const Values& variables) {
  GraphDomain domain{like, variables};
  return Walk(domain)(e);
}

Value build_times(const Expression& e, Value g, const Values& variables) {
  GraphDomain domain{g, variables};
  return Walk(domain).times(e, g);
}

std::string to_string(const Expression& e, const std::array<std::string, 3>& names) {
  TextDomain domain{names};
  return Walk(domain)(e).text;
}

}  // namespace ricci::rule
