#include "ricci/array/array.h"

#include <cmath>
#include <ostream>

#include <fmt/format.h>

#include "ricci/array/everyday.h"
#include "ricci/array/more.h"
#include "ricci/array/nn.h"
#include "ricci/op/ops.h"
#include "ricci/support/error.h"

#include "array/node.h"
#include "array/print.h"

namespace ricci {

using detail::ArrayNode;

namespace {

const Type& plain_type(const Type& exact, const ArrayNode& n) {
  static const Type real = f32();
  static const Type whole = i32();
  static const Type complex = c64();
  if (n.kind == ArrayNode::Kind::Number) return n.values[1].type();
  if (is_complex(exact.dtype)) return complex;
  return is_float(exact.dtype) ? real : whole;
}

void require_one(const Array& x, std::string_view what, std::string help,
                 std::source_location where) {
  if (x.type().numel() == 1) return;
  detail::refuse(ErrorCode::Shape, "one_element",
                 fmt::format("{} wants one element, the array is {}", what, x.type().to_string()),
                 std::move(help), where);
}

Array binary_of(BinaryKind kind, Operand a, Operand b) {
  detail::unify(row(kind).name, a.array, b.array, b.where);
  return detail::apply(Op(op::Binary{kind}), {std::move(a.array), std::move(b.array)}, b.where);
}

Array compare_of(CompareKind kind, Operand a, Operand b) {
  detail::unify(row(kind).name, a.array, b.array, b.where);
  return detail::apply(Op(op::Compare{kind}), {std::move(a.array), std::move(b.array)}, b.where);
}

Array unary_of(UnaryKind kind, Operand x) {
  return detail::apply(Op(op::Unary{kind}), {std::move(x.array)}, x.where);
}

// Logic is about what is 0 and what is not.
Array truth(const Array& x) {
  detail::require_valid(x, "logic", {});
  if (x.dtype() == DType::Bool) return x;
  return compare_of(CompareKind::Ne, {x, x.node()->where}, {0, x.node()->where});
}

}  // namespace

const Type& Array::type() const {
  detail::require_valid(*this, "type", {});
  const Type& exact = node_->types[result_];
  return node_->weak ? plain_type(exact, *node_) : exact;
}

Dim Array::dim(std::int64_t axis) const {
  const auto a = normalized_axis(axis, rank());
  if (!a) {
    throw UserError(ErrorCode::Attr,
                    fmt::format("there is no axis {} in {}", axis, type().to_string()));
  }
  return shape()[static_cast<std::size_t>(*a)];
}

ArrayRow Array::end() const {
  detail::require_valid(*this, "for", {});
  if (rank() == 0) {
    detail::refuse(ErrorCode::Shape, "rows", "an array of rank 0 has no rows to go through",
                   "item() is its only element", node_->where);
  }
  return {*this, dim(0).value()};
}

std::int64_t Array::size() const {
  std::int64_t n = 1;
  for (const Dim& d : shape()) n *= d.value();
  return n;
}

const Tensor& Array::tensor(std::source_location where) const& {
  detail::require_valid(*this, "tensor", where);
  if (node_->trace || !node_->is_ready()) detail::materialize({this, 1}, where);
  const bool number = node_->weak && node_->kind == ArrayNode::Kind::Number;
  return detail::value_of(*node_, number ? 1 : result_);
}

Tensor Array::tensor(std::source_location where) && {
  return static_cast<const Array&>(*this).tensor(where);
}

double Array::item(std::source_location where) const {
  require_one(*this, "item()", "reduce it first, or take to_vector()", where);
  const Tensor& value = tensor(where);
  if (node_->weak && !is_complex(dtype())) return node_->values[0].item();
  return value.item();
}

const void* Array::raw_data(DType wanted, std::source_location where) const {
  if (dtype() != wanted) {
    detail::refuse(ErrorCode::DType, "data",
                   fmt::format("the elements are {}, not {}", name(dtype()), name(wanted)),
                   "ask for the type they have, or take to_vector()", where);
  }
  return tensor(where).data();
}

Array::operator bool() const {
  const std::source_location unknown;
  detail::require_valid(*this, "bool", unknown);
  if (node_->trace) detail::refuse_look(*this, node_->where);
  require_one(*this, "a condition", "say which are meant: any(x), all(x)", node_->where);
  const auto v = tensor().numbers<std::complex<double>>();
  return v[0] != std::complex<double>(0);
}

std::string Array::str() const {
  if (!valid()) return "Array without a value";
  if (node_->trace) {
    return fmt::format("traced {} of '{}'", type().to_string(), node_->trace->what);
  }
  if (node_->weak && !is_complex(dtype())) return detail::printed(node_->values[0]);
  return detail::printed(tensor());
}

#define RICCI_METHOD(name, function)                                                              \
  Array Array::name(Here where) const { return function(*this, {}, false, where); }               \
  Array Array::name(std::int64_t axis, Here where) const {                                        \
    return function(*this, axis, false, where);                                                   \
  }                                                                                               \
  Array Array::name(std::int64_t axis, bool keep_dims, Here where) const {                        \
    return function(*this, axis, keep_dims, where);                                               \
  }                                                                                               \
  Array Array::name(std::int64_t axis, ReduceOptions options, Here where) const {                 \
    return function(*this, axis, options, where);                                                 \
  }                                                                                               \
  Array Array::name(std::initializer_list<std::int64_t> axes, bool keep_dims, Here where) const { \
    return function(*this, Axes(axes.begin(), axes.end()), keep_dims, where);                     \
  }
RICCI_METHOD(sum, ricci::sum)
RICCI_METHOD(mean, ricci::mean)
RICCI_METHOD(max, ricci::amax)
RICCI_METHOD(min, ricci::amin)
RICCI_METHOD(prod, ricci::prod)
RICCI_METHOD(any, ricci::any)
RICCI_METHOD(all, ricci::all)
RICCI_METHOD(logsumexp, ricci::logsumexp)
RICCI_METHOD(norm, ricci::norm)
#undef RICCI_METHOD
#define RICCI_METHOD(name, function)                                                              \
  Array Array::name(Here where) const { return function(*this, {}, false, 0, where); }            \
  Array Array::name(std::int64_t axis, Here where) const {                                        \
    return function(*this, axis, false, 0, where);                                                \
  }                                                                                               \
  Array Array::name(std::int64_t axis, bool keep_dims, Here where) const {                        \
    return function(*this, axis, keep_dims, 0, where);                                            \
  }                                                                                               \
  Array Array::name(std::int64_t axis, VarOptions options, Here where) const {                    \
    return function(*this, axis, options, where);                                                 \
  }                                                                                               \
  Array Array::name(std::initializer_list<std::int64_t> axes, bool keep_dims, Here where) const { \
    return function(*this, Axes(axes.begin(), axes.end()), keep_dims, 0, where);                  \
  }
RICCI_METHOD(var, ricci::var)
RICCI_METHOD(std, ricci::stddev)
#undef RICCI_METHOD
#define RICCI_UNARY(Kind, name) \
  Array Array::name(Here where) const { return ricci::name(*this, where); }
#include "ricci/op/unary.def"
Array Array::argmax(std::int64_t axis, Here where) const {
  return ricci::argmax(*this, axis, false, where);
}
Array Array::argmin(std::int64_t axis, Here where) const {
  return ricci::argmin(*this, axis, false, where);
}
Array Array::reshape(const Dims& shape, Here where) const {
  return ricci::reshape(*this, shape, where);
}
Array Array::flatten(Here where) const { return ricci::reshape(*this, {-1}, where); }
Array Array::squeeze(Here where) const { return ricci::squeeze(*this, {}, where); }
Array Array::clip(const Array& low, const Array& high, Here where) const {
  return ricci::clip(*this, low, high, where);
}
Array Array::dot(const Array& b, Here where) const { return ricci::dot(*this, b, where); }
Array Array::cumsum(std::int64_t axis, Here where) const {
  return ricci::cumsum(*this, axis, where);
}
Array Array::transpose(Here where) const { return ricci::transpose(*this, {}, where); }
Array Array::transpose(std::initializer_list<std::int64_t> perm, Here where) const {
  return ricci::transpose(*this, Axes(perm.begin(), perm.end()), where);
}
Array Array::cumprod(std::int64_t axis, Here where) const {
  return ricci::cumprod(*this, axis, where);
}
Array Array::view(const Dims& shape, Here where) const {
  return ricci::reshape(*this, shape, where);
}
Array Array::flatten(std::int64_t first, Here where) const {
  return ricci::flatten(*this, first, where);
}
Array Array::squeeze(std::int64_t axis, Here where) const {
  return ricci::squeeze(*this, axis, where);
}
Array Array::expand_dims(std::int64_t axis, Here where) const {
  return ricci::expand_dims(*this, axis, where);
}
Array Array::unsqueeze(std::int64_t axis, Here where) const {
  return ricci::expand_dims(*this, axis, where);
}
Array Array::broadcast_to(const Dims& shape, Here where) const {
  return ricci::broadcast_to(*this, shape, where);
}
Array Array::expand(const Dims& shape, Here where) const {
  return ricci::broadcast_to(*this, shape, where);
}
Array Array::swapaxes(std::int64_t a, std::int64_t b, Here where) const {
  return ricci::swapaxes(*this, a, b, where);
}
Array Array::permute(std::initializer_list<std::int64_t> perm, Here where) const {
  return transpose(perm, where);
}
Array Array::repeat(std::int64_t count, std::int64_t axis, Here where) const {
  return ricci::repeat(*this, count, axis, where);
}
Array Array::take(const Array& indices, std::int64_t axis, Here where) const {
  return ricci::take(*this, indices, axis, where);
}
Array Array::diagonal(Here where) const { return ricci::diagonal(*this, 0, where); }
Array Array::trace(Here where) const { return ricci::trace(*this, where); }
Array Array::sort(std::int64_t axis, Here where) const {
  return ricci::sort(*this, axis, false, where);
}
Array Array::argsort(std::int64_t axis, Here where) const {
  return ricci::argsort(*this, axis, false, where);
}
Array Array::softmax(std::int64_t axis, Here where) const {
  return ricci::softmax(*this, axis, where);
}
Array Array::pow(const Array& exponent, Here where) const {
  return ricci::pow(*this, exponent, where);
}
Array Array::matmul(const Array& b, Here where) const { return ricci::matmul(*this, b, where); }
Array Array::conj(Here where) const { return ricci::conj(*this, where); }
Array Array::real(Here where) const { return ricci::real(*this, where); }
Array Array::detach(Here where) const { return ricci::stop_gradient(*this, where); }
Array Array::mT(Here where) const { return ricci::matrix_transpose(*this, where); }
Array Array::to(DType dtype, Here where) const { return ricci::cast(*this, dtype, where); }
Array Array::T(Here where) const { return ricci::transpose(*this, {}, where); }
Array Array::astype(DType to, Here where) const { return ricci::cast(*this, to, where); }

std::ostream& operator<<(std::ostream& out, const Array& x) { return out << x.str(); }

void eval(std::span<const Array> arrays, std::source_location where) {
  detail::materialize(arrays, where);
}

Array operator+(Operand a, Operand b) {
  return binary_of(BinaryKind::Add, std::move(a), std::move(b));
}
Array operator-(Operand a, Operand b) {
  return binary_of(BinaryKind::Sub, std::move(a), std::move(b));
}
Array operator*(Operand a, Operand b) {
  return binary_of(BinaryKind::Mul, std::move(a), std::move(b));
}
Array operator/(Operand a, Operand b) { return divide(a.array, b.array, b.where); }
Array operator%(Operand a, Operand b) { return remainder(a.array, b.array, b.where); }
Array operator==(Operand a, Operand b) {
  return compare_of(CompareKind::Eq, std::move(a), std::move(b));
}
Array operator!=(Operand a, Operand b) {
  return compare_of(CompareKind::Ne, std::move(a), std::move(b));
}
Array operator<(Operand a, Operand b) {
  return compare_of(CompareKind::Lt, std::move(a), std::move(b));
}
Array operator<=(Operand a, Operand b) {
  return compare_of(CompareKind::Le, std::move(a), std::move(b));
}
Array operator>(Operand a, Operand b) {
  return compare_of(CompareKind::Gt, std::move(a), std::move(b));
}
Array operator>=(Operand a, Operand b) {
  return compare_of(CompareKind::Ge, std::move(a), std::move(b));
}
Array operator&&(const Array& a, const Array& b) {
  const Array x = truth(a);
  return binary_of(BinaryKind::LogicalAnd, x, {truth(b), x.node()->where});
}
Array operator||(const Array& a, const Array& b) {
  const Array x = truth(a);
  return binary_of(BinaryKind::LogicalOr, x, {truth(b), x.node()->where});
}
Array operator&(Operand a, Operand b) {
  return binary_of(BinaryKind::BitwiseAnd, std::move(a), std::move(b));
}
Array operator|(Operand a, Operand b) {
  return binary_of(BinaryKind::BitwiseOr, std::move(a), std::move(b));
}
Array operator^(Operand a, Operand b) {
  return binary_of(BinaryKind::BitwiseXor, std::move(a), std::move(b));
}
Array operator<<(Operand a, Operand b) {
  return binary_of(BinaryKind::ShiftLeft, std::move(a), std::move(b));
}
Array operator>>(Operand a, Operand b) {
  return binary_of(BinaryKind::ShiftRight, std::move(a), std::move(b));
}
Array operator-(Operand x) { return unary_of(UnaryKind::Neg, std::move(x)); }
Array operator!(const Array& x) {
  const Array t = truth(x);
  return unary_of(UnaryKind::LogicalNot, {t, t.node()->where});
}
Array operator~(Operand x) { return unary_of(UnaryKind::BitwiseNot, std::move(x)); }

}  // namespace ricci
