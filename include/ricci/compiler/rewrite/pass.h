// Passes: graph in, graph out. A pass never changes a graph in place; it builds a new one and says
// where every old value went. Passes keep the signature (inputs, params, outputs and their types),
// names and provenance, descend into bodies, and give the same result every time.
//
//   PassManager manager(parse_pipeline("canonicalize,dead_code_elimination"));
//   PipelineResult r = manager.run(graph);
//   ValueId moved = r.map(old).value();
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ricci/ir/rebuild.h"

namespace ricci {

struct PassResult {
  Graph graph;
  IdMap map;  ///< old values in the new graph; nothing for values that are gone
  bool changed = false;
};

enum class PassKind : std::uint8_t {
  CleanUp,    ///< takes every graph, and keeps every value to the bit
  Lowering,   ///< writes ops out in others: may need bounds or sizes, and rounds as the dtype does
  Precision,  ///< computes in other dtypes: values change as far as those round
};

struct Pass {
  std::string name;  ///< as `--passes` takes it
  std::string help;  ///< one line
  std::function<PassResult(const Graph&)> run;
  PassKind kind = PassKind::CleanUp;
};

/// Every pass with a name, in a fixed order.
[[nodiscard]] std::span<const Pass> all_passes();
/// The pass with a name, or nullptr.
[[nodiscard]] const Pass* find_pass(std::string_view name);
/// Passes by name; UserError(name) with a suggestion for a name no pass has.
[[nodiscard]] std::vector<Pass> passes_named(std::span<const std::string> names);
/// The same from `a,b,c`.
[[nodiscard]] std::vector<Pass> parse_pipeline(std::string_view list);

/// The result of a pass that found nothing to do.
[[nodiscard]] PassResult unchanged(const Graph& graph);
/// The bodies of a node after a pass has run on each; sets `changed` when it changed one.
[[nodiscard]] std::vector<Body> map_bodies(const Node& node,
                                           const std::function<PassResult(const Graph&)>& pass,
                                           bool& changed);
/// Nodes of a graph and of all its bodies.
[[nodiscard]] std::size_t count_nodes(const Graph& graph);

/// What one pass of a pipeline did.
struct PassReport {
  std::string name;
  bool changed = false;
  std::size_t nodes_before = 0;  ///< bodies included
  std::size_t nodes_after = 0;
  double seconds = 0;
};

struct PipelineResult {
  Graph graph;
  IdMap map;  ///< the passes' maps, composed
  bool changed = false;
  std::vector<PassReport> reports;
};

struct PassManagerOptions {
  bool verify_each = true;  ///< check the graph before the first pass and after every one
  /// Called after every pass; for printing and statistics.
  std::function<void(const Pass& pass, const PassResult& result)> after = {};
};

class PassManager {
 public:
  explicit PassManager(std::vector<Pass> passes, PassManagerOptions options = {});

  [[nodiscard]] std::span<const Pass> passes() const noexcept { return passes_; }
  /// Runs the passes in order. InternalError that names the pass when one breaks the graph.
  [[nodiscard]] PipelineResult run(const Graph& graph) const;

 private:
  std::vector<Pass> passes_;
  PassManagerOptions options_;
};

}  // namespace ricci
