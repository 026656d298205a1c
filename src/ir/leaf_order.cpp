// Inputs and params in the order of the source. Operands of C++ calls and operators are evaluated
// in an order of the compiler's choosing: `matmul(x, g.param("w")) + g.param("b")` declares b first
// with some and w first with others. What one expression declares is put in the order it is written
// in.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "ricci/ir/graph.h"

namespace ricci {
namespace {

bool same_text(const char* a, const char* b) { return a == b || std::strcmp(a, b) == 0; }

bool same_function(const std::source_location& a, const std::source_location& b) {
  return same_text(a.function_name(), b.function_name()) && same_text(a.file_name(), b.file_name());
}

std::pair<std::uint32_t, std::uint32_t> place(const std::source_location& where) {
  return {where.line(), where.column()};
}

}  // namespace

// Leaves are declared by one expression when a function declares them one after the other and none
// of their places comes again, which only a loop makes it do. A place above the last one is either
// that of an operand that was evaluated late, or that of a statement which was come back to. With
// values computed in between it is the latter when the leaf's first user has one of these for an
// operand before it: that was there before the leaf was.
bool Graph::in_one_expression(std::span<const Declared> before, const Declared& leaf) const {
  const Declared& last = before.back();
  if (!same_function(last.where, leaf.where)) return false;
  const auto comes_again = [&](const Declared& d) { return place(d.where) == place(leaf.where); };
  if (std::ranges::any_of(before, comes_again)) return false;
  if (place(last.where) < place(leaf.where) || last.where.line() == leaf.where.line()) return true;

  std::vector<bool> newer(nodes_.size(), false);  // computed since, or of what was
  for (NodeId id = before.front().node; id < nodes_.size(); ++id) {
    const Node& node = nodes_[id];
    if (node.is_leaf()) continue;
    const auto use = std::ranges::find(node.operands, leaf.node, &ValueId::node);
    if (use != node.operands.end()) {
      return std::none_of(node.operands.begin(), use,
                          [&](const ValueId v) { return newer[v.node]; });
    }
    newer[id] = id < leaf.node ||
                std::ranges::any_of(node.operands, [&](const ValueId v) { return newer[v.node]; });
  }
  return true;
}

void Graph::sort_leaves() {
  const std::vector<Declared> declared = std::exchange(declared_, {});
  if (keeps_leaf_order_ || declared.size() < 2) return;
  // Leaves by what takes their place; most graphs have them in order already.
  std::vector<std::vector<NodeId>> groups;
  bool changes = false;
  for (std::size_t begin = 0; begin < declared.size();) {
    std::size_t end = begin + 1;
    const auto group = [&] { return std::span(declared).subspan(begin, end - begin); };
    while (end < declared.size() && in_one_expression(group(), declared[end])) ++end;
    std::vector<Declared> sorted(group().begin(), group().end());
    const auto by_place = [](const Declared& d) { return place(d.where); };
    if (!std::ranges::is_sorted(sorted, {}, by_place)) {
      std::ranges::sort(sorted, {}, by_place);
      std::vector<NodeId>& ids = groups.emplace_back();
      for (const Declared& d : sorted) ids.push_back(d.node);
      changes = true;
    }
    begin = end;
  }
  if (!changes) return;

  // A group stands where its first leaf was: a leaf may always come earlier.
  std::vector<const std::vector<NodeId>*> group_at(nodes_.size(), nullptr);
  std::vector<bool> grouped(nodes_.size(), false);
  for (const std::vector<NodeId>& ids : groups) {
    group_at[*std::ranges::min_element(ids)] = &ids;
    for (const NodeId id : ids) grouped[id] = true;
  }
  std::vector<NodeId> order;
  order.reserve(nodes_.size());
  for (NodeId id = 0; id < nodes_.size(); ++id) {
    if (group_at[id] != nullptr)
      order.insert(order.end(), group_at[id]->begin(), group_at[id]->end());
    if (!grouped[id]) order.push_back(id);
  }
  permute(order);
}

// `order` has the old ids as they come in the new graph.
void Graph::permute(std::span<const NodeId> order) {
  std::vector<NodeId> now_at(nodes_.size());
  for (NodeId now = 0; now < order.size(); ++now) now_at[order[now]] = now;
  std::vector<Node> nodes;
  nodes.reserve(nodes_.size());
  for (const NodeId old : order) {
    nodes.push_back(std::move(nodes_[old]));
    for (ValueId& v : nodes.back().operands) v.node = now_at[v.node];
  }
  nodes_ = std::move(nodes);
  for (ValueId& v : outputs_) v.node = now_at[v.node];
  for (auto& [name, id] : leaf_names_) id = now_at[id];
  anchor_.nodes_moved(std::move(now_at));
}

}  // namespace ricci
