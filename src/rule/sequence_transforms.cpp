// Reverse rules and batching of the recurrences.
#include "ricci/compiler/rule/expand.h"
#include "ricci/op/sequence.h"

#include "rule/derivative_parts.h"
#include "rule/tables/batch_rules.h"
#include "rule/tables/vjp_rules.h"

namespace ricci::rule {
namespace {

// The operands of a backward op: the forward's, the cotangent of its output (zeros when only the
// final state has one) and that of the final state, if there is one.
std::vector<Value> backward_operands(const VjpContext& c) {
  std::vector<Value> out(c.operands().begin(), c.operands().end());
  out.push_back(c.cotangent_or_zero(0));
  if (c.cotangent(1).valid()) out.push_back(c.cotangent(1));
  return out;
}

}  // namespace

Cotangents vjp(const op::SelectiveScan& op, const VjpContext& c) {
  const op::SelectiveScanBackward backward{.state_size = op.state_size,
                                           .has_initial_state = c.size() > 5,
                                           .has_final_cotangent = c.cotangent(1).valid()};
  return add_wanted(c.graph(), Op(backward), backward_operands(c), c.needs());
}

Cotangents vjp(const op::GatedDeltaNet& op, const VjpContext& c) {
  const op::GatedDeltaNetBackward backward{.state_size = op.state_size,
                                           .carry_state = op.carry_state,
                                           .has_final_cotangent = c.cotangent(1).valid()};
  return add_wanted(c.graph(), Op(backward), backward_operands(c), c.needs());
}

namespace {

// Every operand has rows of its own, so a batch is more rows. `shared` is the one that has none.
BatchedValues batch_rows(Op op, const VmapContext& c, std::optional<std::size_t> shared = {}) {
  std::vector<Value> operands;
  for (std::size_t k = 0; k < c.size(); ++k) operands.push_back(k == shared ? c[k] : c.folded(k));
  BatchedValues out = c.emit(std::move(op), operands);
  for (std::size_t r = 0; r < out.size(); ++r) {
    if (out[r].value.valid()) out[r].value = c.unfolded(out[r].value, r);
  }
  return out;
}

BatchedValues batch_expansion(const VmapContext& c) {
  return c.through([&](Graph& g, std::span<const Value> operands) {
    return expand_node(c.node(), {operands.begin(), operands.end()}, g);
  });
}

}  // namespace

// All rows share one `a`; when examples have their own, the loop over time is batched instead. It
// sums in the kernel's order.
BatchedValues batch(const op::SelectiveScan& op, const VmapContext& c) {
  return c.batched(2) ? batch_expansion(c) : batch_rows(Op(op), c, 2);
}

// The same when examples have a gradient of `a` of their own.
BatchedValues batch(const op::SelectiveScanBackward& op, const VmapContext& c) {
  return c.batched(2) || c.node().wanted[2] ? batch_expansion(c) : batch_rows(Op(op), c, 2);
}

BatchedValues batch(const op::GatedDeltaNet& op, const VmapContext& c) {
  return batch_rows(Op(op), c);
}
BatchedValues batch(const op::GatedDeltaNetBackward& op, const VmapContext& c) {
  return batch_rows(Op(op), c);
}

}  // namespace ricci::rule
