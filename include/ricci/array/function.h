// Compiled functions of arrays.
//
//   auto step = jit([](const Net& net, Array x) { return net(x); });
//   Array y = step(net, x);             // traced and compiled for the types of net and x, once
//
// A function takes and gives trees of arrays (ricci/array/tree.h). It is called with placeholders
// to see what it does; what it captures stays what it was then. Static values in its arguments
// (numbers it takes as numbers, strings, enums) are part of what it is compiled for.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <source_location>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "ricci/array/callable.h"
#include "ricci/ir/graph.h"

namespace ricci {

struct JitOptions {
  std::string name = "function";  ///< in messages and profiles
  /// A warning says what changed when it has been compiled this often; 0: never.
  std::size_t warn_after = 8;
};

/// Called with warnings, one line each; as it is, they go to stderr. An empty one drops them.
void set_warning_handler(std::function<void(std::string_view)> handler);

namespace detail {

/// The programs of one compiled function.
class JitCache {
 public:
  JitCache(JitOptions options, std::source_location where);
  ~JitCache();

  struct Entry;
  using EntryPtr = std::shared_ptr<Entry>;

  /// What a call is looked up by.
  [[nodiscard]] static std::vector<std::uint64_t> key_of(const Flattened& args, const void* types);
  [[nodiscard]] EntryPtr find(const std::vector<std::uint64_t>& key) const;
  /// An entry for a function traced anew; kept when it captured nothing that is being traced.
  EntryPtr add(std::vector<std::uint64_t> key, const Flattened& args,
               std::vector<std::string> names, TracedFunction function, std::size_t seeds,
               std::shared_ptr<const void> result);
  /// Runs the program, or records a call where something is being traced.
  [[nodiscard]] std::vector<Array> run(Entry& entry, std::span<const Array* const> leaves) const;
  [[nodiscard]] static const void* result_of(const Entry& entry);
  [[nodiscard]] static const Graph& graph_of(const Entry& entry);

  [[nodiscard]] const std::source_location& where() const noexcept { return where_; }
  [[nodiscard]] std::size_t compiled() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::source_location where_;
};

template <class T>
inline constexpr char TypeTag = 0;

}  // namespace detail

/// A function that is compiled for the types it is called with. Copies share their programs; any
/// number of threads may call it.
template <class F>
class Jitted : public detail::SignedAs<F> {
 public:
  Jitted(F f, JitOptions options, std::source_location where)
      : f_(std::move(f)), cache_(std::make_shared<detail::JitCache>(std::move(options), where)) {}

  template <class... A>
    requires detail::TakesArguments<F, A...>
  auto operator()(const A&... args) const {
    using Args = detail::Arguments<F, A...>;
    using R = detail::Result<const F, Args>;
    if constexpr (std::same_as<Args, std::tuple<A...>>) {
      return call<Args, R>(std::tie(args...));
    } else {
      return call<Args, R>(Args(args...));
    }
  }
  /// How many programs there are.
  [[nodiscard]] std::size_t compiled() const { return cache_->compiled(); }

 private:
  template <class Args, class R, class Given>
  R call(const Given& args) const {
    detail::Flattened flat;
    std::apply([&](const auto&... a) { (flat.visit(a), ...); }, args);
    std::vector<std::uint64_t> key = detail::JitCache::key_of(flat, &detail::TypeTag<Args>);
    detail::JitCache::EntryPtr entry = cache_->find(key);
    if (!entry) entry = trace<R>(std::move(key), flat, Args(args));
    R out = *static_cast<const R*>(detail::JitCache::result_of(*entry));
    detail::Refill(cache_->run(*entry, flat.leaves)).visit(out);
    return out;
  }

  template <class R, class Args>
  detail::JitCache::EntryPtr trace(std::vector<std::uint64_t> key, const detail::Flattened& flat,
                                   const Args& args) const {
    detail::Tracing tracing("jit", detail::TraceScope::Jit, cache_->where());
    const R result = tracing.call(f_, args);
    const std::vector<Array> results = detail::strong(leaves(result), cache_->where());
    std::vector<std::string> names = detail::argument_names(args);
    detail::TracedFunction function = tracing.finish(results, names);
    const std::vector<Array> nothing(results.size(), Array(0));
    return cache_->add(std::move(key), flat, std::move(names), std::move(function),
                       tracing.seeds().size(),
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

/// What a function does, as a graph: inputs are the leaves of its arguments, named by their fields,
/// then what it captured.
template <class F, class... A>
  requires(!std::same_as<std::decay_t<F>, Value>)
[[nodiscard]] Graph trace(F&& f, const A&... args) {
  using Args = detail::Arguments<F, A...>;
  const auto traced = detail::trace_tree("trace", detail::TraceScope::Once, f, Args(args...),
                                         std::source_location::current());
  return detail::graph_of(traced.function);
}

/// A graph as a function: arrays for its inputs and params, in order of creation.
[[nodiscard]] std::vector<Array> call(const Graph& graph, std::span<const Array> arguments,
                                      std::source_location where = std::source_location::current());

}  // namespace ricci
