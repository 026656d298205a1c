#include "backend/cpu/run/target.h"

#include "ricci/op/ops.h"

#include "backend/cpu/run/host_call.h"
#include "backend/cpu/run/plan_calls.h"

namespace ricci::cpu {
namespace {

class Processor final : public schedule::Target {
 public:
  [[nodiscard]] bool claims(const Graph& graph, const Node& node) const override {
    // Backward sweeps of loops are loops themselves once they are written out.
    if (!node.bodies.empty()) return false;
    return has_plan(graph, node) || host_kernel(node.op.kind()).run != nullptr;
  }

  [[nodiscard]] bool has_kernel(const Graph& graph, const Node& node) const override {
    return node.op.is<op::Matmul>() || has_plan(graph, node) ||
           host_kernel(node.op.kind()).run != nullptr;
  }
};

}  // namespace

const schedule::Target& target() {
  static const Processor processor;
  return processor;
}

}  // namespace ricci::cpu
