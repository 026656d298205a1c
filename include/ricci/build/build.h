// Builders: one function per op, derived from the op list. Operands come first, then the op's own
// attributes as an aggregate, then the caller's place, which the node remembers.
//
//   Value y = layer_norm(x, gamma, beta, {.axis = 1});
//   Value z = tanh(matmul(x, w) + b) * 0.5;        // operators promote dtypes, named builders do
//   not auto [dx, dgamma, dbeta] = layer_norm_backward(x, gamma, dy);
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
typename BuilderResult<T>::type build(std::span<const Value> operands, T attrs,
                                      std::source_location loc) {
  return BuilderResult<T>::from(
      operands[0].graph().add_node(Op(std::move(attrs)), operands, {}, loc));
}

template <std::size_t>
using OneValue = Value;

template <class T, class Indices>
struct FixedBuilder;
template <class T, std::size_t... I>
struct FixedBuilder<T, std::index_sequence<I...>> {
  typename BuilderResult<T>::type operator()(
      OneValue<I>... operands, T attrs = {},
      std::source_location loc = std::source_location::current()) const {
    const std::array<Value, sizeof...(I)> all{operands...};
    return build<T>(all, std::move(attrs), loc);
  }
};
template <class T>
struct FixedBuilder<T, std::index_sequence<>> {
  typename BuilderResult<T>::type operator()(
      Graph& graph, T attrs, std::source_location loc = std::source_location::current()) const {
    return BuilderResult<T>::from(graph.add_node(Op(std::move(attrs)), {}, {}, loc));
  }
};

template <class T>
struct VariadicBuilder {
  typename BuilderResult<T>::type operator()(
      std::span<const Value> operands, T attrs = {},
      std::source_location loc = std::source_location::current()) const {
    if (operands.empty()) {
      throw UserError(ErrorCode::Attr, std::string("'") + std::string(T::info.name) +
                                           "' needs at least one operand");
    }
    return build<T>(operands, std::move(attrs), loc);
  }
  typename BuilderResult<T>::type operator()(
      std::initializer_list<Value> operands, T attrs = {},
      std::source_location loc = std::source_location::current()) const {
    return (*this)(std::span<const Value>(operands.begin(), operands.size()), std::move(attrs),
                   loc);
  }
};

// One overload per number of optional operands given.
template <class T, std::size_t Least, class Extra>
struct OverloadedBuilder;
template <class T, std::size_t Least, std::size_t... E>
struct OverloadedBuilder<T, Least, std::index_sequence<E...>>
    : FixedBuilder<T, std::make_index_sequence<Least + E>>... {
  using FixedBuilder<T, std::make_index_sequence<Least + E>>::operator()...;
};

template <class T>
inline constexpr ListCount OperandCount = count_list(T::info.operands);

template <class T>
using BuilderFor =
    std::conditional_t<OperandCount<T>.variadic, VariadicBuilder<T>,
                       OverloadedBuilder<T, OperandCount<T>.required,
                                         std::make_index_sequence<OperandCount<T>.optional + 1>>>;

struct UnaryBuilder {
  UnaryKind kind;
  Value operator()(Value x, std::source_location loc = std::source_location::current()) const {
    return build<op::Unary>(std::array{x}, {kind}, loc);
  }
};
struct BinaryBuilder {
  BinaryKind kind;
  Value operator()(Value a, Value b,
                   std::source_location loc = std::source_location::current()) const {
    return build<op::Binary>(std::array{a, b}, {kind}, loc);
  }
};
struct CompareBuilder {
  CompareKind kind;
  Value operator()(Value a, Value b,
                   std::source_location loc = std::source_location::current()) const {
    return build<op::Compare>(std::array{a, b}, {kind}, loc);
  }
};

}  // namespace detail

// One builder per op of the list. Leaves, control flow, custom ops and blocks have hand-written
// ones.
#define RICCI_OP(Type, builder) inline constexpr detail::BuilderFor<op::Type> builder{};
#define RICCI_LEAF(Type, builder)
#define RICCI_PRIMITIVE_FAMILY(Type, builder)
#define RICCI_STRUCTURED_FAMILY(Type, builder)
#define RICCI_CONTROL(Type, builder)
#define RICCI_CUSTOM(Type, builder)
#define RICCI_BLOCK(Type, builder)
#include "ricci/op/list.def"

#define RICCI_UNARY(Kind, name) inline constexpr detail::UnaryBuilder name{UnaryKind::Kind};
#include "ricci/op/unary.def"
#define RICCI_BINARY(Kind, name) inline constexpr detail::BinaryBuilder name{BinaryKind::Kind};
#include "ricci/op/binary.def"
inline constexpr detail::CompareBuilder eq{CompareKind::Eq};
inline constexpr detail::CompareBuilder ne{CompareKind::Ne};
inline constexpr detail::CompareBuilder lt{CompareKind::Lt};
inline constexpr detail::CompareBuilder le{CompareKind::Le};
inline constexpr detail::CompareBuilder gt{CompareKind::Gt};
inline constexpr detail::CompareBuilder ge{CompareKind::Ge};

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
/// One value repeated in the shape and dtype of `x` (sizes must be known).
Value full_like(Value x, double value, std::source_location loc = std::source_location::current());
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

/// Reductions by name; no axes means all of them.
Value sum(Value x, Axes axes = {}, bool keep_dim = false,
          std::source_location loc = std::source_location::current());
Value mean(Value x, Axes axes = {}, bool keep_dim = false,
           std::source_location loc = std::source_location::current());

}  // namespace ricci
