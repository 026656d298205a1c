#include "schedule/wide_sums.h"

#include <algorithm>
#include <optional>

#include "ricci/build/build.h"
#include "ricci/compiler/rule/lower.h"
#include "ricci/op/ops.h"

#include "op/kinds.h"
#include "rewrite/replace_nodes.h"
#include "type/small_dtype.h"

namespace ricci::schedule {
namespace {

struct Plan {
  std::size_t axis = 0;       // the last that is reduced
  std::int64_t together = 1;  // rows of it that become one
  std::int64_t columns = 1;   // behind it
};

// As many rows as a long row may have, of which all rows are a multiple.
std::int64_t rows_together(std::int64_t rows, std::int64_t columns, const KernelShape& shape) {
  for (std::int64_t k = shape.longest_wide_row / columns; k * columns >= shape.shortest_wide_row;
       --k) {
    if (rows % k == 0 && rows / k >= shape.least_wide_rows) return k;
  }
  return 1;
}

std::optional<Plan> plan_for(const Graph& graph, const Node& node, const KernelShape& shape) {
  const auto* op = node.op.as<op::Reduce>();
  if (op == nullptr || op->axes.empty() || is_by_others(op->op)) return std::nullopt;
  // What is seen through a view is not one row behind the other.
  const Node& from = graph.node(node.operands[0].node);
  if (!from.is_leaf() && lower_node(graph, from).form == Lowering::Form::View) return std::nullopt;
  const StaticDims dims = graph.type(node.operands[0]).static_dims();
  Plan plan;
  for (const Axis a : op->axes) plan.axis = std::max(plan.axis, a.index());
  for (std::size_t a = plan.axis + 1; a < dims.size(); ++a) plan.columns *= dims[a];
  if (plan.columns < 2 || plan.columns >= shape.few_columns) return std::nullopt;
  plan.together = rows_together(dims[plan.axis], plan.columns, shape);
  return plan.together > 1 ? std::optional(plan) : std::nullopt;
}

// Smaller floats are summed in f32 and rounded once.
Value reduced(const op::Reduce& op, const Plan& plan, Value x, const Type& type) {
  if (is_small_float(type.dtype)) x = cast(x, {.to = DType::F32});
  Dims dims = x.dims();
  dims.resize(plan.axis);
  dims.emplace_back(x.dims()[plan.axis].value() / plan.together);
  dims.emplace_back(plan.together * plan.columns);
  const Value long_rows = reduce(reshape_to(x, dims), {.op = op.op, .axes = op.axes});
  Dims parts = long_rows.dims();
  parts.pop_back();
  const auto axis = static_cast<std::int64_t>(parts.size());
  parts.emplace_back(plan.together);
  parts.emplace_back(plan.columns);
  Value out = reduce(reshape_to(long_rows, parts), {.op = op.op, .axes = {axis}});
  if (is_small_float(type.dtype)) out = cast(out, {.to = type.dtype});
  return reshape_to(out, type.dims);
}

}  // namespace

Change widen_sums(const Graph& graph, const KernelShape& shape) {
  const auto concerns = [&](const Graph& in, const Node& node) {
    return plan_for(in, node, shape).has_value();
  };
  const auto widened = [&](const NodeVisit& v) -> NewResults {
    const auto plan = plan_for(v.rebuild.from(), v.node, shape);
    return std::vector{reduced(*v.node.op.as<op::Reduce>(), *plan, v.operands[0], v.node.types[0])};
  };
  return replace_where(graph, "prepare_for_device", concerns, widened);
}

}  // namespace ricci::schedule
