#include "rewrite/pattern.h"

#include <algorithm>
#include <bit>

#include "ricci/build/build.h"

#include "rewrite/splat.h"

namespace ricci {
namespace {

using Bindings = std::array<std::optional<Value>, 3>;

// May the operands be written either way round?
bool either_order(const Pattern& p, DType dtype) {
  if (p.form == Pattern::Form::Binary) {
    return row(static_cast<BinaryKind>(p.code)).commutes.has(dtype);
  }
  if (p.form == Pattern::Form::Compare) {
    return row(static_cast<CompareKind>(p.code)).commutes.has(dtype);
  }
  return false;
}

bool is_op(const Pattern& p, const Op& op) {
  switch (p.form) {
    case Pattern::Form::Unary: {
      const auto* o = op.as<op::Unary>();
      return o != nullptr && static_cast<int>(o->kind) == p.code;
    }
    case Pattern::Form::Binary: {
      const auto* o = op.as<op::Binary>();
      return o != nullptr && static_cast<int>(o->kind) == p.code;
    }
    case Pattern::Form::Compare: {
      const auto* o = op.as<op::Compare>();
      return o != nullptr && static_cast<int>(o->kind) == p.code;
    }
    case Pattern::Form::Where: return op.is<op::Where>();
    case Pattern::Form::Variable:
    case Pattern::Form::Number: return false;
  }
  return false;
}

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

bool is_number(const Tensor* t, double number) {
  const auto element = splat_element(t);
  if (!element) return false;
  const auto z = element->numbers<std::complex<double>>()[0];
  return same_bits(z.real(), number) && same_bits(z.imag(), 0.0);
}

bool match(const Pattern& p, Value v, const Rewriter& r, Bindings& bound);

bool match_args(const Pattern& p, std::span<const Value> operands, const Rewriter& r,
                Bindings& bound) {
  const Bindings before = bound;
  bool good = true;
  for (std::size_t k = 0; k < p.args.size() && good; ++k) {
    good = match(p.args[k], operands[k], r, bound);
  }
  if (good || !either_order(p, operands[0].dtype())) return good;
  bound = before;
  return match(p.args[0], operands[1], r, bound) && match(p.args[1], operands[0], r, bound);
}

bool match(const Pattern& p, Value v, const Rewriter& r, Bindings& bound) {
  if (p.form == Pattern::Form::Variable) {
    auto& slot = bound.at(static_cast<std::size_t>(p.code));
    if (!slot) slot = v;
    return *slot == v;
  }
  if (p.form == Pattern::Form::Number) return is_number(r.constant(v), p.number);
  const Node& node = r.producer(v);
  if (!is_op(p, node.op)) return false;
  std::vector<Value> operands;
  for (const ValueId id : node.operands) operands.push_back(r.graph().value(id));
  return match_args(p, operands, r, bound);
}

Value build(const Pattern& p, Rewriter& r, const Bindings& bound) {
  std::vector<Value> args;
  for (const Pattern& a : p.args) args.push_back(build(a, r, bound));
  switch (p.form) {
    case Pattern::Form::Variable: return *bound.at(static_cast<std::size_t>(p.code));
    case Pattern::Form::Number: return r.number(p.number);
    case Pattern::Form::Unary: return activation(static_cast<UnaryKind>(p.code), args[0]);
    case Pattern::Form::Binary: return binary(static_cast<BinaryKind>(p.code), args[0], args[1]);
    case Pattern::Form::Compare: return compare(static_cast<CompareKind>(p.code), args[0], args[1]);
    case Pattern::Form::Where: return where(args[0], args[1], args[2]);
  }
  throw InternalError("a pattern of no form");
}

// A function of a smaller operand would have to be expanded behind it: two nodes in place of one.
bool needs_expanding(const Pattern& to, const Rewriter& r, const Bindings& bound) {
  if (to.form != Pattern::Form::Unary || to.args[0].form != Pattern::Form::Variable) return false;
  return bound.at(static_cast<std::size_t>(to.args[0].code))->dims() != r.type().dims;
}

// An identity of real numbers says nothing about complex ones they were made of: |z|² is not z².
bool leaves_the_reals(Value operand, const Bindings& bound) {
  return !is_complex(operand.dtype()) &&
         std::ranges::any_of(bound, [](const auto& v) { return v && is_complex(v->dtype()); });
}

}  // namespace

Replacement apply_identity(const Identity& identity, Rewriter& rewriter) {
  if (!is_op(identity.from, rewriter.root().op)) return std::nullopt;
  if (identity.when != nullptr && !identity.when(rewriter.operands().back().dtype())) {
    return std::nullopt;
  }
  Bindings bound;
  if (!match_args(identity.from, rewriter.operands(), rewriter, bound)) return std::nullopt;
  if (needs_expanding(identity.to, rewriter, bound)) return std::nullopt;
  if (leaves_the_reals(rewriter.operands().back(), bound)) return std::nullopt;
  return std::vector{rewriter.fit(build(identity.to, rewriter, bound))};
}

}  // namespace ricci
