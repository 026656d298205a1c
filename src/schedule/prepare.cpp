// What the scheduler is given: a graph of primitives, structured ops the device claims, and loops.
#include <algorithm>

#include "ricci/build/build.h"
#include "ricci/build/reduce.h"
#include "ricci/compiler/rewrite/canonicalize.h"
#include "ricci/compiler/rewrite/cleanup.h"
#include "ricci/compiler/rule/expand.h"
#include "ricci/compiler/rule/lower.h"
#include "ricci/compiler/schedule/program.h"
#include "ricci/compiler/schedule/target.h"
#include "ricci/op/ops.h"
#include "ricci/support/stop.h"

#include "ir/empty_results.h"
#include "op/kinds.h"
#include "rewrite/replace_nodes.h"
#include "rewrite/tidy.h"
#include "rule/code_products.h"
#include "rule/conv_parts.h"
#include "rule/conv_taps.h"
#include "schedule/attention_means.h"
#include "schedule/calls.h"
#include "schedule/extremes_by_loops.h"
#include "schedule/flat_concats.h"
#include "schedule/late_values.h"
#include "schedule/light_values.h"
#include "schedule/lower_for.h"
#include "schedule/predicate.h"
#include "schedule/rows_first.h"
#include "schedule/scatter_loops.h"
#include "schedule/sums_over_rows.h"
#include "schedule/views_first.h"
#include "schedule/wide_sums.h"
#include "support/float_environment.h"
#include "support/phases.h"
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
  if (op == nullptr || !is_by_others(op->op)) {
    return std::nullopt;
  }
  Value x = v.operands[0];
  const DType dtype = x.dtype();
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

bool is_narrow_product(const op::Reduce& op, DType dtype) {
  return op.op == ReduceKind::Prod && schedule::product_in(dtype) != dtype;
}

std::vector<Value> wide_product(const op::Reduce& op, Value x) {
  const Value wide = reduce(cast(x, {.to = schedule::product_in(x.dtype())}), op);
  return {cast(wide, {.to = x.dtype()})};
}

bool is_attention(const Op& op) { return op.is<op::Attention>() || op.is<op::AttentionBackward>(); }

const schedule::Target& target_of(const ProgramOptions& options) {
  return options.target != nullptr ? *options.target : schedule::plain_target();
}

bool is_claimed(const Graph& graph, const Node& node, const ProgramOptions& options) {
  if (options.target == nullptr) return false;
  return schedule::is_claimed(*options.target, lower_node(graph, node).call, graph, node);
}

bool must_expand(const Graph& graph, const Node& node, const ProgramOptions& options) {
  if (!has_expansion(node.op.kind()) || node.op.is<op::Checkpoint>()) return false;
  if (is_attention(node.op)) return false;  // in the end: see expand_attention
  if (is_claimed(graph, node, options)) return false;
  const schedule::KernelShape& shape = target_of(options).kernel_shape();
  return schedule::lower_for(shape, graph, node).form == Lowering::Form::Call;
}

// The node's op on other operands, with the same results wanted: an invalid Value for the others.
std::vector<Value> same_op(const Node& node, std::span<const Value> operands, Graph& graph) {
  NodeSpec spec{.op = node.op, .operands = {}, .wanted = node.wanted};
  for (const Value& v : operands) spec.operands.push_back(v.id());
  const NodeId id = graph.add(std::move(spec));
  std::vector<Value> results;
  for (std::uint32_t r = 0; r < node.types.size(); ++r) {
    results.push_back(node.wanted[r] ? graph.value({id, r}) : Value());
  }
  return results;
}

// Attention in a small dtype is attention in f32, which devices have kernels for.
NewResults attention_in_f32(const NodeVisit& v) {
  std::vector<Value> wide = v.operands;
  for (Value& x : wide) {
    if (is_small_float(x.dtype())) x = cast(x, {.to = DType::F32});
  }
  std::vector<Value> results = same_op(v.node, wide, v.graph());
  for (std::size_t r = 0; r < results.size(); ++r) {
    const DType dtype = v.node.types[r].dtype;
    if (results[r].valid() && results[r].dtype() != dtype) {
      results[r] = cast(results[r], {.to = dtype});
    }
  }
  return results;
}

Value any_element(Value flags) {
  Axes all;
  for (std::size_t i = 0; i < flags.rank(); ++i) all.emplace_back(static_cast<std::int64_t>(i));
  return all.empty() ? flags : reduce_any(flags, all);
}

// Does some element of each value pass the test? The answers, joined.
template <class Test, class Join>
Value on_elements(std::span<const Value> values, Test test, Join join) {
  Value answer;
  for (const Value& x : values) {
    if (!x.valid()) continue;
    const Value found = any_element(test(x));
    answer = answer.valid() ? join(answer, found) : found;
  }
  return answer;
}

const MaskKind& mask_of(const Node& node) {
  if (const auto* forward = node.op.as<op::Attention>()) return forward->mask_kind;
  return node.op.as<op::AttentionBackward>()->mask_kind;
}

// Written out, attention multiplies a weight of zero with whatever its key has: NaN where that is
// not finite, nothing for the op itself. Where NaN comes out and an infinity went in, or a NaN that
// may be masked, the op is computed as it is; not where an operand is NaN throughout.
NewResults expanded_attention(const NodeVisit& v) {
  const auto nan = [](Value x) { return is_nan(x); };
  const auto finite = [](Value x) { return is_finite(x); };
  const auto infinite = [](Value x) { return logical_not(logical_or(is_finite(x), is_nan(x))); };
  const auto either = [](Value a, Value b) { return logical_or(a, b); };
  const auto both = [](Value a, Value b) { return logical_and(a, b); };
  std::vector<Value> fast = expand_node(v.node, v.operands, v.graph());
  const std::size_t operands = v.operands.size();
  std::vector<Value> captures = v.operands;
  for (const Value& x : fast) {
    if (x.valid()) captures.push_back(x);
  }
  const Value odd = on_elements(fast, nan, either);
  const auto floats =
      std::span<const Value>(v.operands).first(v.node.op.is<op::Attention>() ? 3 : 4);
  Value suspect = on_elements(floats, infinite, either);
  if (mask_of(v.node).kind != MaskKind::Kind::None) {
    const Value masked =
        logical_and(on_elements(floats, nan, either), on_elements(floats, finite, both));
    suspect = logical_or(suspect, masked);
  }
  const auto careful = [&](Graph& graph, std::span<const Value> in) {
    std::vector<Value> wanted;
    for (const Value& x : same_op(v.node, in.first(operands), graph)) {
      if (x.valid()) wanted.push_back(x);
    }
    return wanted;
  };
  const auto given = [&](Graph&, std::span<const Value> in) {
    return std::vector<Value>(in.begin() + static_cast<std::ptrdiff_t>(operands), in.end());
  };
  const std::vector<Value> chosen = cond(logical_and(odd, suspect), captures, careful, given);
  for (std::size_t r = 0, next = 0; r < fast.size(); ++r) {
    if (fast[r].valid()) fast[r] = chosen[next++];
  }
  return fast;
}

Change expand_unclaimed(const Graph& graph, const ProgramOptions& options) {
  const Phase phase("expand");
  const auto concerns = [&](const Graph& in, const Node& node) {
    if (is_attention(node.op)) {
      return is_small_float(in.type(node.operands[0]).dtype) && !is_claimed(in, node, options);
    }
    const auto* reduce = node.op.as<op::Reduce>();
    const bool rewritten =
        reduce != nullptr &&
        (is_by_others(reduce->op) || is_narrow_product(*reduce, in.type(node.operands[0]).dtype));
    return rewritten || node.op.is<op::StopGradient>() || schedule::is_scatter(node.op) ||
           (options.fuse && node.op.is<op::ArgReduce>()) || rule::is_by_taps(node) ||
           rule::is_by_parts(in, node) || rule::is_broadcast_code_product(in, node) ||
           must_expand(in, node, options);
  };
  return replace_where(graph, "prepare_for_device", concerns,
                       [&](const NodeVisit& v) -> NewResults {
                         if (is_attention(v.node.op)) return attention_in_f32(v);
                         // Nothing is differentiated any more: what a gradient computes behind
                         // one may be what the function has computed.
                         if (v.node.op.is<op::StopGradient>()) return v.operands;
                         if (schedule::is_scatter(v.node.op)) {
                           NewResults loops = schedule::scatter_by_loops(v, target_of(options));
                           if (loops) return loops;
                         }
                         if (v.node.op.is<op::ArgReduce>()) {
                           return schedule::extremes_by_loops(v);
                         }
                         if (NewResults parts = rule::windows_by_parts(v.node, v.operands)) {
                           return parts;
                         }
                         if (NewResults planes = rule::convolution_by_taps(v.node, v.operands)) {
                           return planes;
                         }
                         if (NewResults codes = rule::plain_code_product(v.node, v.operands)) {
                           return codes;
                         }
                         if (must_expand(v.rebuild.from(), v.node, options)) {
                           return expand_node(v.node, v.operands, v.graph());
                         }
                         const auto* reduce = v.node.op.as<op::Reduce>();
                         if (reduce != nullptr && reduce->op == ReduceKind::Prod) {
                           return wide_product(*reduce, v.operands[0]);
                         }
                         return reduced_by_sums(v);
                       });
}

// Once: what it builds has attention in it again.
Change expand_attention(const Graph& graph, const ProgramOptions& options) {
  const auto concerns = [&](const Graph& in, const Node& node) {
    return is_attention(node.op) && !is_claimed(in, node, options);
  };
  return replace_where(graph, "prepare_for_device", concerns, expanded_attention);
}

// What is empty is known: a constant, which no device has to compute.
Change drop_empty(const Graph& graph) {
  const auto concerns = [](const Graph& in, const Node& node) {
    return gives_nothing(node, node.operands.size(),
                         [&](std::size_t k) -> const Type& { return in.type(node.operands[k]); });
  };
  return replace_where(graph, "drop_empty", concerns, [](const NodeVisit& v) -> NewResults {
    std::vector<Value> results(v.node.types.size());
    for (std::size_t r = 0; r < results.size(); ++r) {
      if (v.node.wanted[r]) results[r] = v.graph().constant(Tensor::zeros(v.node.types[r]));
    }
    return results;
  });
}

// A function with rules of its own is, once differentiated, the function.
Change inline_functions(const Graph& graph) {
  const auto concerns = [](const Graph&, const Node& node) { return node.op.is<op::CustomFn>(); };
  return replace_where(graph, "inline_functions", concerns, [](const NodeVisit& v) -> NewResults {
    return inline_subgraph(*v.node.body("fwd"), v.operands, v.graph());
  });
}

Change inline_checkpoints(const Graph& graph) {
  const auto concerns = [](const Graph&, const Node& node) { return node.op.is<op::Checkpoint>(); };
  return replace_where(graph, "inline_checkpoints", concerns, [](const NodeVisit& v) -> NewResults {
    return expand_node(v.node, v.operands, v.graph());
  });
}

bool only_crops(const op::Pad& pad) {
  const auto puts_nothing = [](const Dim& n) { return n.value() <= 0; };
  return std::ranges::all_of(pad.low, puts_nothing) && std::ranges::all_of(pad.high, puts_nothing);
}

// Views have a constant outside their bounds; any other value is chosen there.
Change pad_by_choice(const Graph& graph) {
  const auto concerns = [](const Graph& in, const Node& node) {
    const auto* around = node.op.as<op::Pad>();
    return around != nullptr && !only_crops(*around) &&
           !in.node(node.operands[1].node).op.is<op::Constant>();
  };
  return replace_where(graph, "prepare_for_device", concerns, [](const NodeVisit& v) -> NewResults {
    const op::Pad& around = *v.node.op.as<op::Pad>();
    const Value& x = v.operands[0];
    const auto number = [&](DType dtype, const Dims& dims, std::int64_t n) {
      return v.graph().constant(Tensor::splat({dtype, dims}, n));
    };
    const Value inside = pad(number(DType::Bool, x.dims(), 1), number(DType::Bool, {}, 0), around);
    const Value padded = pad(x, number(x.dtype(), {}, 0), around);
    return std::vector{where(inside, padded, v.operands[1])};
  });
}

}  // namespace

Graph prepare_for_device(const Graph& graph, const ProgramOptions& options) {
  const Phase phase("prepare");
  const DefaultFloatEnvironment floats;
  Changes changes(graph);
  changes.apply(drop_empty(graph));
  changes.apply(tidy(changes.graph()));
  const auto expand = [&] {
    for (bool again = true; again;) {
      throw_if_stopped();
      again = changes.apply(inline_functions(changes.graph()));
      again = changes.apply(expand_unclaimed(changes.graph(), options)) || again;
    }
  };
  expand();
  // Where steps run at the same time, so may what the trips of a loop need not wait for.
  const bool at_once = options.memory_budget == 0 && target_of(options).unshared_bytes() > 0;
  if (at_once && changes.apply(schedule::rows_first(changes.graph()))) expand();
  changes.apply(expand_attention(changes.graph(), options));
  if (target_of(options).wants_attention_means()) {
    changes.apply(schedule::attention_means(changes.graph()));
  }
  changes.apply(drop_empty(changes.graph()));
  changes.apply(fold_constants(changes.graph()));
  changes.apply(move_invariants(changes.graph()));
  changes.apply(tidy(changes.graph()));
  if (changes.apply(join_loop_products(changes.graph()))) changes.apply(tidy(changes.graph()));
  // What a checkpoint computes again must not be merged with what it computed first: no merging of
  // common subexpressions from here on.
  while (changes.apply(inline_checkpoints(changes.graph()))) {
  }
  while (changes.apply(schedule::predicate_branches(changes.graph(), target_of(options)))) {
  }
  if (options.fuse) {
    changes.apply(schedule::flat_concats(changes.graph()));
    const schedule::Costs& costs = target_of(options).costs();
    changes.apply(schedule::light_values(changes.graph(), costs));
    changes.apply(schedule::late_values(changes.graph(), costs));
    changes.apply(schedule::views_first(changes.graph()));
    changes.apply(schedule::widen_sums(changes.graph(), target_of(options).kernel_shape()));
  }
  changes.apply(pad_by_choice(changes.graph()));
  changes.apply(drop_dead_code(changes.graph()));
  Change all = changes.take();
  return all ? std::move(all->graph) : graph;
}

}  // namespace ricci
