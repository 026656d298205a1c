// Functions of functions: derivatives, batches, what is kept for a gradient, rules of one's own.
//
//   auto g = grad(loss)(net, batch);                     // a Net of gradients
//   auto [value, dw] = value_and_grad<1>(f)(x, w);       // by position
//   Array h = hessian(f)(x);
//   Array y = vmap(f, {.in_axes = {0, {}}})(xs, w);
//
// They take any function of trees of arrays and give functions again, so they compose, to any
// order, with each other, with loops and with `jit`. What a function captures, values of functions
// around it included, is seen by all of them.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "ricci/array/blocks.h"
#include "ricci/array/callable.h"
#include "ricci/array/map_axis.h"
#include "ricci/build/control.h"

namespace ricci {

namespace detail {

using Places = std::vector<std::size_t>;

/// UserError(shape) unless the first result is one number.
void require_loss(const TracedFunction& f, std::string_view what, std::source_location where);
/// [results…, gradients of the first result by the inputs `wrt`…]; zeros for integers.
[[nodiscard]] std::vector<Array> gradients(const TracedFunction& f, std::span<const Array> args,
                                           const Places& wrt, std::source_location where);
/// [results…, their tangents…]; integers among the arguments and results have no tangent and
/// zeros.
[[nodiscard]] std::vector<Array> tangents(const TracedFunction& f, std::span<const Array> args,
                                          std::span<const Array> along, std::source_location where);
/// By result and by input of `wrt`, [shape of the result…, shape of the input…].
[[nodiscard]] std::vector<Array> jacobians(const TracedFunction& f, std::span<const Array> args,
                                           const Places& wrt, bool forward,
                                           std::source_location where);
/// By pairs of inputs of `wrt`, row by row.
[[nodiscard]] std::vector<Array> hessians(const TracedFunction& f, std::span<const Array> args,
                                          const Places& wrt, std::source_location where);
/// UserError(attr) when axes are given for more arguments than there are.
void require_axes(std::size_t given, std::size_t arguments, std::source_location where);
/// The size of the batch, and what one example is.
[[nodiscard]] Dim batch_size(std::span<const Array> leaves,
                             std::span<const std::optional<std::int64_t>> axes,
                             const std::optional<Dim>& given, std::source_location where);
[[nodiscard]] Array example_of(Tracing& tracing, const Array& batch,
                               std::optional<std::int64_t> axis);
[[nodiscard]] std::vector<Array> batched(const TracedFunction& f, std::span<const Array> args,
                                         std::span<const std::optional<std::int64_t>> axes,
                                         const Dim& size,
                                         std::span<const std::optional<std::int64_t>> out_axes,
                                         std::source_location where);
[[nodiscard]] std::vector<Array> checkpointed(const TracedFunction& f, std::span<const Array> args,
                                              const CheckpointOptions& options,
                                              std::source_location where);

/// The half of a derivative that is linear, ready to be called often.
struct LinearMap {
  TracedFunction function;       ///< of residuals, then of what it is linear in
  std::vector<Array> residuals;  ///< held, so that they are computed once
  std::vector<bool> takes;       ///< which cotangents (or tangents) it asks for
  std::vector<Type> given;       ///< types of those
  std::vector<Type> types;       ///< of what it gives
  bool all_results = false;      ///< it gives something for integers too
  [[nodiscard]] std::vector<Array> operator()(std::span<const Array> given,
                                              std::source_location where) const;
};
struct Linearization {
  std::vector<Array> values;
  LinearMap map;
};
[[nodiscard]] Linearization linearize_vjp(const TracedFunction& f, std::span<const Array> args,
                                          std::source_location where);
[[nodiscard]] Linearization linearize_jvp(const TracedFunction& f, std::span<const Array> args,
                                          std::source_location where);

/// Bodies of a function with rules of its own; the rules are traced with what `rule_inputs` gives.
struct RuleInputs {
  std::vector<Array> arguments;
  std::vector<Array> results;
  std::vector<Array> along;  ///< cotangents of the results, or tangents of the arguments
};
[[nodiscard]] RuleInputs rule_inputs(Tracing& tracing, const TracedFunction& f,
                                     std::size_t arguments, bool reverse);
[[nodiscard]] std::vector<Array> custom_call(const TracedFunction& f, std::span<const Array> args,
                                             Tracing& tracing, const RuleInputs& inputs,
                                             std::span<const Array> rule, bool reverse,
                                             std::source_location where);

// Where the leaves of argument I lie among all.
template <std::size_t I, class Args>
[[nodiscard]] Places places_of(const Args& args) {
  std::size_t before = 0;
  std::size_t count = 0;
  std::size_t k = 0;
  std::apply(
      [&](const auto&... a) {
        (((k < I ? before : count) += k <= I ? leaves(a).size() : 0, ++k), ...);
      },
      args);
  Places out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = before + i;
  return out;
}

// Numbers among arguments become arrays where something is done to all of them.
template <class T>
using AsArray = std::conditional_t<std::is_arithmetic_v<T>, Array, T>;
template <class Args>
struct ArrayArguments;
template <class... T>
struct ArrayArguments<std::tuple<T...>> {
  using type = std::tuple<AsArray<T>...>;
};
template <class F, class... A>
using DifferentiableArguments =
    std::conditional_t<WithSignature<F>, Arguments<F, A...>,
                       typename ArrayArguments<std::tuple<std::decay_t<A>...>>::type>;

template <class T>
inline constexpr bool HasAux = false;
template <class A>
inline constexpr bool HasAux<std::pair<Array, A>> = true;

template <class Args, std::size_t I0, std::size_t... I>
auto gradient_trees(const Args& args, std::span<const Array> found) {
  std::size_t at = 0;
  const auto one = [&]<std::size_t K>(std::integral_constant<std::size_t, K>) {
    const std::size_t n = leaves(std::get<K>(args)).size();
    auto tree = with_leaves(std::get<K>(args), found.subspan(at, n));
    at += n;
    return tree;
  };
  if constexpr (sizeof...(I) == 0) {
    return one(std::integral_constant<std::size_t, I0>());
  } else {
    return std::tuple{one(std::integral_constant<std::size_t, I0>()),
                      one(std::integral_constant<std::size_t, I>())...};
  }
}

/// A function made of another one.
template <class F, class Body>
class Derived : public SignedAs<F>,
                public TakesLists<Derived<F, Body>, typename ParametersOf<F>::type> {
 public:
  using TakesLists<Derived, typename ParametersOf<F>::type>::operator();
  Derived(F f, Body body, std::source_location where)
      : f_(std::move(f)), body_(std::move(body)), where_(where) {}
  template <class... A>
    requires TakesArguments<F, A...>
  auto operator()(const A&... args) const {
    return body_(f_, where_, args...);
  }

 private:
  F f_;
  Body body_;
  std::source_location where_;
};

template <class F>
concept FunctionOfArrays = !std::same_as<std::decay_t<F>, Graph> &&
                           (std::is_class_v<F> || std::is_pointer_v<F>) && !GivesNothing<F>;

template <std::size_t I0, std::size_t... I, class F, class... A>
auto value_and_grad_of(const char* what, const F& f, std::source_location where, const A&... args) {
  using Args = DifferentiableArguments<F, A...>;
  using R = Result<const F, Args>;
  static_assert(std::same_as<R, Array> || HasAux<R>,
                "the function gives an Array, or std::pair{loss, aux}");
  const Args all = strong_tree(Args(args...), where);
  const auto traced = trace_tree(what, TraceScope::Once, f, all, where);
  require_loss(traced.function, what, where);
  Places wrt = places_of<I0>(all);
  [[maybe_unused]] const auto append = [&](const Places& more) {
    wrt.insert(wrt.end(), more.begin(), more.end());
  };
  (append(places_of<I>(all)), ...);
  const std::vector<Array> out = gradients(traced.function, leaves(all), wrt, where);
  const std::span<const Array> results(out);
  const std::size_t values = out.size() - wrt.size();
  return std::pair{with_leaves(traced.result, results.first(values)),
                   gradient_trees<Args, I0, I...>(all, results.subspan(values))};
}

}  // namespace detail

/// {value, gradient}: the gradient of the only number `f` gives by its first argument, a tree of
/// the argument's structure. `value_and_grad<1>` takes the second argument, `<0, 2>` gives a tuple.
/// A function that gives std::pair{loss, aux} has both as its value.
template <std::size_t I0 = 0, std::size_t... I, class F>
  requires detail::FunctionOfArrays<F>
[[nodiscard]] auto value_and_grad(F f,
                                  std::source_location where = std::source_location::current()) {
  const auto body = [](const F& g, std::source_location w, const auto&... args) {
    return detail::value_and_grad_of<I0, I...>("value_and_grad", g, w, args...);
  };
  return detail::Derived<F, decltype(body)>(std::move(f), body, where);
}

/// The gradient alone; {gradient, aux} for a function that gives std::pair{loss, aux}.
template <std::size_t I0 = 0, std::size_t... I, class F>
  requires detail::FunctionOfArrays<F>
[[nodiscard]] auto grad(F f, std::source_location where = std::source_location::current()) {
  const auto body = [](const F& g, std::source_location w, const auto&... args) {
    auto [value, gradient] = detail::value_and_grad_of<I0, I...>("grad", g, w, args...);
    if constexpr (detail::HasAux<decltype(value)>) {
      return std::pair{std::move(gradient), std::move(value.second)};
    } else {
      return std::move(gradient);
    }
  };
  return detail::Derived<F, decltype(body)>(std::move(f), body, where);
}

namespace detail {
// Is a tuple all arguments of a function, or the only one?
template <class F, class X>
inline constexpr bool IsArgumentList = IsA<X, std::tuple>;
template <WithSignature F, class X>
inline constexpr bool IsArgumentList<F, X> =
    IsA<X, std::tuple> && !std::same_as<typename Signature<F>::Parameters, std::tuple<X>>;

// All arguments of a function, from what a point is given as.
template <class F, class X>
struct PointOf {
  using type = DifferentiableArguments<F, X>;
};
template <class F, class... X>
  requires IsArgumentList<F, std::tuple<X...>>
struct PointOf<F, std::tuple<X...>> {
  using type = DifferentiableArguments<F, X...>;
};
}  // namespace detail

/// {value, tangent}: `f` and its derivative at `primal` along `tangent`, a tree of the same
/// structure; tuples of arguments and tangents for a function of several.
template <class F, class X, class T>
  requires detail::FunctionOfArrays<F>
[[nodiscard]] auto jvp(F f, const X& primal, const T& tangent,
                       std::source_location where = std::source_location::current()) {
  using Args = typename detail::PointOf<F, X>::type;
  static_assert(std::constructible_from<Args, const X&> && std::constructible_from<Args, const T&>,
                "point and tangent are of the function's argument, or tuples of its arguments");
  const Args args = detail::strong_tree(Args(primal), where);
  const auto traced =
      detail::trace_tree("jvp", detail::TraceScope::Once, std::as_const(f), args, where);
  const std::vector<Array> out =
      detail::tangents(traced.function, leaves(args), leaves(Args(tangent)), where);
  const std::span<const Array> results(out);
  return std::pair{with_leaves(traced.result, results.first(out.size() / 2)),
                   with_leaves(traced.result, results.subspan(out.size() / 2))};
}

namespace detail {

template <class R, class Args>
struct Pullback {
  LinearMap map;
  R result;
  Args args;
  std::source_location where;

  /// The cotangent of the argument, of the only result's structure; of all arguments as a tuple
  /// where there are several.
  auto operator()(const R& cotangent) const {
    const std::vector<Array> out = map(leaves(cotangent), where);
    if constexpr (std::tuple_size_v<Args> == 1) {
      return with_leaves(std::get<0>(args), out);
    } else {
      return with_leaves(args, out);
    }
  }
};
template <class R, class Args>
struct Pushforward {
  LinearMap map;
  R result;
  std::source_location where;

  template <class... T>
  R operator()(const T&... tangent) const {
    return with_leaves(result, map(leaves(Args(tangent...)), where));
  }
};

template <class R, class Map>
struct WithMap {
  R value;
  Map map;
};

}  // namespace detail

namespace detail {

template <class F, class... A>
[[nodiscard]] auto vjp_at(std::source_location where, const F& f, const A&... args) {
  using Args = DifferentiableArguments<F, A...>;
  const Args all = strong_tree(Args(args...), where);
  auto traced = trace_tree("vjp", TraceScope::Once, f, all, where);
  using R = decltype(traced.result);
  Linearization split = linearize_vjp(traced.function, leaves(all), where);
  using Map = Pullback<R, Args>;
  return WithMap<R, Map>{with_leaves(traced.result, split.values),
                         Map{std::move(split.map), traced.result, all, where}};
}
template <class F, class... A>
[[nodiscard]] auto linearize_at(std::source_location where, const F& f, const A&... args) {
  using Args = DifferentiableArguments<F, A...>;
  const Args all = strong_tree(Args(args...), where);
  auto traced = trace_tree("linearize", TraceScope::Once, f, all, where);
  using R = decltype(traced.result);
  Linearization split = linearize_jvp(traced.function, leaves(all), where);
  using Map = Pushforward<R, Args>;
  return WithMap<R, Map>{with_leaves(traced.result, split.values),
                         Map{std::move(split.map), traced.result, where}};
}
template <class A>
concept Argument = !std::same_as<A, std::source_location>;

}  // namespace detail

/// {value, pullback}: pullback(cotangent) gives the cotangents of the arguments, any number of
/// times, without running `f` again.
template <detail::FunctionOfArrays F, detail::Argument A>
[[nodiscard]] auto vjp(F f, const A& a, Here where = Here::current()) {
  return detail::vjp_at(where, f, a);
}
template <detail::FunctionOfArrays F, detail::Argument A, detail::Argument B>
[[nodiscard]] auto vjp(F f, const A& a, const B& b, Here where = Here::current()) {
  return detail::vjp_at(where, f, a, b);
}
template <detail::FunctionOfArrays F, detail::Argument A, detail::Argument B, detail::Argument C>
[[nodiscard]] auto vjp(F f, const A& a, const B& b, const C& c, Here where = Here::current()) {
  return detail::vjp_at(where, f, a, b, c);
}
/// Of more arguments; messages do not say where it was called.
template <detail::FunctionOfArrays F, detail::Argument A, detail::Argument B, detail::Argument C,
          detail::Argument D, detail::Argument... More>
[[nodiscard]] auto vjp(F f, const A& a, const B& b, const C& c, const D& d, const More&... more) {
  return detail::vjp_at({}, f, a, b, c, d, more...);
}

/// {value, pushforward}: pushforward(tangents…) gives the tangent of the result, any number of
/// times, without running `f` again.
template <detail::FunctionOfArrays F, detail::Argument A>
[[nodiscard]] auto linearize(F f, const A& a, Here where = Here::current()) {
  return detail::linearize_at(where, f, a);
}
template <detail::FunctionOfArrays F, detail::Argument A, detail::Argument B>
[[nodiscard]] auto linearize(F f, const A& a, const B& b, Here where = Here::current()) {
  return detail::linearize_at(where, f, a, b);
}
template <detail::FunctionOfArrays F, detail::Argument A, detail::Argument B, detail::Argument C>
[[nodiscard]] auto linearize(F f, const A& a, const B& b, const C& c,
                             Here where = Here::current()) {
  return detail::linearize_at(where, f, a, b, c);
}
/// Of more arguments; messages do not say where it was called.
template <detail::FunctionOfArrays F, detail::Argument A, detail::Argument B, detail::Argument C,
          detail::Argument D, detail::Argument... More>
[[nodiscard]] auto linearize(F f, const A& a, const B& b, const C& c, const D& d,
                             const More&... more) {
  return detail::linearize_at({}, f, a, b, c, d, more...);
}

/// hvp(f)(x, v, more…): the Hessian of `f` by x, times v; both trees of one structure. Forward over
/// reverse.
template <class F>
  requires detail::FunctionOfArrays<F>
[[nodiscard]] auto hvp(F f, std::source_location where = std::source_location::current()) {
  return [f = std::move(f), where](const auto& x, const auto& v, const auto&... more) {
    using Args = detail::DifferentiableArguments<F, std::decay_t<decltype(x)>,
                                                 std::decay_t<decltype(more)>...>;
    using Point = std::tuple_element_t<0, Args>;
    const auto gradient = [&](const Point& at) {
      return detail::value_and_grad_of<0>("hvp", f, where, at, more...).second;
    };
    return jvp(gradient, Point(x), Point(v), where).second;
  };
}

namespace detail {

// One derivative for every leaf of the result and every leaf of the argument, in the structure of
// whichever is no single Array; of both, as blocks.
template <class Rows, class Columns>
auto in_structure(const Rows& rows, const Columns& columns, std::vector<Array> blocks) {
  if constexpr (std::same_as<Rows, Array>) {
    return with_leaves(columns, blocks);
  } else if constexpr (std::same_as<Columns, Array>) {
    return with_leaves(rows, blocks);
  } else {
    return Blocks<Rows, Columns>{rows, columns, std::move(blocks)};
  }
}

template <std::size_t I, bool Forward, class F, class... A>
auto jacobian_of(const char* what, const F& f, std::source_location where, const A&... args) {
  using Args = DifferentiableArguments<F, A...>;
  const Args all = strong_tree(Args(args...), where);
  const auto traced = trace_tree(what, TraceScope::Once, f, all, where);
  return in_structure(traced.result, std::get<I>(all),
                      jacobians(traced.function, leaves(all), places_of<I>(all), Forward, where));
}

}  // namespace detail

/// The Jacobian by the first argument (`jacfwd<1>`: the second), [shape of the result…, shape of
/// the argument…]: a pass forward an element of the argument. Of a struct of results, or by one, it
/// is a struct of such; of structs by structs it is `Blocks`.
template <std::size_t I = 0, class F>
  requires detail::FunctionOfArrays<F>
[[nodiscard]] auto jacfwd(F f, std::source_location where = std::source_location::current()) {
  const auto body = [](const F& g, std::source_location w, const auto&... args) {
    return detail::jacobian_of<I, true>("jacfwd", g, w, args...);
  };
  return detail::Derived<F, decltype(body)>(std::move(f), body, where);
}
/// The same with a pass backward an element of the result.
template <std::size_t I = 0, class F>
  requires detail::FunctionOfArrays<F>
[[nodiscard]] auto jacrev(F f, std::source_location where = std::source_location::current()) {
  const auto body = [](const F& g, std::source_location w, const auto&... args) {
    return detail::jacobian_of<I, false>("jacrev", g, w, args...);
  };
  return detail::Derived<F, decltype(body)>(std::move(f), body, where);
}

/// Second derivatives of one number by the first argument (`hessian<1>`: the second): by an Array
/// [its shape…, its shape…], by a struct `Blocks` of such.
template <std::size_t I = 0, class F>
  requires detail::FunctionOfArrays<F>
[[nodiscard]] auto hessian(F f, std::source_location where = std::source_location::current()) {
  const auto body = [](const F& g, std::source_location w, const auto&... args) {
    using Args = detail::DifferentiableArguments<F, std::decay_t<decltype(args)>...>;
    const Args all = detail::strong_tree(Args(args...), w);
    const auto traced = detail::trace_tree("hessian", detail::TraceScope::Once, g, all, w);
    detail::require_loss(traced.function, "hessian", w);
    const auto& by = std::get<I>(all);
    return detail::in_structure(
        by, by, detail::hessians(traced.function, leaves(all), detail::places_of<I>(all), w));
  };
  return detail::Derived<F, decltype(body)>(std::move(f), body, where);
}

/// `f` for every example of a batch, as one program.
template <class F>
  requires detail::FunctionOfArrays<F>
[[nodiscard]] auto vmap(F f, MapOptions options = {},
                        std::source_location where = std::source_location::current()) {
  const auto body = [options = std::move(options)](const F& g, std::source_location w,
                                                   const auto&... args) {
    using Args = detail::DifferentiableArguments<F, std::decay_t<decltype(args)>...>;
    const Args all = detail::strong_tree(Args(args...), w);
    std::vector<std::optional<std::int64_t>> axes;
    std::size_t k = 0;
    const auto add_axes = [&](const auto& a) {
      const MapAxis axis = options.in_axes.empty()      ? MapAxis(0)
                           : k < options.in_axes.size() ? options.in_axes[k]
                                                        : MapAxis();
      const auto found = axis.of(a, w);
      axes.insert(axes.end(), found.begin(), found.end());
      ++k;
    };
    std::apply([&](const auto&... a) { (add_axes(a), ...); }, all);
    detail::require_axes(options.in_axes.size(), k, w);
    const std::vector<Array> given = leaves(all);
    const Dim size = detail::batch_size(given, axes, options.size, w);
    detail::Tracing tracing("vmap", detail::TraceScope::Many, w);
    std::vector<Array> examples;
    for (std::size_t i = 0; i < given.size(); ++i) {
      examples.push_back(detail::example_of(tracing, given[i], axes[i]));
    }
    Args inner = with_leaves(all, examples);
    auto result = std::apply(g, inner);
    const detail::TracedFunction traced =
        tracing.finish(detail::strong(leaves(result), w), detail::argument_names(all));
    const auto out_axes = options.out_axes.of(result, w);
    return with_leaves(std::move(result), detail::batched(traced, given, axes, size, out_axes, w));
  };
  return detail::Derived<F, decltype(body)>(std::move(f), body, where);
}

/// `f`, whose inner values a gradient computes again instead of keeping them.
template <class F>
  requires detail::FunctionOfArrays<F>
[[nodiscard]] auto checkpoint(F f, const CheckpointOptions& options = {},
                              std::source_location where = std::source_location::current()) {
  const auto body = [options](const F& g, std::source_location w, const auto&... args) {
    using Args = detail::Arguments<F, std::decay_t<decltype(args)>...>;
    const Args all = detail::strong_tree(Args(args...), w);
    const auto traced = detail::trace_tree("checkpoint", detail::TraceScope::Branch, g, all, w);
    return with_leaves(traced.result,
                       detail::checkpointed(traced.function, leaves(all), options, w));
  };
  return detail::Derived<F, decltype(body)>(std::move(f), body, where);
}
namespace detail {

template <bool Reverse, class F, class Rule, class... A>
auto custom_of(const char* what, const F& f, const Rule& rule, std::source_location where,
               const A&... args) {
  using Args = DifferentiableArguments<F, A...>;
  const Args all = strong_tree(Args(args...), where);
  const auto traced = trace_tree(what, TraceScope::Once, f, all, where);
  using R = std::decay_t<decltype(traced.result)>;
  const std::vector<Array> given = leaves(all);
  Tracing tracing(what, TraceScope::Once, where);
  const RuleInputs in = rule_inputs(tracing, traced.function, given.size(), Reverse);
  const Args primals = with_leaves(all, in.arguments);
  const R results = with_leaves(traced.result, in.results);
  const auto found = [&] {
    if constexpr (Reverse) {
      const R cotangent = with_leaves(traced.result, in.along);
      return std::apply([&](const auto&... p) { return rule(p..., results, cotangent); }, primals);
    } else {
      const Args along = with_leaves(all, in.along);
      return std::apply(rule, std::tuple_cat(primals, along));
    }
  }();
  return with_leaves(traced.result, custom_call(traced.function, given, tracing, in,
                                                strong(leaves(found), where), Reverse, where));
}

}  // namespace detail

/// `f` with a reverse rule of its own: rule(arguments…, result, cotangent) gives the cotangent of
/// the argument, or a tuple of those of all arguments. The rule is about the arguments: by what it
/// captures, values of functions around it too, `f` is differentiated as any function is.
template <class F, class Rule>
  requires detail::FunctionOfArrays<F>
[[nodiscard]] auto custom_vjp(F f, Rule rule,
                              std::source_location where = std::source_location::current()) {
  const auto body = [rule = std::move(rule)](const F& g, std::source_location w,
                                             const auto&... args) {
    return detail::custom_of<true>("custom_vjp", g, rule, w, args...);
  };
  return detail::Derived<F, decltype(body)>(std::move(f), body, where);
}

/// `f` with a forward rule of its own: rule(arguments…, tangents…) gives the tangent of the result.
/// Gradients are by the rule too: it is linear in the tangents, and they take its transpose.
template <class F, class Rule>
  requires detail::FunctionOfArrays<F>
[[nodiscard]] auto custom_jvp(F f, Rule rule,
                              std::source_location where = std::source_location::current()) {
  const auto body = [rule = std::move(rule)](const F& g, std::source_location w,
                                             const auto&... args) {
    return detail::custom_of<false>("custom_jvp", g, rule, w, args...);
  };
  return detail::Derived<F, decltype(body)>(std::move(f), body, where);
}

}  // namespace ricci
