#include <algorithm>

#include <fmt/format.h>

#include "ricci/compiler/rewrite/cleanup.h"
#include "ricci/ir/rebuild.h"
#include "ricci/op/leaf.h"

#include "property/generator.h"
#include "support/compare.h"

namespace ricci::testing {
namespace {

// Everything no output depends on goes, inputs too.
Program without_dead(const Program& p) {
  const Graph& graph = p.graph;
  std::vector<bool> live(graph.size(), false);
  for (const ValueId v : graph.outputs()) live[v.node] = true;
  for (std::size_t id = graph.size(); id-- > 0;) {
    if (!live[id]) continue;
    for (const ValueId v : graph.nodes()[id].operands) live[v.node] = true;
  }
  Rebuilder rebuild(graph);
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (live[id]) rebuild.copy(id);
  }
  Program out{rebuild.finish(), {}};
  for (const auto& [name, value] : p.feeds) {
    if (out.graph.find(name)) out.feeds.emplace(name, value);
  }
  return out;
}

Program with_outputs(const Program& p, std::vector<ValueId> outputs) {
  Program out = p;
  out.graph.set_outputs(std::move(outputs));
  return without_dead(out);
}

// A node's results become inputs.
Program with_inputs_for(const Program& p, NodeId gone) {
  Rebuilder rebuild(p.graph);
  Feeds feeds = p.feeds;
  for (NodeId id = 0; id < p.graph.size(); ++id) {
    if (id != gone) {
      rebuild.copy(id);
      continue;
    }
    const Node& node = p.graph.node(id);
    for (std::uint32_t r = 0; r < node.types.size(); ++r) {
      const std::string name = rebuild.to().unique_name(fmt::format("cut{}_{}", id, r));
      rebuild.map({id, r}, rebuild.to().input(name, node.types[r]));
      if (node.types[r].is_static()) feeds.emplace(name, random_tensor(id + r, node.types[r]));
    }
  }
  return without_dead({rebuild.finish(), std::move(feeds)});
}

// A node is skipped: readers of its first result read one of its operands instead.
Program with_operand_for(const Program& p, NodeId gone, ValueId operand) {
  Rebuilder rebuild(p.graph);
  for (NodeId id = 0; id < p.graph.size(); ++id) {
    if (id == gone) {
      rebuild.map({id, 0}, rebuild.value(operand));
    } else {
      rebuild.copy(id);
    }
  }
  return without_dead({rebuild.finish(), p.feeds});
}

// A body where one node's results are zeros.
std::shared_ptr<const Graph> with_zeros_for(const Graph& body, NodeId gone) {
  Rebuilder rebuild(body);
  for (NodeId id = 0; id < body.size(); ++id) {
    if (id != gone) {
      rebuild.copy(id);
      continue;
    }
    const Node& node = body.node(id);
    for (std::uint32_t r = 0; r < node.types.size(); ++r) {
      rebuild.map({id, r}, rebuild.to().constant(Tensor::splat(node.types[r], 0)));
    }
  }
  return std::make_shared<const Graph>(dead_code_elimination(rebuild.finish()).graph);
}

// The program with each of its bodies made smaller in each way.
void add_smaller_bodies(const Program& p, NodeId id, std::vector<Program>& out) {
  const Node& node = p.graph.node(id);
  for (std::size_t b = 0; b < node.bodies.size(); ++b) {
    const Graph& body = *node.bodies[b].graph;
    for (NodeId inner = 0; inner < body.size(); ++inner) {
      const Node& n = body.node(inner);
      const bool is_leaf = n.operands.empty() && n.bodies.empty();
      if (is_leaf || !std::ranges::all_of(n.types, &Type::is_static)) continue;
      Rebuilder rebuild(p.graph);
      for (NodeId k = 0; k < p.graph.size(); ++k) {
        std::vector<Body> bodies = p.graph.node(k).bodies;
        if (k == id) bodies[b].graph = with_zeros_for(body, inner);
        rebuild.copy(k, std::move(bodies));
      }
      out.push_back({rebuild.finish(), p.feeds});
    }
  }
}

std::vector<Program> smaller(const Program& p) {
  std::vector<Program> out;
  const std::vector<ValueId> outputs(p.graph.outputs().begin(), p.graph.outputs().end());
  if (outputs.size() > 1) {
    for (const ValueId v : outputs) out.push_back(with_outputs(p, {v}));
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      std::vector<ValueId> others = outputs;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(k));
      out.push_back(with_outputs(p, std::move(others)));
    }
  }
  for (const ValueId v : outputs) {
    for (const ValueId operand : p.graph.node(v.node).operands) {
      out.push_back(with_outputs(p, {operand}));
    }
  }
  for (NodeId id = 0; id < p.graph.size(); ++id) {
    const Node& node = p.graph.node(id);
    if (node.op.is<op::Input>() || node.op.is<op::Param>()) continue;
    if (node.types.size() == 1) {
      for (const ValueId v : node.operands) {
        if (p.graph.type(v) == node.types[0]) out.push_back(with_operand_for(p, id, v));
      }
    }
    out.push_back(with_inputs_for(p, id));
    add_smaller_bodies(p, id, out);
  }
  return out;
}

// Nodes count most, those of bodies too, then those that are not inputs.
std::size_t size_of(const Program& p) {
  return 2 * count_nodes(p.graph) + p.graph.outputs().size() - p.graph.inputs().size();
}

}  // namespace

Program shrink(Program program, const std::function<bool(const Program&)>& fails) {
  if (const Program clean = without_dead(program); fails(clean)) program = clean;
  for (bool progress = true; progress;) {
    progress = false;
    for (Program& candidate : smaller(program)) {
      if (size_of(candidate) >= size_of(program) || !fails(candidate)) continue;
      program = std::move(candidate);
      progress = true;
      break;
    }
  }
  return program;
}

}  // namespace ricci::testing
