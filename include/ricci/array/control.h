// Control flow that is compiled: bodies are functions of trees of arrays that capture whatever is
// in sight, values of functions around them included.
//
//   auto [last, ys] = scan(h0, xs, [&](Array h, Array x) { h = tanh(matmul(h, w) + x);
//                                                          return carry_and(h, h); });
//   Array y = cond(x > 0, [&] { return x; }, [&] { return 0.1 * x; });
//
// All of them can be differentiated and batched; for a gradient of `while_loop` give it a bound.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <source_location>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "ricci/array/callable.h"
#include "ricci/array/math.h"
#include "ricci/op/control.h"

namespace ricci {

class Value;

/// What a gradient of a loop keeps of each step: `scan(h0, xs, body, {.save = Save::recompute()})`.
struct Save {
  [[nodiscard]] static ScanSaving all() { return {.policy = ScanSave::All}; }
  /// Products alone, or values of the body that have names.
  [[nodiscard]] static ScanSaving matmuls() { return {.policy = ScanSave::Matmuls}; }
  [[nodiscard]] static ScanSaving named(std::vector<std::string> names) {
    return {.policy = ScanSave::Named, .names = std::move(names)};
  }
  /// The carries: steps are run again, one by one.
  [[nodiscard]] static ScanSaving carries() { return {.policy = ScanSave::Carries}; }
  /// Some carries, as many as fit into `bytes` where that is given.
  [[nodiscard]] static ScanSaving recompute(std::optional<std::int64_t> bytes = {}) {
    return {.policy = ScanSave::Recompute, .bytes = bytes};
  }
};

struct LoopOptions {
  bool reverse = false;          ///< visit the rows last to first
  std::int64_t checkpoints = 0;  ///< carries kept for a gradient; 0 keeps all
  ScanSaving save = {};          ///< what a gradient keeps of each step
};

/// What a body of `scan` gives: the carry of the next step, and a row of the result.
template <class Carry, class Y>
[[nodiscard]] auto carry_and(Carry carry, Y y) {
  return std::pair<Carry, Y>(std::move(carry), std::move(y));
}

template <class Carry, class Ys>
struct ScanOutcome {
  Carry last;
  Ys ys;  ///< rows stacked along a new first axis
};

namespace detail {

struct Nothing {};

/// How long a scan is: UserError when the first sizes of xs differ.
[[nodiscard]] Dim scan_length(std::span<const Array> xs, const std::optional<Dim>& given,
                              std::source_location where);
[[nodiscard]] Array row_of(Tracing& tracing, const Array& xs, std::source_location where);
/// Carries whose dtype the body decides: numbers take that of what the body gives.
[[nodiscard]] std::vector<Array> settled(std::span<const Array> carries,
                                         std::span<const Array> next, std::source_location where);
struct ScanParts {
  std::vector<Array> carries, xs;           ///< operands
  std::vector<Array> carry_marks, x_marks;  ///< placeholders
  std::vector<Array> next, ys;              ///< what the body gave
  Dim length;
};
/// [last carries…, stacked ys…]
[[nodiscard]] std::vector<Array> scan_node(Tracing& tracing, const ScanParts& parts,
                                           const LoopOptions& options, std::source_location where);
[[nodiscard]] std::vector<Array> while_node(Tracing& condition, Tracing& body,
                                            std::span<const Array> carries, const Array& goes_on,
                                            std::span<const Array> next,
                                            std::optional<std::int64_t> max_iterations,
                                            std::source_location where);
[[nodiscard]] std::vector<Array> if_node(const char* what, const Array& predicate, Tracing& first,
                                         Tracing& second, std::span<const Array> then_results,
                                         std::span<const Array> else_results,
                                         std::source_location where);
/// The steps of a `fori_loop` and what it starts to count from: i32 where that holds all numbers,
/// else i64.
struct LoopRange {
  std::int64_t steps = 0;
  Array counter;
};
[[nodiscard]] LoopRange loop_range(std::int64_t first, std::int64_t last,
                                   std::source_location where);
void require_same_structure(std::size_t given, std::size_t wanted, const char* what,
                            std::source_location where);

// A body takes a carry and a row, or a carry alone.
template <class Body, class Carry, class Row>
auto call_body(Body& body, Carry& carry, Row& row) {
  if constexpr (std::is_invocable_v<Body&, Carry&, Row&>) {
    return body(carry, row);
  } else {
    return body(carry);
  }
}

template <class T>
inline constexpr bool IsLength = std::integral<T> || std::same_as<T, Dim>;
template <class Body, class Carry, class Xs>
concept ScanBody = std::invocable<Body&, Carry&, Xs&> || std::invocable<Body&, Carry&>;

// What a body gives, and what the scan gives for it.
template <class Carry, class Xs, class Body>
struct ScanTypes {
  using Given = std::decay_t<decltype(call_body(std::declval<Body&>(), std::declval<Carry&>(),
                                                std::declval<Xs&>()))>;
  static constexpr bool WithRows = IsA<Given, std::pair> && !std::same_as<Given, Carry>;
  template <class G>
  struct Rows {
    using type = Nothing;
  };
  template <class A, class B>
  struct Rows<std::pair<A, B>> {
    using type = B;
  };
  using Ys = typename Rows<std::conditional_t<WithRows, Given, void>>::type;
  using Outcome = ScanOutcome<Carry, Ys>;
};

template <class Carry, class Xs, class Body>
auto scan_of(const Carry& init, const Xs& xs, const std::optional<Dim>& length, Body& body,
             const LoopOptions& options, std::source_location where, bool again = false) ->
    typename ScanTypes<Carry, Xs, Body>::Outcome {
  using Types = ScanTypes<Carry, Xs, Body>;
  ScanParts parts;
  parts.carries = leaves(init);
  parts.xs = leaves(xs);
  parts.length = scan_length(parts.xs, length, where);
  Tracing tracing("scan", TraceScope::Many, where);
  for (const Array& x : parts.carries) parts.carry_marks.push_back(tracing.placeholder(x));
  for (const Array& x : parts.xs) parts.x_marks.push_back(row_of(tracing, x, where));
  Carry carry = with_leaves(init, parts.carry_marks);
  Xs row = with_leaves(xs, parts.x_marks);
  const auto given = call_body(body, carry, row);
  if constexpr (Types::WithRows) {
    parts.next = leaves(static_cast<const Carry&>(given.first));
    parts.ys = strong(leaves(given.second), where);
  } else {
    parts.next = leaves(static_cast<const Carry&>(given));
  }
  require_same_structure(parts.next.size(), parts.carries.size(), "the body of a scan", where);
  if (!again) {
    // Numbers that the loop starts from take the dtype that the body gives them.
    const std::vector<Array> start = settled(parts.carries, parts.next, where);
    if (!start.empty()) {
      tracing.end();
      return scan_of(with_leaves(init, start), xs, length, body, options, where, true);
    }
  }
  const std::vector<Array> out = scan_node(tracing, parts, options, where);
  const std::span<const Array> results(out);
  const Carry last = with_leaves(init, results.first(parts.carries.size()));
  if constexpr (Types::WithRows) {
    return {last, with_leaves(given.second, results.subspan(parts.carries.size()))};
  } else {
    return {last, {}};
  }
}

template <class T>
using CarryOf = std::conditional_t<std::is_arithmetic_v<T>, Array, T>;

// Values of a graph have loops of their own (ricci/build/control.h).
template <class T>
concept OfGraph = std::same_as<T, Value> || requires {
  requires std::same_as<std::remove_cv_t<typename T::value_type>, Value>;
};

// May a scan over Xs call this with the carry?
template <class Body, class Carry, class Xs>
concept ScannedBy =
    (IsLength<Xs> && std::invocable<Body&, Carry&>) || (!IsLength<Xs> && ScanBody<Body, Carry, Xs>);

}  // namespace detail

/// (carry, y_t) = body(carry, xs[t]) for every row t: {last carry, ys}. `xs` is a tree whose leaves
/// have rows along their first axis, or a number of steps. The body gives the next carry alone, or
/// carry_and(carry, y).
template <class Carry, class Xs, class Body>
  requires(!detail::OfGraph<Carry>)
[[nodiscard]] auto scan(const Carry& init, const Xs& xs, Body&& body,
                        const LoopOptions& options = {},
                        std::source_location where = std::source_location::current()) {
  using C = detail::CarryOf<Carry>;
  if constexpr (!detail::ScannedBy<Body, C, Xs>) {
    static_assert(!detail::ScannedBy<const Carry, detail::CarryOf<Xs>, std::decay_t<Body>>,
                  "the body comes last: scan(init, xs, body)");
    static_assert(detail::ScannedBy<const Carry, detail::CarryOf<Xs>, std::decay_t<Body>>,
                  "the body of a scan takes the carry and a row of xs, or the carry alone");
  } else if constexpr (detail::IsLength<Xs>) {
    return detail::scan_of(C(init), std::tuple<>(), std::optional<Dim>(xs), body, options, where);
  } else {
    return detail::scan_of(C(init), xs, std::nullopt, body, options, where);
  }
}

namespace detail {

/// Rows from, from + step, … before `to`, of every array of a tree.
[[nodiscard]] std::vector<Array> rows_of(std::span<const Array> arrays, std::int64_t from,
                                         std::int64_t to, std::int64_t step, Here where);
/// Rows of two in turn, the first one's first.
[[nodiscard]] std::vector<Array> in_turn(std::span<const Array> even, std::span<const Array> odd,
                                         Here where);
[[nodiscard]] std::vector<Array> one_by_one(std::span<const Array> first,
                                            std::span<const Array> rest, Here where);

template <class T, class F>
T associative_scan_of(F& f, const T& rows, std::int64_t n, Here where) {
  if (n < 2) return rows;
  const auto some = [&](const T& tree, std::int64_t from, std::int64_t to, std::int64_t step) {
    return with_leaves(tree, rows_of(leaves(tree), from, to, step, where));
  };
  const T pairs = f(some(rows, 0, n - 1, 2), some(rows, 1, n, 2));
  const T odd = associative_scan_of(f, pairs, n / 2, where);
  const T even =
      n == 2 ? some(rows, 0, 1, 1)
             : with_leaves(
                   rows,
                   one_by_one(leaves(some(rows, 0, 1, 1)),
                              leaves(f(some(odd, 0, (n - 1) / 2, 1), some(rows, 2, n, 2))), where));
  return with_leaves(rows, in_turn(leaves(even), leaves(odd), where));
}

}  // namespace detail

/// y[0] = xs[0], y[t] = f(y[t - 1], xs[t]) for an associative f, in log n rounds of many rows at
/// once: f takes and gives trees of rows. The first axis of the leaves is the one that is walked.
template <class F, class T>
  requires std::invocable<F&, const T&, const T&>
[[nodiscard]] T associative_scan(F&& f, const T& xs, Here where = Here::current()) {
  const T rows = detail::strong_tree(xs, where);
  const std::int64_t n = detail::scan_length(leaves(rows), std::nullopt, where).value();
  return detail::associative_scan_of(f, rows, n, where);
}

/// carry = body(i, carry) for i = first … last - 1; gives the last carry. i is an i32, or an i64
/// where that is too small.
template <class Carry, class Body>
  requires std::invocable<Body&, Array&, detail::CarryOf<Carry>&>
[[nodiscard]] auto fori_loop(std::int64_t first, std::int64_t last, Body&& body, const Carry& init,
                             const LoopOptions& options = {},
                             std::source_location where = std::source_location::current()) {
  using State = std::pair<Array, detail::CarryOf<Carry>>;
  const auto step = [&](State& s) -> std::tuple<State> {
    auto next = body(s.first, s.second);
    return {State(s.first + 1, std::move(next))};
  };
  const auto wrapped = [&](std::tuple<State>& s) { return step(std::get<0>(s)); };
  const detail::LoopRange range = detail::loop_range(first, last, where);
  const std::tuple<State> start{State(range.counter, init)};
  return std::get<0>(detail::scan_of(start, std::tuple<>(), std::optional<Dim>(range.steps),
                                     wrapped, options, where)
                         .last)
      .second;
}

struct WhileLoopOptions {
  std::optional<std::int64_t> max_iterations = {};  ///< a gradient needs a bound
};
/// carry = body(carry) as long as condition(carry) holds; gives the last carry.
template <class Carry, class Condition, class Body>
  requires(!detail::OfGraph<Carry>)
[[nodiscard]] auto while_loop(const Carry& init, Condition&& condition, Body&& body,
                              const WhileLoopOptions& options = {},
                              std::source_location where = std::source_location::current()) {
  using C = detail::CarryOf<Carry>;
  static_assert(!std::invocable<const Carry&, std::decay_t<Body>&>,
                "what the loop starts with comes first: while_loop(init, condition, body)");
  if constexpr (!std::invocable<const Carry&, std::decay_t<Body>&>) {
    static_assert(std::invocable<Condition&, C&> && std::invocable<Body&, C&>,
                  "the condition and the body of a while_loop take the carry");
  }
  if constexpr (std::invocable<Condition&, C&> && std::invocable<Body&, C&>) {
    const C start = detail::strong_tree(C(init), where);
    const std::vector<Array> carries = leaves(start);
    detail::Tracing asks("while_loop", detail::TraceScope::Many, where);
    const Array goes_on = asks.call(condition, std::tuple<C>(start));
    asks.end();
    detail::Tracing does("while_loop", detail::TraceScope::Many, where);
    const C next = does.call(body, std::tuple<C>(start));
    return with_leaves(start, detail::while_node(asks, does, carries, goes_on, leaves(next),
                                                 options.max_iterations, where));
  }
}

/// The same as `fori_loop` between bounds that are computed: how often it runs is not known before,
/// so a gradient needs a bound.
template <class Carry, class Body>
  requires std::invocable<Body&, Array&, detail::CarryOf<Carry>&>
[[nodiscard]] auto fori_loop(const Array& first, const Array& last, Body&& body, const Carry& init,
                             const WhileLoopOptions& options = {},
                             std::source_location where = std::source_location::current()) {
  using State = std::pair<Array, detail::CarryOf<Carry>>;
  return while_loop(
             State(first, init), [&](State& s) { return lt(s.first, last, where); },
             [&](State& s) {
               auto next = body(s.first, s.second);
               return State(add(s.first, 1, where), std::move(next));
             },
             options, where)
      .second;
}

namespace detail {

// What a branch gives: a tree, a number as an array.
template <class F, class... A>
using BranchResult = CarryOf<std::decay_t<std::invoke_result_t<F&, const A&...>>>;

// Both are functions of the arguments.
template <class Then, class Else, class... A>
auto branch(const char* what, const Operand& predicate, Then& then, Else& otherwise,
            const A&... args) {
  using R = BranchResult<Then, A...>;
  constexpr bool Alike = std::convertible_to<std::invoke_result_t<Else&, const A&...>, R>;
  static_assert(Alike, "all branches give values of one structure");
  if constexpr (Alike) {
    const std::source_location where = predicate.where;
    Tracing first(what, TraceScope::Branch, where);
    const R a = then(args...);
    first.end();
    Tracing second(what, TraceScope::Branch, where);
    const R b = otherwise(args...);
    second.end();
    return with_leaves(a,
                       if_node(what, predicate.array, first, second, leaves(a), leaves(b), where));
  }
}

// Arrays can be called too, with places.
template <class F, class... A>
concept BranchOf = std::invocable<F&, const A&...> && !std::convertible_to<const F&, Array>;

// How many of these are branches: functions of all that comes behind the last of them. Found from
// the end, so that no function is asked whether it takes another one.
template <class... All>
struct BranchCount {
  using Tuple = std::tuple<All...>;
  template <std::size_t K, std::size_t I, std::size_t... X>
  static constexpr bool takes(std::index_sequence<X...>) {
    return BranchOf<std::tuple_element_t<I, Tuple>, std::tuple_element_t<K + X, Tuple>...>;
  }
  template <std::size_t K, std::size_t I>  // the first I + 1 are, of what comes from K on
  static constexpr bool all() {
    if constexpr (!takes<K, I>(std::make_index_sequence<sizeof...(All) - K>())) {
      return false;
    } else if constexpr (I > 0) {
      return all<K, I - 1>();
    } else {
      return true;
    }
  }
  template <std::size_t K>
  static constexpr std::size_t count() {
    if constexpr (K == 0) {
      return 0;
    } else if constexpr (all<K, K - 1>()) {
      return K;
    } else {
      return count<K - 1>();
    }
  }
};

template <std::size_t I, class Branches, class... A>
auto switch_from(const Operand& index, Branches& branches, const A&... args) {
  auto& here = std::get<I>(branches);
  if constexpr (I + 1 == std::tuple_size_v<Branches>) {
    return BranchResult<decltype(here), A...>(here(args...));
  } else {
    const auto first = [&] { return here(args...); };
    const auto others = [&] { return switch_from<I + 1>(index, branches, args...); };
    const Array chosen = lt(index.array, static_cast<std::int64_t>(I + 1), index.where);
    return branch("switch_", Operand(chosen, index.where), first, others);
  }
}

// Branches in one container, in front of what they take.
template <class... All>
inline constexpr bool BranchList = false;
template <class List, class... A>
  requires requires(List& list) { requires BranchOf<std::remove_cvref_t<decltype(list[0])>, A...>; }
inline constexpr bool BranchList<List, A...> = true;
template <class... F, class... A>
inline constexpr bool BranchList<std::tuple<F...>, A...> = (BranchOf<F, A...> && ...);

void require_branches(std::size_t count, std::source_location where);

template <class List, class... A>
auto switch_list(const Operand& index, List& list, const A&... args) {
  if constexpr (TupleLike<std::remove_const_t<List>>) {
    return switch_from<0>(index, list, args...);
  } else {
    using R = BranchResult<decltype(list[0]), A...>;
    require_branches(list.size(), index.where);
    const auto from = [&](const auto& self, std::size_t i) -> R {
      const auto here = [&] { return R(list[i](args...)); };
      if (i + 1 == list.size()) return here();
      const auto others = [&] { return self(self, i + 1); };
      const Array chosen = lt(index.array, static_cast<std::int64_t>(i + 1), index.where);
      return branch("switch_", Operand(chosen, index.where), here, others);
    };
    return from(from, 0);
  }
}

}  // namespace detail

/// then(args…) where `predicate` is not 0, otherwise(args…) else; only one of them runs. Both give
/// the same structure; a number takes the dtype of what the other branch gives.
template <class Then, class Else, class... A>
[[nodiscard]] auto cond(const Operand& predicate, Then&& then, Else&& otherwise, const A&... args) {
  constexpr bool Callable =
      std::invocable<Then&, const A&...> && std::invocable<Else&, const A&...>;
  static_assert(Callable, "the branches of a cond are functions of what follows them");
  if constexpr (Callable) return detail::branch("cond", predicate, then, otherwise, args...);
}

/// The function with the number `index` of what follows the functions, the last one for larger
/// numbers and the first for negative ones: switch_(i, f, g, h, x). Functions may be in a tuple, or
/// in a vector when they are of one type: switch_(i, functions, x).
template <class... A>
[[nodiscard]] auto switch_(const Operand& index, A&&... functions_and_arguments) {
  using Count = detail::BranchCount<std::remove_reference_t<A>...>;
  constexpr std::size_t K = Count::template count<sizeof...(A)>();
  constexpr bool List = detail::BranchList<std::remove_cvref_t<A>...>;
  static_assert(K > 0 || List, "the branches of a switch_ are functions of what follows them");
  if constexpr (K > 0) {
    const auto all = std::forward_as_tuple(functions_and_arguments...);
    return [&]<std::size_t... F, std::size_t... X>(std::index_sequence<F...>,
                                                   std::index_sequence<X...>) {
      const auto branches = std::forward_as_tuple(std::get<F>(all)...);
      return detail::switch_from<0>(index, branches, std::as_const(std::get<K + X>(all))...);
    }(std::make_index_sequence<K>(), std::make_index_sequence<sizeof...(A) - K>());
  } else if constexpr (List) {
    return detail::switch_list(index, functions_and_arguments...);
  }
}

}  // namespace ricci
