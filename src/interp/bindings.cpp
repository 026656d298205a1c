// Finds what the symbols of a graph stand for from the shapes of its feeds.
#include <numeric>

#include <fmt/format.h>

#include "ricci/interp/interpreter.h"
#include "ricci/op/leaf.h"

#include "interp/leaf.h"

namespace ricci {
namespace {

class Solver {
 public:
  Solver(const Graph& graph, const Feeds& feeds, SymbolBindings known)
      : graph_(graph), feeds_(feeds), given_(known), bindings_(std::move(known)) {}

  // One size may be solvable only once another is known: an equation waits with the symbols in it
  // and is looked at again when one of them is found.
  SymbolBindings solve() {
    collect();
    std::vector<std::size_t> next(equations_.size());
    std::iota(next.rbegin(), next.rend(), std::size_t{0});  // the first is taken first
    while (!next.empty()) {
      const Equation& e = equations_[next.back()];
      next.pop_back();
      const auto found = meet(*e.node, *e.leaf, *e.dim, e.size);
      if (!found) continue;
      const std::vector<std::size_t>& waiting = waiting_[*found];
      next.insert(next.end(), waiting.rbegin(), waiting.rend());
    }
    return std::move(bindings_);
  }

 private:
  struct Equation {
    const Node* node;
    const std::string* leaf;
    const Dim* dim;
    std::int64_t size;
  };

  void collect() {
    for (const NodeId id : graph_.leaves()) {
      const Node& node = graph_.node(id);
      const std::string& name = *node.leaf_name();
      const Type& type = node.types[0];
      const auto it = feeds_.find(name);
      if (it == feeds_.end() || it->second.rank() != type.rank()) continue;
      for (std::size_t i = 0; i < type.rank(); ++i) {
        if (type.dims[i].is_static()) continue;  // a wrong number is the feed's type error
        std::set<std::string> symbols;
        type.dims[i].collect_symbols(symbols);
        for (const std::string& s : symbols) waiting_[s].push_back(equations_.size());
        equations_.push_back({&node, &name, &type.dims[i], it->second.dims()[i]});
      }
    }
  }

  // Makes `dim` equal `size`, as far as one equation can; gives the symbol it has found.
  std::optional<std::string> meet(const Node& node, const std::string& leaf, const Dim& dim,
                                  std::int64_t size) {
    const Dim left = dim.bind(bindings_);
    if (const auto value = left.try_value()) {
      if (*value != size) disagree(node, leaf, dim, *value, size);
      return std::nullopt;
    }
    std::set<std::string> unknown;
    left.collect_symbols(unknown);
    if (unknown.size() != 1) return std::nullopt;
    const std::string& symbol = *unknown.begin();
    const Dim offset = left.bind({{symbol, 0}});
    const Dim slope = left.bind({{symbol, 1}}) - offset;
    if (!(left == slope * Dim::symbol(symbol) + offset)) return std::nullopt;  // not linear
    const auto solution = Dim::divide(Dim(size) - offset, slope);
    if (!solution || solution->value() < 0) {
      fail_feed(ErrorCode::Shape, node,
                fmt::format("'{}' is fed the size {} for '{}', which no size '{}' gives", leaf,
                            size, dim.to_string(), symbol));
    }
    bindings_.emplace(symbol, solution->value());
    return symbol;
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
  std::vector<Equation> equations_;
  std::map<std::string, std::vector<std::size_t>, std::less<>> waiting_;  // by symbol
};

}  // namespace

SymbolBindings bindings_from_feeds(const Graph& graph, const Feeds& feeds, SymbolBindings known) {
  return Solver(graph, feeds, std::move(known)).solve();
}

}  // namespace ricci
