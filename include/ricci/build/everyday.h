// The common calls by position and under the names people try first, on values of a graph:
//
//   Value y = softmax(reshape(x, {2, 3}), 1);
//   Value p = max_pool2d(relu(conv2d(x, w, {.padding = 1})), 2);
//   Value z = where(x > 0 && x < 1, x, 0.0);
//
// They make ops of the op list (ricci/build/op_list.h), whose attributes have names. `==` asks
// whether two handles are of one value: elements are compared by `eq` and `ne`.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <source_location>
#include <span>

#include "ricci/build/build.h"
#include "ricci/build/shape.h"
#include "ricci/build/windows.h"

namespace ricci {

// An axis as a number, so that `{}` stays what the op has by default.
template <class T>
concept AxisNumber = std::integral<T> && !std::same_as<T, bool>;

namespace detail {
Value reshape_of(Value x, std::span<const Dim> shape, std::source_location loc);
}  // namespace detail

// Templates, so that where a compiler takes {.perm = {1, 0}} for a list too the op's own form is
// the better one.
/// The same elements in another shape; one size may be -1.
template <int = 0>
Value reshape(Value x, std::initializer_list<Dim> shape,
              std::source_location loc = std::source_location::current()) {
  return detail::reshape_of(x, {shape.begin(), shape.size()}, loc);
}
template <int = 0>
Value transpose(Value x, std::initializer_list<std::int64_t> perm,
                std::source_location loc = std::source_location::current()) {
  return transpose(x, op::Transpose{.perm = Axes(perm.begin(), perm.end())}, loc);
}
Value narrow(Value x, Axis axis, const Dim& start, const Dim& len,
             std::source_location loc = std::source_location::current());
template <AxisNumber T>
Value concat(std::initializer_list<Value> values, T axis,
             std::source_location loc = std::source_location::current()) {
  return concat(values, op::Concat{.axis = static_cast<std::int64_t>(axis)}, loc);
}
template <AxisNumber T>
Value stack(std::initializer_list<Value> values, T axis,
            std::source_location loc = std::source_location::current()) {
  return stack(std::span<const Value>(values.begin(), values.size()),
               Axis(static_cast<std::int64_t>(axis)), loc);
}

template <AxisNumber T>
Value softmax(Value x, T axis, std::source_location loc = std::source_location::current()) {
  return softmax(x, op::Softmax{.axis = static_cast<std::int64_t>(axis)}, loc);
}
Value log_softmax(Value x, Axis axis = -1,
                  std::source_location loc = std::source_location::current());
template <AxisNumber T>
Value sum(Value x, T axis, bool keep_dim = false,
          std::source_location loc = std::source_location::current()) {
  return sum(x, Axes{Axis(static_cast<std::int64_t>(axis))}, keep_dim, loc);
}
template <AxisNumber T>
Value mean(Value x, T axis, bool keep_dim = false,
           std::source_location loc = std::source_location::current()) {
  return mean(x, Axes{Axis(static_cast<std::int64_t>(axis))}, keep_dim, loc);
}
Value argmax(Value x, Axis axis = -1, bool keep_dim = false,
             std::source_location loc = std::source_location::current());
Value argmin(Value x, Axis axis = -1, bool keep_dim = false,
             std::source_location loc = std::source_location::current());

/// Numbers take the dtype of the value.
Value where(Value condition, Value a, double b,
            std::source_location loc = std::source_location::current());
Value where(Value condition, double a, Value b,
            std::source_location loc = std::source_location::current());
/// x kept within [low, high].
Value clip(Value x, double low, double high,
           std::source_location loc = std::source_location::current());
Value clip(Value x, Value low, Value high,
           std::source_location loc = std::source_location::current());

/// x [N, C_in, H, W], w [C_out, C_in/groups, kH, kW]; a bias is [C_out].
Value conv2d(Value x, Value w, const Conv2dOptions& options = {},
             std::source_location loc = std::source_location::current());
Value conv2d(Value x, Value w, Value bias, const Conv2dOptions& options = {},
             std::source_location loc = std::source_location::current());
/// A stride that is not given is the window.
Value max_pool2d(Value x, Pair window, const PoolOptions& options = {},
                 std::source_location loc = std::source_location::current());
Value avg_pool2d(Value x, Pair window, const PoolOptions& options = {},
                 std::source_location loc = std::source_location::current());

/// The mean over examples of the cross entropy of softmax(logits), [.., C], with classes, [..], or
/// with probabilities, [.., C].
Value cross_entropy(Value logits, Value target,
                    std::source_location loc = std::source_location::current());
/// The mean of (a - b)².
Value mse(Value a, Value b, std::source_location loc = std::source_location::current());

#define RICCI_VALUE_COMPARISON(symbol)         \
  Value operator symbol(Located a, Located b); \
  Value operator symbol(Located a, double b);  \
  Value operator symbol(double a, Located b);
RICCI_VALUE_COMPARISON(<)
RICCI_VALUE_COMPARISON(<=)
RICCI_VALUE_COMPARISON(>)
RICCI_VALUE_COMPARISON(>=)
#undef RICCI_VALUE_COMPARISON
// Of conditions, element by element; both sides are computed.
Value operator&&(Located a, Located b);
Value operator||(Located a, Located b);
Value operator!(Located x);

/// What it is called and its type: `x: f32[2, 3]`.
std::ostream& operator<<(std::ostream& out, const Value& x);

}  // namespace ricci
