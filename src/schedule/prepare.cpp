// What the scheduler is given: a graph of primitives, structured ops the device claims, and loops.
#include "ricci/build/build.h"
#include "ricci/op/ops.h"
#include "ricci/rewrite/canonicalize.h"
#include "ricci/rewrite/cleanup.h"
#include "ricci/rule/expand.h"
#include "ricci/schedule/program.h"

#include "rewrite/replace_nodes.h"
#include "type/small_dtype.h"

namespace ricci {
namespace {

// How many elements a reduction combines.
std::int64_t combined_count(const op::Reduce& op, const Type& type) {
  std::int64_t n = 1;
  for (const Axis& a : op.axes) n *= type.dims[static_cast<std::size_t>(a.value)].value();
  return n;
}

// Means and log-sum-exps by sums, in f32 where the dtype is smaller.
NewResults reduced_by_sums(const NodeVisit& v) {
  const auto* op = v.node.op.as<op::Reduce>();
  if (op == nullptr || (op->op != ReduceKind::Mean && op->op != ReduceKind::LogSumExp)) {
    return std::nullopt;
  }
  Value x = v.operands[0];
  const DType dtype = x.dtype();
  if (is_complex(dtype)) return std::nullopt;
  if (is_small_float(dtype)) x = cast(x, {.to = DType::F32});
  const auto over = [&](Value of, ReduceKind kind, bool keep) {
    return reduce(of, {.op = kind, .axes = op->axes, .keep_dim = keep});
  };
  Value result;
  if (op->op == ReduceKind::Mean) {
    const Value total = over(x, ReduceKind::Sum, op->keep_dim);
    const auto count = static_cast<double>(combined_count(*op, x.type()));
    const Value divisor = v.graph().constant(Tensor::splat({x.dtype(), {}}, count));
    result = div(total, divisor);
  } else {
    const Value largest = over(x, ReduceKind::Max, true);
    const Value zero = v.graph().constant(Tensor::splat({x.dtype(), {}}, 0.0));
    const Value finite = is_finite(largest);
    const Value shift = where(finite, largest, zero);
    const Value shifted = sub(x, shift);
    const Value powers = exp(shifted);
    const Value total = over(powers, ReduceKind::Sum, op->keep_dim);
    const Value back = reshape(shift, {.new_shape = total.dims()});
    const Value log_total = log(total);
    result = add(log_total, back);
  }
  if (is_small_float(dtype)) result = cast(result, {.to = dtype});
  return std::vector{result};
}

bool must_expand(const Graph& graph, const Node& node, const ProgramOptions& options) {
  if (!has_expansion(node.op.kind()) || node.op.is<op::Checkpoint>()) return false;
  if (options.claims != nullptr && options.claims(graph, node)) return false;
  return true;
}

PassResult expand_unclaimed(const Graph& graph, const ProgramOptions& options) {
  return replace_nodes(
      graph, "prepare_for_device",
      [&](const NodeVisit& v) -> NewResults {
        if (must_expand(v.rebuild.from(), v.node, options)) {
          return expand_node(v.node, v.operands, v.graph());
        }
        return reduced_by_sums(v);
      },
      [&](const Graph& body) { return expand_unclaimed(body, options); });
}

// A function with rules of its own is, once differentiated, the function.
PassResult inline_functions(const Graph& graph) {
  return replace_nodes(graph, "inline_functions", [](const NodeVisit& v) -> NewResults {
    if (!v.node.op.is<op::CustomFn>()) return std::nullopt;
    return inline_subgraph(*v.node.body("fwd"), v.operands, v.graph());
  });
}

PassResult inline_checkpoints(const Graph& graph) {
  return replace_nodes(graph, "inline_checkpoints", [](const NodeVisit& v) -> NewResults {
    if (!v.node.op.is<op::Checkpoint>()) return std::nullopt;
    return expand_node(v.node, v.operands, v.graph());
  });
}

Graph tidied(Graph graph) {
  graph = dead_code_elimination(graph).graph;
  graph = canonicalize(graph).graph;
  graph = common_subexpression_elimination(graph).graph;
  return dead_code_elimination(graph).graph;
}

}  // namespace

Graph prepare_for_device(const Graph& graph, const ProgramOptions& options) {
  Graph now = tidied(graph);
  while (true) {
    PassResult functions = inline_functions(now);
    PassResult expanded = expand_unclaimed(functions.graph, options);
    now = std::move(expanded.graph);
    if (!functions.changed && !expanded.changed) break;
  }
  now = tidied(constant_folding(now).graph);
  // What a checkpoint computes again must not be merged with what it computed first: no merging of
  // common subexpressions from here on.
  while (true) {
    PassResult inlined = inline_checkpoints(now);
    now = std::move(inlined.graph);
    if (!inlined.changed) break;
  }
  return dead_code_elimination(now).graph;
}

}  // namespace ricci
