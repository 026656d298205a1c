#include "array/graph.h"

#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "ricci/ir/rebuild.h"
#include "ricci/op/leaf.h"
#include "ricci/support/error.h"

namespace ricci::detail {
namespace {

struct Place {
  const ArrayNode* node;
  std::uint32_t result;
  bool operator==(const Place&) const = default;
};
struct PlaceHash {
  std::size_t operator()(const Place& p) const noexcept {
    return std::hash<const void*>{}(p.node) * 31 + p.result;
  }
};
Place place_of(const Array& x) { return {x.node().get(), x.result()}; }

// Visits nodes in an order in which operands come first, without recursion. `enters` says whether a
// node's operands are visited too.
template <class Enters, class Visit>
void walk(std::span<const Array> roots, Enters enters, Visit visit) {
  struct Step {
    const Array* array;
    std::size_t next;
  };
  // Operands of what is not entered are left alone: another thread may be letting go of them.
  constexpr std::size_t NotEntered = std::numeric_limits<std::size_t>::max();
  std::unordered_set<Place, PlaceHash> seen;
  std::vector<Step> stack;
  const auto push = [&](const Array& x) {
    if (!seen.insert(place_of(x)).second) return;
    stack.push_back({&x, enters(x) ? 0 : NotEntered});
  };
  for (const Array& root : roots) {
    push(root);
    while (!stack.empty()) {
      Step& top = stack.back();
      const ArrayNode& node = *top.array->node();
      if (top.next != NotEntered && top.next < node.operands.size()) {
        push(node.operands[top.next++]);
        continue;
      }
      const Array& done = *top.array;
      stack.pop_back();
      visit(done);
    }
  }
}

[[noreturn]] void refuse_escaped(const Trace& trace, const std::string& by,
                                 std::source_location where) {
  throw UserError(Diagnostic{
      .code = ErrorCode::Refused,
      .detail = "escaped",
      .message = fmt::format("a value of the function that '{}' traced has escaped from it and is "
                             "used in '{}'",
                             trace.what, by),
      .where = SourcePosition::from(where),
      .notes = {fmt::format("'{}' was called at {}", trace.what,
                            SourcePosition::from(trace.where).to_string())},
      .help = "return it from the function; in the meantime it stands for no value"});
}

std::shared_ptr<const Provenance> provenance_of(const ArrayNode& node) {
  if (node.where.line() == 0) return nullptr;
  return std::make_shared<const Provenance>(
      Provenance{.label = {}, .where = SourcePosition::from(node.where), .origin = {}});
}

}  // namespace

void find_captures(const Trace& trace, std::span<const Array> results,
                   std::vector<Array>& captures) {
  std::unordered_set<Place, PlaceHash> known;
  for (const Array& x : captures) known.insert(place_of(x));
  const auto inside = [&](const Array& x) {
    const ArrayNode& n = *x.node();
    return n.trace ? n.trace->serial == trace.serial : n.constant;
  };
  walk(results, inside, [&](const Array& x) {
    if (inside(x) || !known.insert(place_of(x)).second) return;
    const ArrayNode& n = *x.node();
    if (n.trace && !n.trace->active.load()) refuse_escaped(*n.trace, trace.what, n.where);
    captures.push_back(x);
  });
}

void append_node(Graph& graph, const ArrayNode& node, std::span<const ValueId> operands,
                 std::vector<ValueId>& results) {
  results.clear();
  if (node.kind == ArrayNode::Kind::Call) {
    std::vector<Value> values;
    for (const ValueId v : operands) values.push_back(graph.value(v));
    for (const Value& v : inline_subgraph(node.callee->graph, values, graph)) {
      results.push_back(v.id());
    }
    return;
  }
  Node copy{
      .op = node.kind == ArrayNode::Kind::Number ? Op(op::Constant{node.values[0]}) : *node.op,
      .operands = {operands.begin(), operands.end()},
      .types = node.types.all(),
      .wanted = node.wanted,
      .names = std::vector<std::string>(node.types.size()),
      .bodies = node.bodies,
      .optional_from = node.optional_from,
      .provenance = provenance_of(node)};
  copy.wanted.resize(node.types.size(), true);
  const NodeId id = graph.append(std::move(copy));
  for (std::uint32_t r = 0; r < node.types.size(); ++r) results.push_back({id, r});
}

Graph graph_between(std::string name, std::span<const GraphInput> inputs,
                    std::span<const Array> outputs) {
  Graph graph(std::move(name));
  std::unordered_map<Place, ValueId, PlaceHash> given;
  std::unordered_map<const ArrayNode*, std::vector<ValueId>> built;
  for (const GraphInput& in : inputs) {
    const Array& x = in.array;
    const Value v = graph.input(in.name, x.node()->types[x.result()], in.role, x.node()->where);
    given.emplace(place_of(x), v.id());
  }
  const auto id_of = [&](const Array& x) {
    const auto it = given.find(place_of(x));
    return it != given.end() ? it->second : built.at(x.node().get())[x.result()];
  };
  std::vector<ValueId> results;
  walk(
      outputs, [&](const Array& x) { return !given.contains(place_of(x)); },
      [&](const Array& x) {
        const ArrayNode& n = *x.node();
        if (given.contains(place_of(x)) || built.contains(&n)) return;
        check_internal(n.kind != ArrayNode::Kind::Value && n.kind != ArrayNode::Kind::Placeholder,
                       "a leaf of a traced function is no input of its graph");
        std::vector<ValueId> operands;
        for (const Array& o : n.operands) operands.push_back(id_of(o));
        append_node(graph, n, operands, results);
        built.emplace(&n, results);
      });
  std::vector<ValueId> ids;
  for (const Array& x : outputs) ids.push_back(id_of(x));
  graph.set_outputs(std::move(ids));
  return graph;
}

}  // namespace ricci::detail
