#include "transform/halves.h"

#include <map>
#include <set>

#include <fmt/format.h>

#include "ricci/ir/rebuild.h"
#include "ricci/op/leaf.h"

#include "transform/tidy.h"

namespace ricci {
namespace {

std::shared_ptr<const Graph> shared(Graph graph) {
  IdMap map = IdMap::identity(graph);
  return std::make_shared<const Graph>(tidied({std::move(graph), std::move(map), {}}).graph);
}

class Halves {
 public:
  Halves(Graph joint, const Cut& cut) : cut_(cut) {
    std::vector<ValueId> may_be_saved;  // before names and nodes are merged
    for (NodeId id = 0; id < cut.forward_nodes; ++id) {
      const Node& node = joint.nodes()[id];
      for (std::uint32_t r = 0; r < node.types.size(); ++r) {
        if (cut.saves(node, r)) may_be_saved.push_back({id, r});
      }
    }
    // Merged first: what the gradient computes just as the body does is the body's.
    IdMap map = IdMap::identity(joint);
    Transformed t = tidied({std::move(joint), std::move(map), {}});
    graph_ = std::move(t.graph);
    find_varying();
    for (const ValueId v : may_be_saved) {
      const auto now = t.map(v);
      if (!now || !varying_[now->node] || graph_.nodes()[now->node].op.is<op::Input>()) continue;
      candidates_.insert(*now);
    }
    find_saved();
  }

  [[nodiscard]] BodyHalves run() {
    BodyHalves out;
    std::vector<ValueId> outputs(
        graph_.outputs().begin(),
        graph_.outputs().begin() + static_cast<std::ptrdiff_t>(cut_.forward_outputs));
    std::map<ValueId, std::size_t> places;  // the first of each
    for (std::size_t i = 0; i < outputs.size(); ++i) places.emplace(outputs[i], i);
    for (const ValueId v : saved_) {
      const auto [place, fresh] = places.emplace(v, outputs.size());
      out.saved.push_back(place->second);
      if (fresh) outputs.push_back(v);
    }
    out.forward = first_half(outputs);
    out.backward = second_half();
    return out;
  }

 private:
  void find_varying() {
    varying_.resize(graph_.size());
    const std::vector<NodeId> inputs = graph_.inputs();
    for (std::size_t k = 0; k < cut_.varying.size(); ++k) varying_[inputs[k]] = cut_.varying[k];
    for (NodeId id = 0; id < graph_.size(); ++id) {
      for (const ValueId v : graph_.nodes()[id].operands) {
        varying_[id] = varying_[id] || varying_[v.node];
      }
    }
  }

  // From the gradients back to the values that are saved, or to the inputs.
  void find_saved() {
    second_.resize(graph_.size());
    std::set<ValueId> saved;
    const auto reach = [&](ValueId v) {
      if (candidates_.contains(v)) {
        saved.insert(v);
      } else {
        second_[v.node] = true;
      }
    };
    for (std::size_t i = cut_.forward_outputs; i < graph_.outputs().size(); ++i) {
      reach(graph_.outputs()[i]);
    }
    for (auto id = static_cast<NodeId>(graph_.size()); id-- > 0;) {
      if (!second_[id]) continue;
      for (const ValueId v : graph_.nodes()[id].operands) reach(v);
    }
    saved_.assign(saved.begin(), saved.end());
  }

  [[nodiscard]] std::shared_ptr<const Graph> first_half(const std::vector<ValueId>& outputs) const {
    Rebuilder build(graph_);
    const std::vector<NodeId> inputs = graph_.inputs();
    for (std::size_t k = 0; k < cut_.varying.size(); ++k) build.copy(inputs[k]);
    std::vector<bool> needed(graph_.size());
    for (const ValueId v : outputs) needed[v.node] = true;
    for (auto id = static_cast<NodeId>(graph_.size()); id-- > 0;) {
      if (!needed[id]) continue;
      for (const ValueId v : graph_.nodes()[id].operands) needed[v.node] = true;
    }
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (needed[id] && !build.has({id, 0})) build.copy(id);
    }
    std::vector<Value> values;
    for (const ValueId v : outputs) values.push_back(build.value(v));
    build.to().set_outputs(values);
    return shared(std::move(build.to()));
  }

  [[nodiscard]] std::shared_ptr<const Graph> second_half() const {
    Rebuilder build(graph_);
    const std::vector<NodeId> inputs = graph_.inputs();
    std::size_t k = 0;
    for (; k < cut_.varying.size(); ++k) build.copy(inputs[k]);
    std::vector<Value> residuals;
    for (std::size_t i = 0; i < saved_.size(); ++i) {
      residuals.push_back(build.to().input(build.to().unique_name(fmt::format("saved_{}", i)),
                                           graph_.type(saved_[i])));
      build.map(saved_[i], residuals.back());
    }
    for (; k < inputs.size(); ++k) build.copy(inputs[k]);
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (!second_[id] || graph_.nodes()[id].op.is<op::Input>()) continue;
      build.copy(id);
      // A node may be computed again for one result while another is saved.
      for (std::size_t i = 0; i < saved_.size(); ++i) {
        if (saved_[i].node == id) build.map(saved_[i], residuals[i]);
      }
    }
    std::vector<Value> values;
    for (std::size_t i = cut_.forward_outputs; i < graph_.outputs().size(); ++i) {
      values.push_back(build.value(graph_.outputs()[i]));
    }
    build.to().set_outputs(values);
    return shared(std::move(build.to()));
  }

  const Cut& cut_;
  Graph graph_;
  std::vector<bool> varying_;     // nodes that differ from step to step
  std::set<ValueId> candidates_;  // values of the body that may be saved
  std::vector<bool> second_;      // nodes that the second half computes
  std::vector<ValueId> saved_;
};

}  // namespace

BodyHalves cut_in_halves(Graph joint, const Cut& cut) {
  return Halves(std::move(joint), cut).run();
}

}  // namespace ricci
