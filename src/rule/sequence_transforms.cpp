// Reverse rules and batching of the recurrences.
#include "ricci/build/build.h"
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

std::vector<Value> folded_operands(const VmapContext& c) {
  std::vector<Value> out;
  for (std::size_t k = 0; k < c.size(); ++k) out.push_back(c.folded(k));
  return out;
}

// Every operand has rows of its own, so a batch is more rows.
BatchedValues batch_rows(Op op, const VmapContext& c) {
  return c.unfolded(c.emit(std::move(op), folded_operands(c)));
}

// So it is for a scan whose rows have each their own `a`, or share one. Where the rows of an
// example share one, and examples have their own, or a gradient of their own, all rows get theirs.
BatchedValues batch_scan(Op op, const VmapContext& c, bool gradient_of_a) {
  const bool by_row = c.type(2).rank() == 3;
  if (by_row) return batch_rows(std::move(op), c);
  std::vector<Value> operands;
  for (std::size_t k = 0; k < c.size(); ++k) operands.push_back(k == 2 ? c[k] : c.folded(k));
  if (!c.batched(2) && !gradient_of_a) return c.unfolded(c.emit(std::move(op), operands));
  const Dims& a = c.type(2).dims;
  const Dim& rows = c.type(0).dims[0];
  const Value each = reshape_to(c.lifted(2), {c.batch(), 1, a[0], a[1]});
  operands[2] =
      reshape_to(broadcast_to(each, {c.batch(), rows, a[0], a[1]}), {c.batch() * rows, a[0], a[1]});
  BatchedValues out = c.emit(std::move(op), operands);
  for (std::size_t r = 0; r < out.size(); ++r) {
    Value& v = out[r].value;
    if (!v.valid()) continue;
    const bool of_a = gradient_of_a && r == 2;
    v = of_a ? sum(reshape_to(v, {c.batch(), rows, a[0], a[1]}), {1}) : c.unfolded(v, r);
  }
  return out;
}

}  // namespace

BatchedValues batch(const op::SelectiveScan& op, const VmapContext& c) {
  return batch_scan(Op(op), c, false);
}
BatchedValues batch(const op::SelectiveScanBackward& op, const VmapContext& c) {
  return batch_scan(Op(op), c, c.node().wanted[2]);
}

BatchedValues batch(const op::GatedDeltaNet& op, const VmapContext& c) {
  return batch_rows(Op(op), c);
}
BatchedValues batch(const op::GatedDeltaNetBackward& op, const VmapContext& c) {
  return batch_rows(Op(op), c);
}

}  // namespace ricci::rule
