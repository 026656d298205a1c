// Any builder of graphs as a function of arrays: what has no function of its own yet, and your own.
//
//   Array x = lift([](Value a, Value b) { return lstsq(a, b); }, a, b);
//   auto [q, r] = lift([](Value a) { return qr(a); }, a);
#pragma once

#include <array>
#include <concepts>
#include <source_location>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "ricci/array/array.h"
#include "ricci/ir/graph.h"

namespace ricci {

namespace detail {

using Pieces = std::vector<Value> (*)(void* context, Graph& graph, std::span<const Value> operands);
/// Runs builders on a graph of their own and records what they built.
[[nodiscard]] std::vector<Array> lift_pieces(std::span<const Array> operands, Pieces build,
                                             void* context, std::source_location where);

// What builders give, as values in a row and back as arrays.
inline std::vector<Value> values_in(Value v) { return {v}; }
inline std::vector<Value> values_in(std::vector<Value> v) { return v; }
template <std::size_t N>
std::vector<Value> values_in(const std::array<Value, N>& v) {
  return {v.begin(), v.end()};
}
inline std::vector<Value> values_in(const std::pair<Value, Value>& v) {
  return {v.first, v.second};
}

template <class T>
struct LiftedResult {
  using type = std::vector<Array>;
  static type from(std::vector<Array> all) { return all; }
};
template <>
struct LiftedResult<Value> {
  using type = Array;
  static type from(const std::vector<Array>& all) { return all[0]; }
};
template <std::size_t N>
struct LiftedResult<std::array<Value, N>> {
  using type = std::array<Array, N>;
  static type from(const std::vector<Array>& all) {
    type out;
    for (std::size_t i = 0; i < N; ++i) out[i] = all[i];
    return out;
  }
};
template <>
struct LiftedResult<std::pair<Value, Value>> {
  using type = std::pair<Array, Array>;
  static type from(const std::vector<Array>& all) { return {all[0], all[1]}; }
};

template <class>
using ValueFor = Value;

template <class Build, class... A>
[[nodiscard]] auto lift_at(std::source_location where, Build& build, const A&... arrays) {
  using Given = std::decay_t<std::invoke_result_t<Build&, ValueFor<A>...>>;
  const std::array<Array, sizeof...(A)> operands = {Array(arrays)...};
  const Pieces run = [](void* f, Graph&, std::span<const Value> v) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return values_in((*static_cast<Build*>(f))(v[I]...));
    }(std::make_index_sequence<sizeof...(A)>());
  };
  void* context = const_cast<void*>(static_cast<const void*>(&build));  // NOLINT: handed back as is
  return LiftedResult<Given>::from(lift_pieces(operands, run, context, where));
}

}  // namespace detail

/// What `build` builds of one value per array, as arrays: one, or as many as it gives.
template <class Build, std::convertible_to<Array> A>
  requires std::invocable<Build&, Value>
[[nodiscard]] auto lift(Build&& build, const A& a, Here where = Here::current()) {
  return detail::lift_at(where, build, a);
}
template <class Build, std::convertible_to<Array> A, std::convertible_to<Array> B>
  requires std::invocable<Build&, Value, Value>
[[nodiscard]] auto lift(Build&& build, const A& a, const B& b, Here where = Here::current()) {
  return detail::lift_at(where, build, a, b);
}
template <class Build, std::convertible_to<Array> A, std::convertible_to<Array> B,
          std::convertible_to<Array> C>
  requires std::invocable<Build&, Value, Value, Value>
[[nodiscard]] auto lift(Build&& build, const A& a, const B& b, const C& c,
                        Here where = Here::current()) {
  return detail::lift_at(where, build, a, b, c);
}
/// Of more arrays; messages do not say where it was called.
template <class Build, std::convertible_to<Array> A, std::convertible_to<Array> B,
          std::convertible_to<Array> C, std::convertible_to<Array> D,
          std::convertible_to<Array>... More>
  requires std::invocable<Build&, Value, Value, Value, Value, detail::ValueFor<More>...>
[[nodiscard]] auto lift(Build&& build, const A& a, const B& b, const C& c, const D& d,
                        const More&... more) {
  return detail::lift_at({}, build, a, b, c, d, more...);
}

}  // namespace ricci
