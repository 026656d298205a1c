#include "ricci/build/build.h"

#include <cmath>
#include <numeric>

#include <fmt/format.h>

namespace ricci {
namespace {

// The operators promote; the named builders do not.
Value promoted(BinaryKind kind, const Located& a, const Located& b) {
  const DType common = promote(a.value.dtype(), b.value.dtype());
  return binary(kind, cast_to(a.value, common, a.loc), cast_to(b.value, common, a.loc), a.loc);
}

Value with_scalar(BinaryKind kind, const Located& a, double b) {
  return binary(kind, a.value, scalar_like(a.value, b, a.loc), a.loc);
}

Value scalar_with(BinaryKind kind, double a, const Located& b) {
  return binary(kind, scalar_like(b.value, a, b.loc), b.value, b.loc);
}

}  // namespace

Graph& detail::graph_of(std::span<const Value> operands, std::string_view op,
                        std::source_location loc) {
  const auto fail = [&](ErrorCode code, std::string message, std::string help) {
    throw UserError(Diagnostic{
        code, std::string(op), std::move(message), SourcePosition::from(loc), {}, std::move(help)});
  };
  if (operands.empty()) {
    fail(ErrorCode::Attr, fmt::format("'{}' needs at least one operand", op), "");
  }
  for (std::size_t k = 0; k < operands.size(); ++k) {
    if (!operands[k].valid()) {
      fail(ErrorCode::Name, fmt::format("operand {} of '{}' is an empty Value", k, op),
           "take values from Graph::input, Graph::param or a builder");
    }
  }
  // Of a body and the graphs around it, whose values it may use, it is the body.
  Graph* innermost = &operands[0].graph();
  for (const Value& v : operands.subspan(1)) {
    Graph& other = v.graph();
    if (&other != innermost && other.is_inside(*innermost)) innermost = &other;
  }
  return *innermost;
}

Value activation(UnaryKind kind, Value x, std::source_location loc) {
  return detail::build<op::Unary>(std::array{x}, {kind}, loc);
}
Value binary(BinaryKind kind, Value a, Value b, std::source_location loc) {
  return detail::build<op::Binary>(std::array{a, b}, {kind}, loc);
}
Value compare(CompareKind kind, Value a, Value b, std::source_location loc) {
  return detail::build<op::Compare>(std::array{a, b}, {kind}, loc);
}

Value scalar_like(Value x, double value, std::source_location loc) {
  const DType dtype = x.dtype();
  if (is_int(dtype) && value != std::trunc(value)) {
    throw UserError(Diagnostic{ErrorCode::DType,
                               "scalar",
                               fmt::format("{} is not an integer, but the other operand is {}",
                                           value, x.type().to_string()),
                               SourcePosition::from(loc),
                               {},
                               "cast the operand to a float first"});
  }
  return x.graph().constant(Tensor::splat({dtype, {}}, value), loc);
}

Value full_like(Value x, double value, std::source_location loc) {
  return x.graph().constant(Tensor::splat(x.type(), value), loc);
}

Value filled(Graph& graph, const Type& type, double value, std::source_location loc) {
  if (type.is_static()) return graph.constant(Tensor::splat(type, value), loc);
  return broadcast_to(graph.constant(Tensor::splat({type.dtype, {}}, value), loc), type.dims, loc);
}

Value cast_to(Value x, DType dtype, std::source_location loc) {
  return x.dtype() == dtype ? x : cast(x, {.to = dtype}, loc);
}

Value broadcast_to(Value x, Dims dims, std::source_location loc) {
  return x.dims() == dims ? x : expand(x, {.target_shape = std::move(dims)}, loc);
}

Value reshape_to(Value x, Dims dims, std::source_location loc) {
  return x.dims() == dims ? x : reshape(x, {.new_shape = std::move(dims)}, loc);
}

Value transpose_last(Value x, std::source_location loc) {
  Axes perm;
  for (std::size_t i = 0; i < x.rank(); ++i) perm.emplace_back(static_cast<std::int64_t>(i));
  if (perm.size() >= 2) std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return transpose(x, {.perm = std::move(perm)}, loc);
}

Value operator+(Located a, Located b) { return promoted(BinaryKind::Add, a, b); }
Value operator-(Located a, Located b) { return promoted(BinaryKind::Sub, a, b); }
Value operator*(Located a, Located b) { return promoted(BinaryKind::Mul, a, b); }
Value operator/(Located a, Located b) { return promoted(BinaryKind::Div, a, b); }
Value operator+(Located a, double b) { return with_scalar(BinaryKind::Add, a, b); }
Value operator-(Located a, double b) { return with_scalar(BinaryKind::Sub, a, b); }
Value operator*(Located a, double b) { return with_scalar(BinaryKind::Mul, a, b); }
Value operator/(Located a, double b) { return with_scalar(BinaryKind::Div, a, b); }
Value operator+(double a, Located b) { return scalar_with(BinaryKind::Add, a, b); }
Value operator-(double a, Located b) { return scalar_with(BinaryKind::Sub, a, b); }
Value operator*(double a, Located b) { return scalar_with(BinaryKind::Mul, a, b); }
Value operator/(double a, Located b) { return scalar_with(BinaryKind::Div, a, b); }
Value operator-(Located a) { return neg(a.value, a.loc); }

}  // namespace ricci
