// Builders: one function per op, derived from the op list. Operands come first, then the op's own
// attributes as an aggregate, then the caller's place, which the node remembers.
//
//   Value y = layer_norm(x, gamma, beta, {.axis = 1});
//   Value z = tanh(matmul(x, w) + b) * 0.5;
//   auto [dx, dgamma, dbeta] = layer_norm_backward(x, gamma, dy);
//
// Operators promote dtypes, named builders do not.
#pragma once

#include <array>
#include <source_location>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "ricci/build/control.h"
#include "ricci/build/custom.h"
#include "ricci/ir/graph.h"
#include "ricci/op/ops.h"

namespace ricci {

namespace detail {

/// What a builder gives: one value, several, or as many as the op decides.
template <class T>
struct BuilderResult {
  static constexpr ListCount results = count_list(T::info.results);
  static constexpr std::size_t count = results.required;
  using type = std::conditional_t<
      results.variadic, std::vector<Value>,
      std::conditional_t<count == 1, Value, std::array<Value, count == 0 ? 1 : count>>>;
  static type from(std::vector<Value> values) {
    if constexpr (results.variadic) {
      return values;
    } else if constexpr (count == 1) {
      return values[0];
    } else {
      type out;
      for (std::size_t i = 0; i < count; ++i) out[i] = values[i];
      return out;
    }
  }
};
template <class T>
using Built = typename BuilderResult<T>::type;

/// May op T be given `n` operands as separate arguments?
template <class T>
constexpr bool takes(std::size_t n) {
  constexpr ListCount operands = count_list(T::info.operands);
  return !operands.variadic && n >= operands.required && n <= operands.required + operands.optional;
}
/// As a list: ops that decide how many there are, and those with more than have a name.
template <class T>
constexpr bool takes_list() {
  constexpr ListCount operands = count_list(T::info.operands);
  return operands.variadic || operands.required > 8;
}

/// The graph operands belong to; UserError at the caller's line when there is none.
[[nodiscard]] Graph& graph_of(std::span<const Value> operands, std::string_view op,
                              std::source_location loc);

template <class T>
Built<T> build(std::span<const Value> operands, T attrs, std::source_location loc) {
  return BuilderResult<T>::from(
      graph_of(operands, T::info.name, loc).add_node(Op(std::move(attrs)), operands, {}, loc));
}

}  // namespace detail

// One builder per op of the list: an overload for every number of operands the op may take.
// Leaves, control flow, custom ops and blocks have builders of their own.
#define RICCI_BUILDER(T, builder, n, parameters, operands)                                   \
  template <int = 0>                                                                         \
    requires(detail::takes<op::T>(n))                                                        \
  detail::Built<op::T> builder(RICCI_UNPACK parameters, op::T attrs = {},                    \
                               std::source_location loc = std::source_location::current()) { \
    return detail::build<op::T>(std::array{RICCI_UNPACK operands}, std::move(attrs), loc);   \
  }
#define RICCI_UNPACK(...) __VA_ARGS__
#define RICCI_BUILDERS(T, builder)                                                                \
  template <int = 0>                                                                              \
    requires(detail::takes<op::T>(0))                                                             \
  detail::Built<op::T> builder(Graph& graph, op::T attrs = {},                                    \
                               std::source_location loc = std::source_location::current()) {      \
    return detail::BuilderResult<op::T>::from(graph.add_node(Op(std::move(attrs)), {}, {}, loc)); \
  }                                                                                               \
  RICCI_BUILDER(T, builder, 1, (Value a), (a))                                                    \
  RICCI_BUILDER(T, builder, 2, (Value a, Value b), (a, b))                                        \
  RICCI_BUILDER(T, builder, 3, (Value a, Value b, Value c), (a, b, c))                            \
  RICCI_BUILDER(T, builder, 4, (Value a, Value b, Value c, Value d), (a, b, c, d))                \
  RICCI_BUILDER(T, builder, 5, (Value a, Value b, Value c, Value d, Value e), (a, b, c, d, e))    \
  RICCI_BUILDER(T, builder, 6, (Value a, Value b, Value c, Value d, Value e, Value f),            \
                (a, b, c, d, e, f))                                                               \
  RICCI_BUILDER(T, builder, 7, (Value a, Value b, Value c, Value d, Value e, Value f, Value g),   \
                (a, b, c, d, e, f, g))                                                            \
  RICCI_BUILDER(T, builder, 8,                                                                    \
                (Value a, Value b, Value c, Value d, Value e, Value f, Value g, Value h),         \
                (a, b, c, d, e, f, g, h))                                                         \
  template <int = 0>                                                                              \
    requires(detail::takes_list<op::T>())                                                         \
  detail::Built<op::T> builder(std::span<const Value> operands, op::T attrs = {},                 \
                               std::source_location loc = std::source_location::current()) {      \
    return detail::build<op::T>(operands, std::move(attrs), loc);                                 \
  }                                                                                               \
  template <int = 0>                                                                              \
    requires(detail::takes_list<op::T>())                                                         \
  detail::Built<op::T> builder(std::initializer_list<Value> operands, op::T attrs = {},           \
                               std::source_location loc = std::source_location::current()) {      \
    return detail::build<op::T>(std::span(operands.begin(), operands.size()), std::move(attrs),   \
                                loc);                                                             \
  }

#define RICCI_OP RICCI_BUILDERS
#define RICCI_LEAF(Type, builder)
#define RICCI_PRIMITIVE_FAMILY(Type, builder)
#define RICCI_STRUCTURED_FAMILY(Type, builder)
#define RICCI_CONTROL(Type, builder)
#define RICCI_CUSTOM(Type, builder)
#define RICCI_BLOCK(Type, builder)
#include "ricci/op/list.def"

// The generic forms: the function as an argument.
Value activation(UnaryKind kind, Value x,
                 std::source_location loc = std::source_location::current());
Value binary(BinaryKind kind, Value a, Value b,
             std::source_location loc = std::source_location::current());
Value compare(CompareKind kind, Value a, Value b,
              std::source_location loc = std::source_location::current());

/// A rank-0 constant with the dtype of `x`; it broadcasts wherever `x` goes.
Value scalar_like(Value x, double value,
                  std::source_location loc = std::source_location::current());

// The members of the families by name: tanh(x), add(a, b), lt(a, b), …
#define RICCI_UNARY(Kind, name)                                                            \
  inline Value name(Value x, std::source_location loc = std::source_location::current()) { \
    return activation(UnaryKind::Kind, x, loc);                                            \
  }
#include "ricci/op/unary.def"
#define RICCI_BINARY(Kind, name)                                                  \
  inline Value name(Value a, Value b,                                             \
                    std::source_location loc = std::source_location::current()) { \
    return binary(BinaryKind::Kind, a, b, loc);                                   \
  }                                                                               \
  inline Value name(Value a, double b,                                            \
                    std::source_location loc = std::source_location::current()) { \
    return binary(BinaryKind::Kind, a, scalar_like(a, b, loc), loc);              \
  }                                                                               \
  inline Value name(double a, Value b,                                            \
                    std::source_location loc = std::source_location::current()) { \
    return binary(BinaryKind::Kind, scalar_like(b, a, loc), b, loc);              \
  }
#include "ricci/op/binary.def"
#define RICCI_COMPARE(Kind, name)                                                 \
  inline Value name(Value a, Value b,                                             \
                    std::source_location loc = std::source_location::current()) { \
    return compare(CompareKind::Kind, a, b, loc);                                 \
  }                                                                               \
  inline Value name(Value a, double b,                                            \
                    std::source_location loc = std::source_location::current()) { \
    return compare(CompareKind::Kind, a, scalar_like(a, b, loc), loc);            \
  }                                                                               \
  inline Value name(double a, Value b,                                            \
                    std::source_location loc = std::source_location::current()) { \
    return compare(CompareKind::Kind, scalar_like(b, a, loc), b, loc);            \
  }
RICCI_COMPARE(Eq, eq)
RICCI_COMPARE(Ne, ne)
RICCI_COMPARE(Lt, lt)
RICCI_COMPARE(Le, le)
RICCI_COMPARE(Gt, gt)
RICCI_COMPARE(Ge, ge)
#undef RICCI_COMPARE

/// One value repeated in the shape and dtype of `x` (sizes must be known).
Value full_like(Value x, double value, std::source_location loc = std::source_location::current());
/// One value repeated in a type: a constant when its sizes are known, else a scalar that is
/// broadcast.
Value filled(Graph& graph, const Type& type, double value,
             std::source_location loc = std::source_location::current());
/// `x` as `dtype`; `x` itself when it already is.
Value cast_to(Value x, DType dtype, std::source_location loc = std::source_location::current());

/// `x` repeated to a larger shape; `x` itself when it already has it.
Value broadcast_to(Value x, Dims dims, std::source_location loc = std::source_location::current());
/// `x` in another shape of as many elements; `x` itself when it already has it.
Value reshape_to(Value x, Dims dims, std::source_location loc = std::source_location::current());
/// The last two axes exchanged.
Value transpose_last(Value x, std::source_location loc = std::source_location::current());

/// A value with the place of the operator that uses it.
struct Located {
  Value value;
  std::source_location loc;
  Located(Value v, std::source_location l = std::source_location::current())  // NOLINT
      : value(v), loc(l) {}
};
Value operator+(Located a, Located b);
Value operator-(Located a, Located b);
Value operator*(Located a, Located b);
Value operator/(Located a, Located b);
Value operator+(Located a, double b);
Value operator-(Located a, double b);
Value operator*(Located a, double b);
Value operator/(Located a, double b);
Value operator+(double a, Located b);
Value operator-(double a, Located b);
Value operator*(double a, Located b);
Value operator/(double a, Located b);
Value operator-(Located a);
inline Value& operator+=(Value& a, Located b) { return a = Located(a, b.loc) + b; }
inline Value& operator-=(Value& a, Located b) { return a = Located(a, b.loc) - b; }
inline Value& operator*=(Value& a, Located b) { return a = Located(a, b.loc) * b; }
inline Value& operator/=(Value& a, Located b) { return a = Located(a, b.loc) / b; }

/// Reductions by name; no axes means all of them.
Value sum(Value x, Axes axes = {}, bool keep_dim = false,
          std::source_location loc = std::source_location::current());
Value mean(Value x, Axes axes = {}, bool keep_dim = false,
           std::source_location loc = std::source_location::current());

}  // namespace ricci
