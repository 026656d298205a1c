#include <algorithm>

#include "ricci/build/build.h"
#include "ricci/compiler/rewrite/unfuse.h"

#include "op/kinds.h"
#include "rewrite/replace_nodes.h"
#include "type/small_dtype.h"

namespace ricci {
namespace {

// One axis after the other, from the highest down. Narrow floats are rounded once, at the end.
Value reduced_in_turn(const op::Reduce& op, Value x) {
  const DType dtype = x.dtype();
  if (is_small_float(dtype)) x = cast(x, {.to = DType::F32});
  Axes axes = op.axes;
  std::ranges::sort(axes, std::ranges::greater{}, &Axis::index);
  for (const Axis axis : axes) x = reduce(x, {.op = op.op, .axes = {axis}, .keep_dim = true});
  return cast_to(x, dtype);
}

// The axes moved to the end and joined into one, so that every tie is seen at once.
Value reduced_together(const op::Reduce& op, Value x) {
  std::vector<bool> reduced(x.rank(), false);
  for (const Axis a : op.axes) reduced[a.index()] = true;
  Axes perm;
  Dims dims;
  Dim together = 1;
  for (const bool last : {false, true}) {
    for (std::size_t i = 0; i < x.rank(); ++i) {
      if (reduced[i] != last) continue;
      perm.emplace_back(static_cast<std::int64_t>(i));
      if (last) {
        together = together * x.dims()[i];
      } else {
        dims.push_back(x.dims()[i]);
      }
    }
  }
  dims.push_back(together);
  if (!std::ranges::is_sorted(perm, {}, &Axis::index)) x = transpose(x, {.perm = perm});
  x = reshape_to(x, dims);
  return reduce(x, {.op = op.op, .axes = {static_cast<std::int64_t>(dims.size()) - 1}});
}

}  // namespace

PassResult legalize_multi_axis_reduce(const Graph& graph) {
  return replace_nodes(graph, "legalize_multi_axis_reduce", [](const NodeVisit& v) -> NewResults {
    const auto* op = v.node.op.as<op::Reduce>();
    if (op == nullptr || op->axes.size() < 2) return std::nullopt;
    const bool ties = pick_of(op->op) != Pick::None;
    const Value out =
        ties ? reduced_together(*op, v.operands[0]) : reduced_in_turn(*op, v.operands[0]);
    return std::vector{reshape_to(out, v.node.types[0].dims)};
  });
}

PassResult lower_non_last_axis_reduce(const Graph& graph) {
  return replace_nodes(graph, "lower_non_last_axis_reduce", [](const NodeVisit& v) -> NewResults {
    const auto* op = v.node.op.as<op::Reduce>();
    if (op == nullptr || op->axes.empty()) return std::nullopt;
    const bool is_last = op->axes.size() == 1 && op->axes[0].index() + 1 == v.operands[0].rank();
    if (is_last) return std::nullopt;
    return std::vector{reshape_to(reduced_together(*op, v.operands[0]), v.node.types[0].dims)};
  });
}

}  // namespace ricci
