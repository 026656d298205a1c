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
#include "ricci/build/op_list.h"
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

/// The graph operands belong to; UserError at the caller's line when there is none.
[[nodiscard]] Graph& graph_of(std::span<const Value> operands, std::string_view op,
                              std::source_location loc);

template <class T>
Built<T> build(Graph& graph, T attrs, std::source_location loc) {
  return BuilderResult<T>::from(graph.add_node(Op(std::move(attrs)), {}, {}, loc));
}
template <class T>
Built<T> build(std::span<const Value> operands, T attrs, std::source_location loc) {
  return BuilderResult<T>::from(
      graph_of(operands, T::info.name, loc).add_node(Op(std::move(attrs)), operands, {}, loc));
}

}  // namespace detail

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
