#include "rule/rule_fault.h"

#include <fmt/format.h>

#include "ricci/op/custom.h"

namespace ricci::rule {

std::string name_in_messages(const Node& node) {
  if (const auto* custom = node.op.as<op::Custom>()) {
    return fmt::format("the op '{}' (version {})", custom->name, custom->version);
  }
  return fmt::format("'{}'", node.op.mnemonic());
}

void fail_rule(const Node& node, std::string message) {
  if (!node.op.is<op::Custom>()) throw InternalError(std::move(message));
  throw UserError(ErrorCode::Shape, std::move(message),
                  "a rule gives one value per operand or result, of its type");
}

void require_graph(const Node& node, std::string_view rule, const Value& given,
                   const Graph& graph) {
  if (&given.graph() == &graph) return;
  fail_rule(node, fmt::format("the {} rule of {} gives a value of another graph, '{}'", rule,
                              name_in_messages(node), given.graph().name()));
}

}  // namespace ricci::rule
