// Finds what the symbols of a graph stand for from the shapes of its feeds.
#include <fmt/format.h>

#include "ricci/interp/interpreter.h"

#include "interp/leaf.h"

namespace ricci {
namespace {

class Solver {
 public:
  Solver(const Graph& graph, const Feeds& feeds, SymbolBindings known)
      : graph_(graph), feeds_(feeds), given_(known), bindings_(std::move(known)) {}

  // One size may be solvable only once another is known, so sweeps repeat until nothing is new.
  SymbolBindings solve() {
    while (sweep()) {
    }
    return std::move(bindings_);
  }

 private:
  bool sweep() {
    const std::size_t before = bindings_.size();
    for (const Node& node : graph_.nodes()) {
      const auto leaf = leaf_of(node);
      const auto it = leaf ? feeds_.find(leaf->name) : feeds_.end();
      if (it == feeds_.end() || it->second.rank() != leaf->type.rank()) continue;
      for (std::size_t i = 0; i < leaf->type.rank(); ++i) {
        meet(node, leaf->name, leaf->type.dims[i], it->second.dims()[i]);
      }
    }
    return bindings_.size() != before;
  }

  // Makes `dim` equal `size`, as far as one equation can.
  void meet(const Node& node, const std::string& leaf, const Dim& dim, std::int64_t size) {
    if (dim.is_static()) return;  // a wrong number is the feed's type error, reported there
    const Dim left = dim.bind(bindings_);
    if (const auto value = left.try_value()) {
      if (*value != size) disagree(node, leaf, dim, *value, size);
      return;
    }
    std::set<std::string> unknown;
    left.collect_symbols(unknown);
    if (unknown.size() != 1) return;
    const std::string& symbol = *unknown.begin();
    const Dim offset = left.bind({{symbol, 0}});
    const Dim slope = left.bind({{symbol, 1}}) - offset;
    if (!(left == slope * Dim::symbol(symbol) + offset)) return;  // not linear
    const auto solution = Dim::divide(Dim(size) - offset, slope);
    if (!solution || solution->value() < 0) {
      fail_feed(ErrorCode::Shape, node,
                fmt::format("'{}' is fed the size {} for '{}', which no size '{}' gives", leaf,
                            size, dim.to_string(), symbol));
    }
    bindings_.emplace(symbol, solution->value());
  }

  [[noreturn]] void disagree(const Node& node, const std::string& leaf, const Dim& dim,
                             std::int64_t known, std::int64_t size) const {
    std::set<std::string> symbols;
    dim.collect_symbols(symbols);
    bool given = true;
    for (const std::string& s : symbols) given = given && given_.contains(s);
    fail_feed(ErrorCode::Shape, node,
              fmt::format("'{}' makes the size '{}' {}, but {} made it {}", leaf, dim.to_string(),
                          size, given ? "the sizes given" : "another feed", known));
  }

  const Graph& graph_;
  const Feeds& feeds_;
  const SymbolBindings given_;
  SymbolBindings bindings_;
};

}  // namespace

SymbolBindings bindings_from_feeds(const Graph& graph, const Feeds& feeds, SymbolBindings known) {
  return Solver(graph, feeds, std::move(known)).solve();
}

}  // namespace ricci
