#include "schedule/calls.h"

#include "ricci/compiler/rule/lower.h"
#include "ricci/op/table.h"
#include "ricci/support/error.h"

namespace ricci::schedule {
namespace {

std::vector<Type> types_of(const std::vector<BufferView>& views) {
  std::vector<Type> types;
  types.reserve(views.size());
  for (const BufferView& v : views) types.push_back(v.type);
  return types;
}

std::optional<std::string> fault_in(const std::vector<Type>& given, const std::vector<Type>& made) {
  if (made.size() != given.size()) return "a call has another number of results than its op gives";
  for (std::size_t r = 0; r < made.size(); ++r) {
    if (given[r] != made[r]) return "a result of a call has another type than its op gives";
  }
  return std::nullopt;
}

}  // namespace

bool is_claimed(const Target& target, const loop::Call& call, const Graph& graph,
                const Node& node) {
  if (std::holds_alternative<loop::HostCall>(call)) return false;
  std::vector<Type> operands;
  for (const ValueId v : node.operands) operands.push_back(graph.type(v));
  return target.claims(call, operands);
}

loop::Call call_on(const Op& op, const std::vector<BufferView>& operands,
                   const std::vector<BufferView>& results) {
  return call_of(op, types_of(operands), types_of(results));
}

std::optional<std::string> find_type_fault(const Op& op, const std::vector<BufferView>& operands,
                                           const std::vector<BufferView>& results,
                                           const Registry& registry) {
  const std::vector<Type> types = types_of(operands);
  try {
    check_signature(op, types.size(), {});
    if (normalize(op, types) != op) return "a call's attributes are not in normal form";
    return fault_in(types_of(results), infer_types(op, types, {}, &registry).types);
  } catch (const Rejection& rejection) {
    return rejection.message;
  } catch (const UserError& error) {
    return error.diagnostic().message;
  }
}

double call_flops(const Program& program, const CallStep& step) {
  loop::WantedResults wanted;
  for (const BufferView& v : step.results) {
    if (v.buffer < 0) continue;
    ++wanted.count;
    wanted.elements += static_cast<double>(v.type.numel().value_or(0));
  }
  if (!std::holds_alternative<loop::HostCall>(step.call)) return flops_of(step.call, wanted);
  // What a host computes is no less than what a device would.
  const Op& op = op_of(program.reference_of(step));
  return flops_of(call_on(op, step.operands, step.results), wanted);
}

}  // namespace ricci::schedule
