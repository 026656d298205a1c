// Compiled functions of arrays.
//
//   auto step = jit([](const Net& net, Array x) { return net(x); });
//   Array y = step(net, x);             // traced and compiled for the types of net and x, once
//
// A function takes and gives trees of arrays (ricci/array/tree.h). It is called with placeholders
// to see what it does; what it captures stays what it was then. Static values in its arguments
// (numbers it takes as numbers, strings, enums, functions) are part of what it is compiled for.
//
//   jit(f, {.static_arguments = {1}})            // the second argument's values are compiled in
//   jit(f, {.symbolic = {{0, {"n"}}, {1, {"n"}}}})     // traced once for all sizes n
//   jit(step, {.donate = {0}}), then: net = step(std::move(net), batch);     // in place
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "ricci/array/callable.h"
#include "ricci/ir/graph.h"
#include "ricci/runtime/device.h"

namespace ricci {

/// Sizes of an argument that may vary from call to call: the first axes of its arrays, by name
/// where they may. One name is one size, wherever it stands.
struct SymbolicShape {
  std::size_t argument = 0;
  Dims shape = {};
};

struct JitOptions {
  std::string name = "function";  ///< in messages and profiles
  /// A warning says what changed when it has been compiled this often; 0: never.
  std::size_t warn_after = 8;
  /// Where it runs; absent: where arrays are computed (`use_device`).
  std::optional<Device> device = {};
  /// Positions of arguments whose arrays are known inside, as numbers are: the function may look at
  /// them, and is compiled anew for other values.
  std::vector<std::size_t> static_arguments = {};
  /// With it the function is traced once for all sizes; programs for the sizes of late are kept.
  std::vector<SymbolicShape> symbolic = {};
  /// Positions of arguments whose memory the results may take, where they are handed over with
  /// std::move and nobody else holds them. What is handed over has no value afterwards.
  std::vector<std::size_t> donate = {};
};

/// The device that computes arrays and functions which name none, from now on and for all threads.
void use_device(const Device& device);

/// Called with warnings, one line each; as it is, they go to stderr. An empty one drops them.
void set_warning_handler(std::function<void(std::string_view)> handler);

namespace detail {

/// What an argument is, for messages: a number that is compiled in, or anything else.
enum class ArgumentKind : std::uint8_t { Tree, Whole, Float };
template <class T>
inline constexpr ArgumentKind KindOfArgument = std::floating_point<T> ? ArgumentKind::Float
                                               : std::integral<T>     ? ArgumentKind::Whole
                                                                      : ArgumentKind::Tree;

/// The arguments of one call: their leaves and what is static in them, for each argument the
/// numbers behind its last ones, what it is, and whether it was handed over with std::move.
struct JitArguments {
  Flattened flat;
  std::span<const std::size_t> ends;
  std::span<const std::size_t> word_ends;
  std::span<const ArgumentKind> kinds;
  std::span<const bool> handed_over;
};

/// The programs of one compiled function.
class JitCache {
 public:
  JitCache(JitOptions options, std::source_location where);
  ~JitCache();

  struct Entry;
  using EntryPtr = std::shared_ptr<Entry>;
  using Key = std::vector<std::uint64_t>;

  /// What a call is looked up by.
  [[nodiscard]] Key key_of(const JitArguments& args, const void* types) const;
  [[nodiscard]] EntryPtr find(const Key& key) const;
  /// What the function is called with to see what it does.
  [[nodiscard]] std::vector<Array> marks(Tracing& tracing, const JitArguments& args) const;
  /// An entry for a function traced anew; kept when it captured nothing that is being traced.
  EntryPtr add(Key key, const JitArguments& args, Tracing& tracing, std::span<const Array> results,
               std::vector<std::string> names, std::shared_ptr<const void> result);
  /// Runs the program, or records a call where something is being traced.
  [[nodiscard]] std::vector<Array> run(Entry& entry, const JitArguments& args) const;
  [[nodiscard]] static const void* result_of(const Entry& entry);

  [[nodiscard]] const std::source_location& where() const noexcept { return where_; }
  [[nodiscard]] std::size_t compiled() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::source_location where_;
};

}  // namespace detail

/// A function that is compiled for the types it is called with. Copies share their programs; any
/// number of threads may call it.
template <class F>
class Jitted : public detail::SignedAs<F>,
               public detail::TakesLists<Jitted<F>, typename detail::ParametersOf<F>::type> {
  static_assert(!detail::ChangesItself<F>,
                "jit calls a function once for all calls with the same types, so it must not be "
                "mutable: take what changes as an argument and give it back");

 public:
  using detail::TakesLists<Jitted, typename detail::ParametersOf<F>::type>::operator();
  Jitted(F f, JitOptions options, std::source_location where)
      : f_(std::move(f)), cache_(std::make_shared<detail::JitCache>(std::move(options), where)) {}

  template <class... A>
    requires detail::TakesArguments<F, std::decay_t<A>...>
  auto operator()(A&&... args) const {
    using Args = detail::Arguments<F, std::decay_t<A>...>;
    using R = detail::Result<F, Args>;
    constexpr std::array<bool, sizeof...(A)> handed = {std::is_rvalue_reference_v<A&&> &&
                                                       !std::is_const_v<A>...};
    if constexpr (std::same_as<Args, std::tuple<std::remove_cvref_t<A>...>>) {
      return call<Args, R>(handed, args...);
    } else {
      Args taken(std::forward<A>(args)...);
      return std::apply([&](auto&... a) { return call<Args, R>(handed, a...); }, taken);
    }
  }
  /// How often it has been traced and compiled.
  [[nodiscard]] std::size_t compiled() const { return cache_->compiled(); }

 private:
  template <class Args, class R, class... A>
  R call(std::span<const bool> handed, A&... args) const {
    detail::Flattened flat;
    std::array<std::size_t, sizeof...(A)> ends;
    std::array<std::size_t, sizeof...(A)> word_ends;
    static constexpr std::array<detail::ArgumentKind, sizeof...(A)> Kinds = {
        detail::KindOfArgument<std::remove_cvref_t<A>>...};
    std::size_t k = 0;
    ((flat.visit(args), ends[k] = flat.leaves.size(), word_ends[k++] = flat.words.size()), ...);
    const detail::JitArguments given{std::move(flat), ends, word_ends, Kinds, handed};
    detail::JitCache::Key key = cache_->key_of(given, &detail::TypeTag<Args>);
    detail::JitCache::EntryPtr entry = cache_->find(key);
    if (!entry) entry = trace<R>(std::move(key), given, Args(std::as_const(args)...));
    R out = *static_cast<const R*>(detail::JitCache::result_of(*entry));
    detail::Refill(cache_->run(*entry, given)).visit(out);
    return out;
  }

  template <class R, class Args>
  detail::JitCache::EntryPtr trace(detail::JitCache::Key key, const detail::JitArguments& given,
                                   Args args) const {
    detail::Tracing tracing("jit", detail::TraceScope::Jit, cache_->where());
    detail::Refill(cache_->marks(tracing, given)).visit(args);
    const R result = std::apply(const_cast<F&>(f_), args);  // NOLINT: it does not change itself
    const std::vector<Array> results = detail::strong(leaves(result), cache_->where());
    const std::vector<Array> nothing(results.size(), Array(0));
    return cache_->add(std::move(key), given, tracing, results, detail::argument_names(args),
                       std::make_shared<const R>(with_leaves(result, nothing)));
  }

  F f_;
  std::shared_ptr<detail::JitCache> cache_;
};

/// `f`, compiled.
template <class F>
  requires(!detail::GivesNothing<F>)
[[nodiscard]] Jitted<F> jit(F f, JitOptions options = {},
                            std::source_location where = std::source_location::current()) {
  return Jitted<F>(std::move(f), std::move(options), where);
}

namespace detail {

/// An array without a value that functions can be traced with.
[[nodiscard]] Array stand_in(const Type& type);
template <class A>
using TracedAs = std::conditional_t<std::same_as<A, Type>, Array, A>;
template <class A>
[[nodiscard]] const A& traced_as(const A& argument) {
  return argument;
}
[[nodiscard]] inline Array traced_as(const Type& type) { return stand_in(type); }

template <class F>
concept Traceable = !std::convertible_to<F, Array> && !std::same_as<std::decay_t<F>, Value>;
template <class A>
concept NoPlace = !std::same_as<A, std::source_location>;

template <class F, class... A>
[[nodiscard]] Graph trace_at(std::source_location where, F& f, const A&... args) {
  using Args = Arguments<F, TracedAs<A>...>;
  return graph_of(
      trace_tree("trace", TraceScope::Once, f, Args(traced_as(args)...), where).function);
}

}  // namespace detail

/// What a function does, as a graph: inputs are the leaves of its arguments, named by their fields,
/// then what it captured. A Type stands for an array of it: trace(f, f32({2, 3})).
template <detail::Traceable F>
[[nodiscard]] Graph trace(F&& f, Here where = Here::current()) {
  return detail::trace_at(where, f);
}
template <detail::Traceable F, detail::NoPlace A>
[[nodiscard]] Graph trace(F&& f, const A& a, Here where = Here::current()) {
  return detail::trace_at(where, f, a);
}
template <detail::Traceable F, detail::NoPlace A, detail::NoPlace B>
[[nodiscard]] Graph trace(F&& f, const A& a, const B& b, Here where = Here::current()) {
  return detail::trace_at(where, f, a, b);
}
template <detail::Traceable F, detail::NoPlace A, detail::NoPlace B, detail::NoPlace C>
[[nodiscard]] Graph trace(F&& f, const A& a, const B& b, const C& c, Here where = Here::current()) {
  return detail::trace_at(where, f, a, b, c);
}
/// Of more arguments; messages do not say where it was called.
template <detail::Traceable F, detail::NoPlace A, detail::NoPlace B, detail::NoPlace C,
          detail::NoPlace D, detail::NoPlace... More>
[[nodiscard]] Graph trace(F&& f, const A& a, const B& b, const C& c, const D& d,
                          const More&... more) {
  return detail::trace_at({}, f, a, b, c, d, more...);
}

/// A graph as a function: arrays for its inputs and params, in order of creation.
[[nodiscard]] std::vector<Array> call(const Graph& graph, std::span<const Array> arguments,
                                      std::source_location where = std::source_location::current());

}  // namespace ricci
