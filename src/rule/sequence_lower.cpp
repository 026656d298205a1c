// Recurrences over a sequence as calls.
#include "rule/tables/lower_rules.h"

namespace ricci::rule {
namespace {

loop::SelectiveScan selective_scan(loop::Pass pass, const LowerContext& c) {
  const StaticDims& x = c.operands[0];
  const StaticDims& a = c.operands[2];
  return {.pass = pass,
          .batch = x[0],
          .steps = x[1],
          .channels = x[2],
          .states = a.back(),
          .own_rates = a.size() == 3};
}

loop::GatedDelta gated_delta(loop::Pass pass, const LowerContext& c) {
  const StaticDims& k = c.operands[0];
  const StaticDims& v = c.operands[2];
  return {.pass = pass,
          .batch = v[0],
          .steps = v[1],
          .key_heads = k[2],
          .heads = v[2],
          .key_width = k[3],
          .value_width = v[3]};
}

}  // namespace

Lowering lower(const op::SelectiveScan&, const LowerContext& c) {
  loop::SelectiveScan scan = selective_scan(loop::Pass::Forward, c);
  scan.has_initial_state = c.operands.size() > 5;
  return as_call(scan);
}
Lowering lower(const op::SelectiveScanBackward& op, const LowerContext& c) {
  loop::SelectiveScan scan = selective_scan(loop::Pass::Backward, c);
  scan.has_initial_state = op.has_initial_state;
  scan.has_final_cotangent = op.has_final_cotangent;
  return as_call(scan);
}

Lowering lower(const op::GatedDeltaNet& op, const LowerContext& c) {
  loop::GatedDelta net = gated_delta(loop::Pass::Forward, c);
  net.has_initial_state = op.carry_state;
  return as_call(net);
}
Lowering lower(const op::GatedDeltaNetBackward& op, const LowerContext& c) {
  loop::GatedDelta net = gated_delta(loop::Pass::Backward, c);
  net.has_initial_state = op.carry_state;
  net.has_final_cotangent = op.has_final_cotangent;
  return as_call(net);
}

}  // namespace ricci::rule
