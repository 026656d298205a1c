#include "transform/holomorphic.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "ricci/op/ops.h"
#include "ricci/transform/error.h"

#include "transform/dependence.h"

namespace ricci {
namespace {

bool any_complex(std::span<const Type> types) {
  return std::ranges::any_of(types, [](const Type& t) { return is_complex(t.dtype); });
}

bool is_holomorphic(const Graph& graph);

// Of a node a derivative passes through: what does it do to complex operands?
bool is_holomorphic(const Node& node, std::span<const Type> moving) {
  if (!any_complex(moving)) return true;
  const auto* unary = node.op.as<op::Unary>();
  if (unary != nullptr && unary->kind == UnaryKind::Conjugate) return false;
  if (node.op.has(Trait::Conjugates)) return false;
  const bool gives_reals =
      std::ranges::any_of(node.types, [](const Type& t) { return is_float(t.dtype); });
  if (node.bodies.empty()) return !gives_reals;
  return std::ranges::all_of(node.bodies, [](const Body& b) { return is_holomorphic(*b.graph); });
}

// Every node of a body, whichever of its inputs move.
bool is_holomorphic(const Graph& graph) {
  return std::ranges::all_of(graph.nodes(), [&](const Node& node) {
    std::vector<Type> operands;
    for (const ValueId v : node.operands) operands.push_back(graph.type(v));
    return is_holomorphic(node, operands);
  });
}

}  // namespace

void require_holomorphic(const Graph& graph, ValueId of, const std::string& by) {
  const ValueId leaf{graph.find_or_throw(by), 0};
  const Dependence depends(graph, std::array{leaf});
  const std::vector<bool> leads = leading_to(graph, std::array{of});
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (!leads[id] || !depends.passes(id)) continue;
    const Node& node = graph.node(id);
    std::vector<Type> moving;
    for (std::size_t k = 0; k < node.operands.size(); ++k) {
      if (depends.operands(id)[k]) moving.push_back(graph.type(node.operands[k]));
    }
    if (is_holomorphic(node, moving)) continue;
    throw AutodiffError(
        ErrorCode::Refused,
        fmt::format(
            "the derivative of {} by '{}' ({}) is no single number: '{}' is not holomorphic",
            graph.type(of).to_string(), by, graph.type(leaf).to_string(), node.op.mnemonic()),
        "make real(y) and imag(y) outputs of the graph: theirs are defined");
  }
}

}  // namespace ricci
