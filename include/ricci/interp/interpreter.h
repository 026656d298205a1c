// The reference interpreter: runs a graph node by node with the ops' reference kernels. It is the
// definition of what programs mean and the oracle for everything faster.
//
//   Outputs out = interpret(graph, {{"x", x}, {"w", w}});
//   out[0], out["loss"]
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ricci/ir/graph.h"
#include "ricci/support/stop.h"

namespace ricci {

/// Values for inputs and params, by name.
using Feeds = std::map<std::string, Tensor, std::less<>>;

/// The outputs of a run: a list that is also asked by name (see Graph::output_names).
class Outputs : public std::vector<Tensor> {
 public:
  using Names = std::shared_ptr<const std::vector<std::string>>;

  Outputs() = default;
  Outputs(std::vector<Tensor> values, Names names)
      : std::vector<Tensor>(std::move(values)), names_(std::move(names)) {}

  using std::vector<Tensor>::operator[];
  /// UserError(name) with suggestions when no output is called that.
  [[nodiscard]] const Tensor& operator[](std::string_view name) const&;
  [[nodiscard]] Tensor operator[](std::string_view name) && { return std::as_const(*this)[name]; }
  [[nodiscard]] std::span<const std::string> names() const& noexcept {
    return names_ == nullptr ? std::span<const std::string>() : *names_;
  }
  std::span<const std::string> names() const&& = delete;

 private:
  Names names_;
};

/// The place of a name among names of outputs; UserError(name) with suggestions.
[[nodiscard]] std::size_t output_named(std::span<const std::string> names, std::string_view name);

struct InterpretOptions {
  std::uint64_t seed = 0;  ///< the run's global seed for random ops
  /// Sizes by name; needed for symbols that the shapes of the feeds do not decide.
  SymbolBindings symbols = {};
  /// Bytes that results and the copies kernels work on may take at once; 0 means all the memory of
  /// the machine. What a run takes is known before it: nothing is allocated when it is too much.
  std::int64_t memory_limit = 0;
  /// Called with every node's results as they are made; for traces and non-finite searches.
  std::function<void(const Graph&, NodeId, std::span<const Tensor>)> observer = {};
  /// Asked between nodes, those of loops' bodies too; UserError(stopped) when it says so.
  StopToken stop = {};
};

/// Runs a graph; gives its outputs in order. Symbols are bound by the options and from the shapes
/// of the feeds. UserError when a feed is missing or has the wrong type, when a symbol stays
/// unbound, or when a kernel reports a fault or runs out of memory; it says which op and where.
[[nodiscard]] Outputs interpret(const Graph& graph, const Feeds& feeds,
                                const InterpretOptions& options = {});

/// Feeds that fit a graph: one value per input and param, in order of creation, with its declared
/// type, and what the symbols stand for.
struct CheckedFeeds {
  std::vector<Tensor> values;
  SymbolBindings bindings;
};
/// UserError as `interpret` gives it when feeds do not fit.
[[nodiscard]] CheckedFeeds check_feeds(const Graph& graph, const Feeds& feeds,
                                       const SymbolBindings& symbols = {});

/// The graph with sizes for its symbols; a refusal says which sizes they were.
[[nodiscard]] Graph bind_sizes(const Graph& graph, const SymbolBindings& bindings);

/// What the symbols of a graph stand for, given its feeds and what is known before: sizes that are
/// linear in one unknown (`2*n`, `n - 3`, `b*s` once b is known) are solved. UserError(shape) when
/// feeds disagree with each other or with what is known.
[[nodiscard]] SymbolBindings bindings_from_feeds(const Graph& graph, const Feeds& feeds,
                                                 SymbolBindings known = {});

}  // namespace ricci
