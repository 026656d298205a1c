#include "backend/cpu/run/target.h"

#include "ricci/op/ops.h"

#include "backend/cpu/run/host_call.h"
#include "backend/cpu/run/plan_calls.h"
#include "backend/cpu/run/tiling.h"
#include "support/align.h"

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

  [[nodiscard]] std::int64_t alignment() const override { return CacheLine; }

  // Their operands and results are large, and what is in the nearest cache is used there.
  [[nodiscard]] bool runs_in_parts(const Op& op) const override {
    return op.is<op::Matmul>() || op.is<op::Conv>() || op.is<op::Conv2dBackwardInput>();
  }

  // Threads are started and joined once for a step. A kernel of one tile keeps one of them busy,
  // and after a few tiles some wait for the others: together they fill that time.
  [[nodiscard]] bool gains_company(const loop::Kernel& kernel) const override {
    constexpr std::int64_t FewTiles = 16;
    return tile_count(kernel) <= FewTiles;
  }
};

}  // namespace

const schedule::Target& target() {
  static const Processor processor;
  return processor;
}

}  // namespace ricci::cpu
