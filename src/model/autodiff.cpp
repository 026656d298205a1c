#include "ricci/model/autodiff.h"

#include <fmt/format.h>

#include "ricci/transform/jvp.h"
#include "ricci/transform/prepare.h"

#include "model/autodiff_stage.h"
#include "transform/autodiff_errors.h"

namespace ricci {

void model::require_differentiable(GraphStage stage, std::string_view module) {
  if (stage != GraphStage::Lir) return;
  throw AutodiffError(Diagnostic{
      ErrorCode::WrongStage,
      "autodiff",
      fmt::format("'{}' is at stage {}, which cannot be differentiated: its buffer plan cannot "
                  "describe a gradient graph that is yet to be built",
                  module, name(stage)),
      {},
      {},
      "differentiate the MIR that is kept inside the LIR, or rebuild from HIR or MIR"});
}

namespace {

// A module's MIR and its values there.
class Differentiable {
 public:
  explicit Differentiable(const GraphModule& module) : module_(module), lowered_(lowered(module)) {}

  [[nodiscard]] const Graph& graph() const { return lowered_.module.graph(); }
  [[nodiscard]] const GraphModule::Lowered& mir() const { return lowered_; }

  // [hir-ids] Ids of the module's graph become ids after lowering.
  [[nodiscard]] std::vector<ValueRef> values(const std::vector<ValueRef>& refs) const {
    std::vector<ValueRef> out;
    for (const ValueRef& ref : refs) {
      const ValueId id = ref.in(module_.graph());
      const auto now = lowered_.map(id);
      if (!now) {
        throw AutodiffError(ErrorCode::NoGradient,
                            fmt::format("the value ({}, {}) of '{}' is not computed after lowering",
                                        id.node, id.result, module_.name()));
      }
      out.emplace_back(*now);
    }
    return out;
  }

  // Maps from the module's own graph.
  [[nodiscard]] Transformed from_module(Transformed t) const {
    t.map = lowered_.map.then(t.map);
    return t;
  }

 private:
  static GraphModule::Lowered lowered(const GraphModule& module) {
    model::require_differentiable(module.stage(), module.name());
    return with_autodiff_errors([&] { return module.lower(); });
  }

  const GraphModule& module_;
  GraphModule::Lowered lowered_;
};

}  // namespace

GraphModule::Lowered prepare_mir_for_ad(const GraphModule& mir) {
  model::require_differentiable(mir.stage(), mir.name());
  PassResult prepared = prepare_graph_for_ad(mir.as_mir());
  return {GraphModule::from_mir(std::move(prepared.graph)), std::move(prepared.map)};
}

GraphModule::Lowered prepare_module_for_ad(const GraphModule& module) {
  const Differentiable d(module);
  GraphModule::Lowered prepared = prepare_mir_for_ad(d.mir().module);
  prepared.map = d.mir().map.then(prepared.map);
  return prepared;
}

Transformed grad_with_loss_module(const GraphModule& module, const std::vector<ValueRef>& wrt,
                                  const GradOptions& options) {
  const Differentiable d(module);
  return d.from_module(grad_with_loss_opts(d.graph(), d.values(wrt), options));
}

Transformed jvp_module(const GraphModule& module, const std::vector<ValueRef>& tangent_for) {
  const Differentiable d(module);
  return d.from_module(jvp(d.graph(), d.values(tangent_for)));
}

Transformed hvp_module(const GraphModule& module, const std::vector<ValueRef>& wrt,
                       const HvpOptions& options) {
  const Differentiable d(module);
  return d.from_module(hvp(d.graph(), d.values(wrt), options));
}

Transformed nth_order_grad_module(const GraphModule& module, std::string_view wrt, int order) {
  const Differentiable d(module);
  return d.from_module(nth_order_grad(d.graph(), wrt, order));
}

}  // namespace ricci
