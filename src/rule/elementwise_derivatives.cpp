// Derivatives of the element-wise ops, from the table of slopes.
#include "rule/derivative_parts.h"
#include "rule/tables/derivative_table.h"
#include "rule/tables/jvp_rules.h"
#include "rule/tables/vjp_rules.h"

namespace ricci::rule {
namespace {

// A formula times v. Of small floats in f32, rounded once: formulas pass through numbers that f16
// does not have.
Value formula_times(const Expression& formula, Value v, const Values& variables) {
  const auto wide = [](Value x) { return cast_to(x, widened(x.dtype())); };
  const Value out =
      build_times(formula, wide(v), [&](Variable which) { return wide(variables(which)); });
  return cast_to(out, v.dtype());
}

// f'(x)·v as a value of v's type, for x and v of one shape.
template <class ResultOf>
Value slope_times(const Expression& slope, Value x, Value v, ResultOf&& result) {
  const Value out = formula_times(
      slope, v, [&](Variable which) { return which == Variable::First ? x : result(); });
  return broadcast_to(out, x.dims());
}

}  // namespace

namespace {

// z/|z|, and 0 at 0: the direction in which |z| grows.
Value direction(Value z, Value modulus) {
  const Value none = eq(modulus, 0.0);
  const Value size = where(none, scalar_like(modulus, 1), modulus);
  return where(none, zero_like(z), z / cast_to(size, z.dtype()));
}

// Functions of complex numbers. The cotangent is ∂L/∂z̄: conj(f'(z))·g of holomorphic functions,
// half the gradient of each part of those that give real numbers.
template <class ResultOf>
Value complex_cotangent(UnaryKind kind, Value z, Value g, ResultOf&& result) {
  switch (kind) {
    case UnaryKind::Conjugate: return conj(g);
    case UnaryKind::Imag: return make_complex(zero_like(g), g * 0.5);
    case UnaryKind::Abs: return direction(z, result()) * cast_to(g * 0.5, z.dtype());
    default: break;
  }
  const Expression* slope = complex_derivative(kind);
  if (slope == nullptr || slope->is(0)) return {};
  if (kind == UnaryKind::Neg) return -g;
  // conj(f'(z))·g = conj(f'(z)·conj(g))
  return conj(slope_times(*slope, z, conj(g), result));
}

template <class ResultOf>
Value complex_tangent(UnaryKind kind, Value z, Value t, ResultOf&& result) {
  switch (kind) {
    case UnaryKind::Conjugate: return conj(t);
    case UnaryKind::Imag: return imag(t);
    case UnaryKind::Abs: return cast_to(conj(direction(z, result())) * t, real_part_of(z.dtype()));
    default: break;
  }
  const Expression* slope = complex_derivative(kind);
  if (slope == nullptr || slope->is(0)) return {};
  if (kind == UnaryKind::Neg) return -t;
  return slope_times(*slope, z, t, result);
}

}  // namespace

// dx = conj(f'(x))·g
Cotangents vjp(const op::Unary& op, const VjpContext& c) {
  const Value g = c.cotangent();
  if (is_complex(c[0].dtype())) {
    return {complex_cotangent(op.kind, c[0], g, [&] { return c.result(); })};
  }
  const Expression* slope = derivative(op.kind);
  if (slope == nullptr || slope->is(0)) return c.none();
  if (slope->is(1)) return {g};
  if (op.kind == UnaryKind::Neg) return {-g};
  if (op.kind == UnaryKind::Relu) return {relu_backward(c[0], g)};
  return {activation_backward(c[0], g, {.kind = op.kind})};
}

Tangents jvp(const op::Unary& op, JvpContext& c) {
  const Value t = c.tangent(0);
  if (is_complex(c[0].dtype())) {
    return {complex_tangent(op.kind, c[0], t, [&] { return c.result(); })};
  }
  const Expression* slope = derivative(op.kind);
  if (slope == nullptr || slope->is(0)) return c.none();
  if (slope->is(1)) return {t};
  if (op.kind == UnaryKind::Neg) return {-t};
  return {slope_times(*slope, c[0], t, [&] { return c.result(); })};
}

namespace {

// ∂f/∂(operand k)·v; v has the shape of the result.
template <class ResultOf>
Value partial_times(BinaryKind kind, std::size_t k, Value a, Value b, Value v, ResultOf&& result) {
  switch (kind) {
    case BinaryKind::Add: return v;
    case BinaryKind::Sub: return k == 0 ? v : -v;
    case BinaryKind::Mul: return v * (k == 0 ? b : a);
    case BinaryKind::Div: return k == 0 ? v / b : -(v * result()) / b;  // [EW-16]
    case BinaryKind::Max:
    case BinaryKind::Min:
    case BinaryKind::Pow:
    case BinaryKind::Rem:
    case BinaryKind::Atan2:
    case BinaryKind::Hypot:
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
  const Expression* slope =
      is_complex(a.dtype()) ? complex_derivative(kind, k) : derivative(kind, k);
  if (slope == nullptr || slope->is(0)) return {};
  const Value out = formula_times(*slope, v, [&](Variable which) {
    return which == Variable::First ? a : (which == Variable::Second ? b : result());
  });
  return broadcast_to(out, v.dims());
}

}  // namespace

Cotangents vjp(const op::Binary& op, const VjpContext& c) {
  Cotangents out = c.none();
  if (op.kind == BinaryKind::MakeComplex) {  // a complex cotangent is half of each part's
    const Value g = c.cotangent() * 2.0;
    if (c.needs(0)) out[0] = unbroadcast(cast_to(g, c[0].dtype()), c[0].type());
    if (c.needs(1)) out[1] = unbroadcast(imag(g), c[1].type());
    return out;
  }
  // conj(slope)·g = conj(slope·conj(g))
  const Value g = conj(c.cotangent());
  for (std::size_t k = 0; k < 2; ++k) {
    if (!c.needs(k)) continue;
    const Value d = partial_times(op.kind, k, c[0], c[1], g, [&] { return c.result(); });
    if (d.valid()) out[k] = unbroadcast(conj(d), c[k].type());
  }
  return out;
}

Tangents jvp(const op::Binary& op, JvpContext& c) {
  if (op.kind == BinaryKind::MakeComplex) {
    const auto part = [&](std::size_t k) { return c.live(k) ? c.tangent(k) : zero_like(c[k]); };
    return {broadcast_to(make_complex(part(0), part(1)), c.node().types[0].dims)};
  }
  Value total;
  for (std::size_t k = 0; k < 2; ++k) {
    if (!c.live(k)) continue;
    const Value t = broadcast_to(c.tangent(k), c.node().types[0].dims);  // [EW-14]
    total = sum_of(total, partial_times(op.kind, k, c[0], c[1], t, [&] { return c.result(); }));
  }
  return {total};
}

Cotangents vjp(const op::Where&, const VjpContext& c) {
  Cotangents out = c.none();
  const Value g = c.cotangent();
  if (c.needs(1)) out[1] = unbroadcast(where(c[0], g, zero_like(g)), c[1].type());
  if (c.needs(2)) out[2] = unbroadcast(where(c[0], zero_like(g), g), c[2].type());
  return out;
}

Tangents jvp(const op::Where&, JvpContext& c) {
  const auto side = [&](std::size_t k) { return c.live(k) ? c.tangent(k) : zero_like(c[k]); };
  return {broadcast_to(where(c[0], side(1), side(2)), c.node().types[0].dims)};
}

// Between floats a cast is the identity; a real value counts twice on its way into a complex one,
// because a complex cotangent stands for half the gradient of each part.
Cotangents vjp(const op::Cast& op, const VjpContext& c) {
  const DType from = c[0].dtype();
  if (!is_differentiable(from) || !is_differentiable(op.to)) return c.none();
  const Value g = cast_to(c.cotangent(), from);
  if (is_complex(op.to) && !is_complex(from)) return {g * 2.0};
  if (is_complex(from) && !is_complex(op.to)) return {g * 0.5};
  return {g};
}

Tangents jvp(const op::Cast& op, JvpContext& c) {
  if (!is_differentiable(op.to)) return c.none();
  return {cast_to(c.tangent(0), op.to)};
}

}  // namespace ricci::rule
