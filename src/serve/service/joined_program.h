// A program for calls that wait together: those that give arrays of the same shapes are one run of
// the program under vmap, which reads the weights once for all of them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ricci/runtime/compiled_graph.h"
#include "ricci/runtime/session.h"

namespace ricci::serve {

using KeptValues = std::vector<std::pair<std::string, Tensor>>;

class JoinedProgram {
 public:
  /// Inputs and params that have a value in `kept` are the same for all calls.
  JoinedProgram(const Graph& graph, Session session, KeptValues kept);

  [[nodiscard]] const CompiledGraph& single() const noexcept { return single_; }
  [[nodiscard]] bool is_kept(std::string_view name) const;
  /// Do two calls fit into one run? Not where the program draws numbers: each call has draws of its
  /// own, by its seed.
  [[nodiscard]] bool can_join(const Feeds& a, const Feeds& b) const;
  /// One call after the other's results. Of several, which fit, all are what they are alone but for
  /// the order of sums; a fault of one of them is the fault of all. Not for two threads at once.
  [[nodiscard]] std::vector<Outputs> run(std::span<const Feeds* const> calls,
                                         const RunOptions& options);

 private:
  [[nodiscard]] const CompiledGraph& several();

  Graph graph_;
  Session session_;
  KeptValues kept_;
  CompiledGraph single_;
  std::optional<CompiledGraph> several_;  // made when it is needed first
  bool joins_ = true;
};

}  // namespace ricci::serve
