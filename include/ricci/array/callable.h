// How functions of functions call what they are given: with trees whose leaves are placeholders.
// What is here is for ricci/array/{function,transform,control}.h.
#pragma once

#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "ricci/array/array.h"
#include "ricci/array/tree.h"
#include "ricci/op/leaf.h"

namespace ricci {
class Graph;
}

namespace ricci::detail {

struct Trace;
struct Callee;

// The parameters of a function, where it has one signature only.
template <class F>
struct Signature {};
template <class R, class... P>
struct Signature<R (*)(P...)> {
  using Parameters = std::tuple<std::decay_t<P>...>;
  static constexpr bool GivesNothing = std::is_void_v<R>;
};
template <class R, class... P>
struct Signature<R (*)(P...) noexcept> : Signature<R (*)(P...)> {};
// Call operators, in all forms that a named function has.
template <class R, class C, class... P>
struct Signature<R (C::*)(P...)> : Signature<R (*)(P...)> {};
template <class R, class C, class... P>
struct Signature<R (C::*)(P...) noexcept> : Signature<R (*)(P...)> {};
template <class R, class C, class... P>
struct Signature<R (C::*)(P...)&> : Signature<R (*)(P...)> {};
template <class R, class C, class... P>
struct Signature<R (C::*)(P...) & noexcept> : Signature<R (*)(P...)> {};
template <class R, class C, class... P>
struct Signature<R (C::*)(P...) const> : Signature<R (*)(P...)> {};
template <class R, class C, class... P>
struct Signature<R (C::*)(P...) const noexcept> : Signature<R (*)(P...)> {};
template <class R, class C, class... P>
struct Signature<R (C::*)(P...) const&> : Signature<R (*)(P...)> {};
template <class R, class C, class... P>
struct Signature<R (C::*)(P...) const & noexcept> : Signature<R (*)(P...)> {};
template <class F>
concept OneCallOperator = requires { &F::operator(); } && !requires { typename F::Parameters; };
template <OneCallOperator F>
struct Signature<F> : Signature<decltype(&F::operator())> {};
// Functions made of others say what those take.
template <class F>
  requires requires { typename F::Parameters; }
struct Signature<F> {
  using Parameters = typename F::Parameters;
};
template <class F>
concept WithSignature = requires { typename Signature<F>::Parameters; };

// The arguments of a call as the function takes them: its own types where they are known (a number
// becomes the Array that is asked for), those given otherwise.
template <class F, class... A>
struct ArgumentsOf {
  using type = std::tuple<std::decay_t<A>...>;
};
template <WithSignature F, class... A>
struct ArgumentsOf<F, A...> {
  using type = typename Signature<F>::Parameters;
};
template <class F>
inline constexpr bool GivesNothing = false;
template <class F>
  requires requires { Signature<F>::GivesNothing; }
inline constexpr bool GivesNothing<F> = Signature<F>::GivesNothing;

// Checked where functions are called, so that a wrong call is refused there in a few lines.
template <class Parameters, class... A>
inline constexpr bool AreArguments = false;
template <class... P, class... A>
  requires(sizeof...(P) == sizeof...(A))
inline constexpr bool AreArguments<std::tuple<P...>, A...> =
    (std::convertible_to<const A&, P> && ...);
template <class F, class... A>
concept TakesArguments = !WithSignature<F> || AreArguments<typename Signature<F>::Parameters, A...>;

/// A function that can be called only where it may change: a mutable lambda.
template <class F>
inline constexpr bool ChangesItself = false;
template <OneCallOperator F>
  requires WithSignature<F>
inline constexpr bool ChangesItself<F> = []<class... P>(std::tuple<P...>*) {
  return !std::is_invocable_v<const F&, P&...> && std::is_invocable_v<F&, P&...>;
}(static_cast<typename Signature<F>::Parameters*>(nullptr));

/// A base that hands the parameters of F on, where they are known.
template <class F>
struct SignedAs {};
template <WithSignature F>
struct SignedAs<F> {
  using Parameters = typename Signature<F>::Parameters;
};
/// Lists in the place of arguments, f({a, b}): a template cannot tell what they are meant to be. A
/// call without them is the template's, which fits any argument at least as well.
template <class Self, class Parameters>
struct TakesLists {
  void operator()(const TakesLists&) const = delete;
};
template <class Self, class... P>
  requires(sizeof...(P) > 0)
struct TakesLists<Self, std::tuple<P...>> {
  auto operator()(const P&... args) const {
    return static_cast<const Self&>(*this).template operator()<const P&...>(args...);
  }
};
template <class F>
struct ParametersOf {
  using type = void;
};
template <WithSignature F>
struct ParametersOf<F> {
  using type = typename Signature<F>::Parameters;
};

template <class F, class... A>
using Arguments = typename ArgumentsOf<std::decay_t<F>, A...>::type;

template <class F, class Args>
struct ResultOf;
template <class F, class... P>
struct ResultOf<F, std::tuple<P...>> {
  static_assert(std::is_invocable_v<F&, P&...>,
                "the function cannot be called with these arguments");
  using type = std::decay_t<std::invoke_result_t<F&, P&...>>;
  static_assert(!std::is_void_v<type>, "the function gives nothing back");
};
template <class F, class Args>
using Result = typename ResultOf<F, Args>::type;

/// What draws from the default generator may do inside a traced function.
enum class TraceScope : std::uint8_t {
  Once,  ///< it is traced each time it is called: draws are made outside
  Jit,   ///< it is traced once and called often: draws become inputs
  Many,  ///< one trace stands for many calls: draws would all be the same
  /// As Once; and all that is computed in it stays in it, even what depends on captures only.
  Branch,
};

/// A function that was traced: a graph and what it captured, its last inputs.
struct TracedFunction {
  std::shared_ptr<const Callee> callee;
  std::vector<Array> captures;
};

/// One call of a function with placeholders, from construction to `end`.
class Tracing {
 public:
  Tracing(std::string_view what, TraceScope scope, std::source_location where);
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;
  ~Tracing();

  /// A placeholder of an array's type; it stays a number where that is one.
  Array placeholder(const Array& like);
  Array placeholder(const Type& type);
  /// Calls `f` with placeholders for the leaves of `args`.
  template <class F, class Args>
  auto call(F& f, const Args& args) {
    Args copy = args;
    const std::vector<Array> marks = placeholders(leaves(args));
    Refill(marks).visit(copy);
    return std::apply(f, copy);
  }
  /// The placeholders so far, in order.
  [[nodiscard]] const std::vector<Array>& inputs() const noexcept { return inputs_; }
  /// Numbers that every call draws anew; see `TraceScope::Jit`.
  [[nodiscard]] const std::vector<Array>& seeds() const noexcept { return seeds_; }
  Array add_seed();
  [[nodiscard]] TraceScope scope() const noexcept { return scope_; }
  [[nodiscard]] const Trace& trace() const noexcept { return *trace_; }
  [[nodiscard]] Tracing* outer() const noexcept { return outer_; }

  /// The function as a graph, with an input per placeholder, seed and captured array. Names are
  /// those of the placeholders; missing ones are made up.
  [[nodiscard]] TracedFunction finish(std::span<const Array> results,
                                      std::span<const std::string> names = {});
  /// No placeholder is to be seen again.
  void end();

 private:
  std::vector<Array> placeholders(std::span<const Array> like);

  std::shared_ptr<Trace> trace_;
  TraceScope scope_;
  Tracing* outer_;
  std::shared_ptr<Trace> claimed_by_;  // before this one
  std::vector<Array> inputs_;
  std::vector<Array> seeds_;
};

/// The traces under way on this thread, innermost first.
[[nodiscard]] Tracing* innermost_trace() noexcept;

/// Numbers get the dtype they have on their own.
[[nodiscard]] std::vector<Array> strong(std::span<const Array> arrays, std::source_location where);
template <class T>
[[nodiscard]] T strong_tree(const T& tree, std::source_location where) {
  return with_leaves(tree, strong(leaves(tree), where));
}

/// Names of the inputs of a function with these arguments: `c1.w`, `x0`, …
template <class Args>
[[nodiscard]] std::vector<std::string> argument_names(const Args& args);
[[nodiscard]] std::vector<std::string> argument_names(std::vector<std::string> paths);
template <class Args>
std::vector<std::string> argument_names(const Args& args) {
  return argument_names(leaf_names(args));
}

/// A call of a traced function.
[[nodiscard]] std::vector<Array> call(const TracedFunction& f, std::span<const Array> arguments,
                                      std::source_location where);
/// Its graph, to look at.
[[nodiscard]] const Graph& graph_of(const TracedFunction& f);

/// A function traced with a tuple of trees, and a result to be filled with others.
template <class R>
struct TracedTree {
  TracedFunction function;
  R result;
};
template <class F, class Args>
[[nodiscard]] auto trace_tree(std::string_view what, TraceScope scope, F& f, const Args& args,
                              std::source_location where) {
  Tracing tracing(what, scope, where);
  using R = Result<F, Args>;
  const R result = tracing.call(f, args);
  const std::vector<Array> results = strong(leaves(result), where);
  const std::vector<std::string> names = argument_names(args);
  TracedFunction function = tracing.finish(results, names);
  const std::vector<Array> nothing(results.size(), Array(0));
  return TracedTree<R>{std::move(function), with_leaves(result, nothing)};
}

}  // namespace ricci::detail
