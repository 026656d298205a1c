#include "ricci/compat/sequence.h"

#include "build/aliases.h"

namespace ricci {
namespace {

WithState with_state(const std::vector<Value>& results) {
  results[1].graph().set_wanted(results[1].id(), true);
  return {results[0], results[1]};
}

std::vector<Value> build_carry(AliasCall& call) {
  require_operands(call, "gated_delta_net_carry", 6, 6);
  call.attrs.push_back({"carry_state", {true}});
  const WithState r = with_state(as_op<op::GatedDeltaNet>(call));
  return {r.out, r.state};
}

}  // namespace

WithState selective_scan_with_state(Value x, Value delta, Value a, Value b, Value c,
                                    op::SelectiveScan attrs, Value h0, std::source_location loc) {
  std::vector<Value> operands = {x, delta, a, b, c};
  if (h0.valid()) operands.push_back(h0);
  return with_state(x.graph().add_node(Op(std::move(attrs)), operands, {}, loc));
}

WithState gated_delta_net_carry(Value q, Value k, Value v, Value g, Value beta, Value state,
                                Dim state_size, std::source_location loc) {
  op::GatedDeltaNet attrs{.state_size = std::move(state_size), .carry_state = true};
  const std::array operands = {q, k, v, g, beta, state};
  return with_state(q.graph().add_node(Op(std::move(attrs)), operands, {}, loc));
}

AliasList sequence_aliases() {
  return {{"gated_delta_net_carry", {OpKind::GatedDeltaNet}, build_carry}};
}

}  // namespace ricci
