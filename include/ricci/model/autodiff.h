// Derivatives of modules: a module with blocks is lowered under its own policy first.
//
//   Transformed g = grad_with_loss_module(module, {"w"});        // loss, aux…, dw
//   g.map(id)                                                    // ids of the module's own graph
//
// Values are named, or given by their ids in the module's graph, blocks and all. AutodiffError:
// wrong_stage for a module that is a program for a device already, lower_failed (with its cause
// nested) for one that cannot be lowered, and whatever the transform reports.
#pragma once

#include <string_view>
#include <vector>

#include "ricci/model/module.h"
#include "ricci/transform/error.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/higher_order.h"

namespace ricci {

/// The graph of a MIR module, prepared; see prepare_graph_for_ad.
[[nodiscard]] GraphModule::Lowered prepare_mir_for_ad(const GraphModule& mir);
/// The same for a module of any stage that can be differentiated: lowered, then prepared.
[[nodiscard]] GraphModule::Lowered prepare_module_for_ad(const GraphModule& module);

/// Outputs `[loss, aux…, gradients…]`; see grad_with_loss.
[[nodiscard]] Transformed grad_with_loss_module(const GraphModule& module,
                                                const std::vector<ValueRef>& wrt,
                                                const GradOptions& options = {});
/// Outputs `[primals…, tangents…]`; see jvp.
[[nodiscard]] Transformed jvp_module(const GraphModule& module,
                                     const std::vector<ValueRef>& tangent_for);
/// Outputs `[loss, aux…, gradients…, t_loss, t_aux…, Hv…]`; see hvp.
[[nodiscard]] Transformed hvp_module(const GraphModule& module, const std::vector<ValueRef>& wrt,
                                     const HvpOptions& options = {});
/// The `order`-th derivative, the only output; see nth_order_grad.
[[nodiscard]] Transformed nth_order_grad_module(const GraphModule& module, std::string_view wrt,
                                                int order);

}  // namespace ricci
