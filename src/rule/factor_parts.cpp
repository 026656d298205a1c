#include "rule/factor_parts.h"

#include "rule/derivative_parts.h"

namespace ricci::rule {
namespace {

std::vector<Value> asked_for(std::vector<Value> all, const std::vector<bool>& wanted) {
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (!wanted[r]) all[r] = Value();
  }
  return all;
}

std::vector<Value> with_all(Graph& graph, const Node& node, std::span<const Value> operands) {
  return add_wanted(graph, node.op, operands, std::vector<bool>(node.types.size(), true));
}

}  // namespace

ForwardResults keeping_all_results(const ForwardContext& c) {
  std::vector<Value> all = with_all(c.graph, c.node, c.operands);
  return {asked_for(all, c.node.wanted), all};
}

std::vector<Value> all_results(JvpContext& c) {
  std::vector<Value> all = with_all(c.graph(), c.node(), c.operands());
  c.give_results(asked_for(all, c.node().wanted));
  return all;
}

Value zeros_like(Value v) { return broadcast_to(zero_like(v), v.dims()); }

}  // namespace ricci::rule
