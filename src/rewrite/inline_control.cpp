#include "rewrite/inline_control.h"

#include <algorithm>

#include <fmt/format.h>

#include "ricci/build/build.h"
#include "ricci/compiler/rewrite/control_flow.h"

#include "op/loop_layout.h"

namespace ricci {

NewResults both_branches(const NodeVisit& v) {
  if (!v.node.op.is<op::If>()) return std::nullopt;
  const Value predicate = reshape_to(v.operands[0], {});
  const std::span<const Value> captures = std::span(v.operands).subspan(1);
  const std::vector<Value> yes = inline_subgraph(*v.node.body("then"), captures, v.graph());
  const std::vector<Value> no = inline_subgraph(*v.node.body("else"), captures, v.graph());
  std::vector<Value> results(yes.size());
  for (std::size_t r = 0; r < results.size(); ++r) {
    if (v.node.wanted[r]) results[r] = where(predicate, yes[r], no[r]);
  }
  return results;
}

namespace {

// Every element of a condition is non-zero, as a bool of rank 0.
Value all_true(Value condition) {
  if (condition.dtype() != DType::Bool) condition = ne(condition, scalar_like(condition, 0));
  Axes axes;
  for (std::size_t i = 0; i < condition.rank(); ++i)
    axes.emplace_back(static_cast<std::int64_t>(i));
  if (axes.empty()) return condition;
  return reduce(condition, {.op = ReduceKind::All, .axes = axes});
}

// A while written out, trip by trip, with the results besides its carries that are wanted.
class UnrolledWhile {
 public:
  UnrolledWhile(const NodeVisit& visit, std::int64_t bound)
      : visit_(visit), bound_(bound), state_(visit.operands), tapes_(visit.operands.size()) {
    const auto& op = *visit.node.op.as<op::While>();
    stride_ = tape_stride(bound, op.num_checkpoints);
  }

  std::vector<Value> run() {
    for (std::int64_t t = 0; t < bound_; ++t) trip(t);
    std::vector<Value> results(visit_.node.types.size());
    std::ranges::copy(state_, results.begin());
    const std::size_t count = state_.size();
    if (wanted(count)) results[count] = trips_.valid() ? trips_ : zeros(i32());
    for (std::size_t k = 0; k < count; ++k) {
      if (wanted(count + 1 + k)) results[count + 1 + k] = tape(k);
    }
    return results;
  }

 private:
  [[nodiscard]] bool wanted(std::size_t r) const {
    return r < visit_.node.wanted.size() && visit_.node.wanted[r];
  }
  [[nodiscard]] Value zeros(const Type& type) const { return filled(visit_.graph(), type, 0); }

  void trip(std::int64_t t) {
    const Value go =
        all_true(inline_subgraph(*visit_.node.body("cond"), state_, visit_.graph())[0]);
    active_ = active_.valid() ? logical_and(active_, go) : go;
    if (wanted(state_.size())) {
      const Value one = cast(active_, {.to = DType::I32});
      trips_ = trips_.valid() ? trips_ + one : one;
    }
    for (std::size_t k = 0; k < state_.size() && t % stride_ == 0; ++k) {
      if (!wanted(state_.size() + 1 + k)) continue;
      tapes_[k].push_back(where(active_, state_[k], zeros(state_[k].type())));
    }
    const std::vector<Value> next =
        inline_subgraph(*visit_.node.body("body"), state_, visit_.graph());
    for (std::size_t k = 0; k < state_.size(); ++k) state_[k] = where(active_, next[k], state_[k]);
  }

  // The rows of trips, and zeros for rows no trip can reach.
  Value tape(std::size_t k) const {
    const Type& type = visit_.node.types[state_.size() + 1 + k];
    std::vector<Value> rows;
    Dims row_dims = type.dims;
    row_dims[0] = 1;
    for (const Value& row : tapes_[k]) rows.push_back(reshape_to(row, row_dims));
    while (std::cmp_less(rows.size(), type.dims[0].value()))
      rows.push_back(zeros(type.with(row_dims)));
    if (rows.empty()) return zeros(type);
    return rows.size() == 1 ? rows[0] : concat(rows, {.axis = 0});
  }

  const NodeVisit& visit_;
  std::int64_t bound_;
  std::int64_t stride_ = 1;
  std::vector<Value> state_;
  std::vector<std::vector<Value>> tapes_;  // per carry, one row per stride of trips
  Value active_;                           // has the condition held so far?
  Value trips_;
};

NewResults written_out_while(const NodeVisit& v) {
  const auto* op = v.node.op.as<op::While>();
  if (op == nullptr) return std::nullopt;
  if (!op->max_iterations) {
    throw UserError(Diagnostic{ErrorCode::UnboundedLoop,
                               {},
                               "a 'while' without max_iterations cannot be unrolled",
                               v.node.provenance ? v.node.provenance->where : SourcePosition{},
                               {},
                               "give the loop a bound: {max_iterations = …}"});
  }
  check_written_out(v, *op->max_iterations, {v.node.body("cond"), v.node.body("body")});
  return UnrolledWhile(v, *op->max_iterations).run();
}

NewResults inlined_function(const NodeVisit& v) {
  if (!v.node.op.is<op::CustomFn>()) return std::nullopt;
  if (v.node.body("vjp") != nullptr || v.node.body("jvp") != nullptr) return std::nullopt;
  return inline_subgraph(*v.node.body("fwd"), v.operands, v.graph());
}

}  // namespace

PassResult inline_if(const Graph& graph) {
  return replace_nodes(graph, "inline_if", both_branches);
}

PassResult unroll_while(const Graph& graph) {
  return replace_nodes(graph, "unroll_while", written_out_while);
}

PassResult lower_control_flow(const Graph& graph) {
  PassResult branches = inline_if(graph);
  PassResult loops = unroll_while(branches.graph);
  if (!loops.changed) return branches;
  return {std::move(loops.graph), branches.map.then(loops.map), true};
}

PassResult inline_custom_fn_for_autodiff(const Graph& graph) {
  return replace_nodes(graph, "inline_custom_fn_for_autodiff", inlined_function);
}

}  // namespace ricci
