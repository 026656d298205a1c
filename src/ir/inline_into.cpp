#include "ricci/ir/inline_into.h"

#include <fmt/format.h>

#include "ricci/ir/rebuild.h"
#include "ricci/op/leaf.h"

namespace ricci {
namespace {

ValueId checked(const Node& leaf, std::string_view name, const Value& value) {
  if (value.type() == leaf.types[0]) return value.id();
  throw UserError(ErrorCode::Shape,
                  fmt::format("'{}' is {}, but is given {}", name, leaf.types[0].to_string(),
                              value.type().to_string()));
}

ValueId input_value(const Node& node, const op::Input& in, const Graph& source,
                    const NamedValues& inputs) {
  const auto it = inputs.find(in.name);
  if (it != inputs.end()) return checked(node, in.name, it->second);
  throw UserError(ErrorCode::Name, fmt::format("no value is given for the input '{}' of '{}'",
                                               in.name, source.name()));
}

ValueId param_value(const Node& node, const op::Param& param, Graph& target,
                    const NamedValues& params) {
  if (const auto it = params.find(param.name); it != params.end()) {
    return checked(node, param.name, it->second);
  }
  if (const auto there = target.find(param.name)) {
    return checked(node, param.name, target.value({*there, 0}));
  }
  return {target.append(node), 0};
}

}  // namespace

std::vector<Value> inline_into(Graph& target, const Graph& source, const NamedValues& inputs,
                               const NamedValues& params) {
  IdMap map(source);
  for (NodeId id = 0; id < source.size(); ++id) {
    const Node& node = source.nodes()[id];
    if (const auto* in = node.op.as<op::Input>()) {
      map.set({id, 0}, input_value(node, *in, source, inputs));
      continue;
    }
    if (const auto* param = node.op.as<op::Param>()) {
      map.set({id, 0}, param_value(node, *param, target, params));
      continue;
    }
    Node copy = node;
    for (ValueId& v : copy.operands) v = map(v).value();
    const std::size_t results = copy.types.size();
    const NodeId now = target.append(std::move(copy));
    for (std::uint32_t r = 0; r < results; ++r) map.set({id, r}, {now, r});
  }
  std::vector<Value> outputs;
  for (const ValueId v : source.outputs()) outputs.push_back(target.value(map(v).value()));
  return outputs;
}

}  // namespace ricci
