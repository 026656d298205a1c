#include "rule/control/influence.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "ricci/compiler/rule/vjp.h"
#include "ricci/op/control.h"
#include "ricci/op/table.h"

#include "op/loop_layout.h"

namespace ricci::rule {
namespace {

bool lets_pass(const Node& node) {
  return !node.operands.empty() && descriptor(node.op.kind()).vjp != RuleSource::Zero;
}

bool carries(const Graph& graph, const Node& node, std::size_t k) {
  return carries_derivative(graph.registry(), node, k, graph.type(node.operands[k]));
}

// A node's operands and results, the values of its bodies, and the ways between them.
class Ways {
 public:
  Ways(const Graph& graph, const Node& node)
      : operands_(fresh(node.operands.size())), results_(fresh(node.types.size())) {
    add(graph, node, operands_, results_);
  }

  [[nodiscard]] std::vector<bool> forwards(const std::vector<bool>& operands) {
    return walk(operands_, operands, results_);
  }
  [[nodiscard]] std::vector<bool> backwards(const std::vector<bool>& results) {
    for (auto& [from, to] : ways_) std::swap(from, to);
    return walk(results_, results, operands_);
  }

 private:
  using Place = std::size_t;
  using Places = std::vector<Place>;

  Places fresh(std::size_t count) {
    Places out(count);
    for (Place& p : out) p = places_++;
    return out;
  }
  void link(Place from, Place to) { ways_.emplace_back(from, to); }
  void link(std::span<const Place> from, std::span<const Place> to) {
    for (std::size_t i = 0; i < std::min(from.size(), to.size()); ++i) link(from[i], to[i]);
  }

  void add(const Graph& graph, const Node& node, std::span<const Place> operands,
           std::span<const Place> results) {
    if (!lets_pass(node)) return;
    // What carries no derivative is a place of its own, from or to which no way leads.
    Places in(operands.begin(), operands.end());
    for (std::size_t k = 0; k < in.size(); ++k) {
      if (!carries(graph, node, k)) in[k] = places_++;
    }
    Places out(results.begin(), results.end());
    for (std::size_t r = 0; r < out.size(); ++r) {
      if (!gives_derivative(node, r)) out[r] = places_++;
    }
    if (node.op.is<op::If>()) {
      add_body(*node.body("then"), std::span(in).subspan(1), out);
      add_body(*node.body("else"), std::span(in).subspan(1), out);
    } else if (node.op.is<op::Checkpoint>()) {
      add_body(*node.body("body"), in, out);
    } else if (const auto* scan = node.op.as<op::Scan>()) {
      const std::size_t count = ScanLayout(*scan).carries;
      link(add_loop(*node.body("body"), in, count), out);
      // A loop that may make no step hands its carries through.
      const bool may_be_empty = !scan->length.is_static() || scan->length.is(0);
      if (may_be_empty) link(std::span(in).first(count), out);
    } else if (node.op.is<op::While>()) {
      // Final values, the number of trips, and the tapes of the carries.
      const Places ends = add_loop(*node.body("body"), in, in.size());
      link(in, ends);
      link(ends, out);
      if (out.size() > in.size()) link(ends, std::span(out).subspan(in.size() + 1));
    } else {  // with rules of its own: all to all
      const Place middle = places_++;
      for (const Place p : in) link(p, middle);
      for (const Place p : out) link(middle, p);
    }
  }

  // The outputs of a loop's body, of which the first are the next values of its first inputs.
  Places add_loop(const Graph& body, const Places& operands, std::size_t count) {
    const Places inputs = fresh(operands.size());
    const Places outputs = fresh(body.outputs().size());
    link(operands, inputs);
    link(std::span(outputs).first(count), inputs);
    add_body(body, inputs, outputs);
    return outputs;
  }

  void add_body(const Graph& body, std::span<const Place> inputs, std::span<const Place> outputs) {
    std::vector<Place> first;  // of each node's results
    for (const Node& node : body.nodes()) {
      first.push_back(places_);
      places_ += node.types.size();
    }
    const std::vector<NodeId> ids = body.inputs();
    for (std::size_t i = 0; i < std::min(ids.size(), inputs.size()); ++i) {
      if (is_differentiable(body.type({ids[i], 0}).dtype)) link(inputs[i], first[ids[i]]);
    }
    for (NodeId id = 0; id < body.size(); ++id) {
      const Node& node = body.nodes()[id];
      Places operands;
      for (const ValueId v : node.operands) operands.push_back(first[v.node] + v.result);
      Places results;
      for (std::size_t r = 0; r < node.types.size(); ++r) results.push_back(first[id] + r);
      add(body, node, operands, results);
    }
    for (std::size_t o = 0; o < std::min(body.outputs().size(), outputs.size()); ++o) {
      const ValueId v = body.outputs()[o];
      link(first[v.node] + v.result, outputs[o]);
    }
  }

  // Which of `ends` can be reached from a marked one of `starts`.
  std::vector<bool> walk(const Places& starts, const std::vector<bool>& marked,
                         const Places& ends) {
    std::ranges::sort(ways_);
    std::vector<bool> seen(places_, false);
    Places waiting;
    const auto visit = [&](Place p) {
      if (!seen[p]) waiting.push_back(p);
      seen[p] = true;
    };
    for (std::size_t i = 0; i < starts.size(); ++i) {
      if (marked[i]) visit(starts[i]);
    }
    while (!waiting.empty()) {
      const Place from = waiting.back();
      waiting.pop_back();
      for (const auto& way : std::ranges::equal_range(ways_, from, {}, &Way::first)) {
        visit(way.second);
      }
    }
    std::vector<bool> out;
    for (const Place p : ends) out.push_back(seen[p]);
    return out;
  }

  using Way = std::pair<Place, Place>;
  std::size_t places_ = 0;
  std::vector<Way> ways_;
  Places operands_;
  Places results_;
};

}  // namespace

std::vector<bool> reached_results(const Graph& graph, const Node& node,
                                  const std::vector<bool>& operands) {
  if (!node.bodies.empty()) return Ways(graph, node).forwards(operands);
  std::vector<bool> out(node.types.size(), false);
  bool any = false;
  for (std::size_t k = 0; k < operands.size() && lets_pass(node) && !any; ++k) {
    any = operands[k] && carries(graph, node, k);
  }
  for (std::size_t r = 0; r < out.size() && any; ++r) {
    out[r] = gives_derivative(node, r);
  }
  return out;
}

std::vector<bool> leading_operands(const Graph& graph, const Node& node,
                                   const std::vector<bool>& results) {
  if (!node.bodies.empty()) return Ways(graph, node).backwards(results);
  std::vector<bool> out(node.operands.size(), false);
  bool any = false;
  for (std::size_t r = 0; r < results.size() && lets_pass(node) && !any; ++r) {
    any = results[r] && gives_derivative(node, r);
  }
  for (std::size_t k = 0; k < out.size() && any; ++k) out[k] = carries(graph, node, k);
  return out;
}

}  // namespace ricci::rule
