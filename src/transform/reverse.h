// The reverse sweep: mirrors a graph into a new one, then walks it backwards once.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "ricci/compiler/rule/vjp.h"
#include "ricci/ir/rebuild.h"
#include "ricci/transform/transformed.h"

#include "transform/dependence.h"

namespace ricci {

class Reverse {
 public:
  /// Copies `forward`; ops that have no rule of their own and lie on a path from `wrt` to an output
  /// are expanded. `residuals` are values that come from new inputs `residual_<i>` instead.
  /// `seeded` marks the outputs that will get a cotangent; nothing else is differentiated.
  /// `saving` is for scans that do not say what to keep of them.
  Reverse(const Graph& forward, const std::vector<ValueId>& wrt, const std::vector<bool>& seeded,
          const ScanSaving& saving, const std::vector<ValueId>& residuals = {});

  Reverse(const Reverse&) = delete;  // values and steps point into it
  Reverse& operator=(const Reverse&) = delete;

  [[nodiscard]] Graph& graph() noexcept { return build_->to(); }
  /// Where a value of the caller's graph is.
  [[nodiscard]] Value value(ValueId original);
  /// The cotangent of output `i`; several seeds of one value add up.
  void seed(std::size_t output, Value cotangent);
  void sweep();
  /// What arrived at a value of the caller's graph; invalid when nothing did.
  [[nodiscard]] Value cotangent(ValueId original);
  /// Why nothing arrived: a sentence and, where one is known, the node that cuts the path.
  [[nodiscard]] std::string why_missing(ValueId original) const;
  /// Sets the outputs and hands over the graph and the map from the caller's.
  [[nodiscard]] Transformed finish(const std::vector<Value>& outputs);

 private:
  struct Step {
    const Node* node = nullptr;
    std::vector<Value> operands;
    std::vector<Value> results;
    std::vector<Value> residuals;
    std::vector<bool> needs;
    std::shared_ptr<const Graph> backward;
  };

  void mirror(const std::vector<ValueId>& residuals);
  void keep(NodeId id, Step& step);
  void find_paths(const std::vector<ValueId>& ends);
  [[nodiscard]] std::vector<bool> live_results(NodeId id) const;
  void take(const Step& step);
  void accumulate(ValueId value, Value cotangent);

  std::vector<ValueId> wrt_;  // in the prepared graph
  Graph prepared_;
  IdMap to_prepared_;
  Dependence depends_;
  std::vector<bool> leads_;                // nodes a seeded output is computed from
  std::set<ValueId> reaching_;             // values a derivative passes from to a seeded output
  std::vector<std::vector<bool>> needed_;  // per operand: does it pass on the way from `wrt`?
  std::unique_ptr<const BodyTransforms> bodies_;
  std::optional<Rebuilder> build_;
  std::vector<Step> steps_;
  std::vector<std::size_t> seeded_;      // outputs
  std::map<ValueId, Value> cotangents_;  // by value of the new graph
};

}  // namespace ricci
