#include "schedule/views_first.h"

#include <algorithm>
#include <map>
#include <optional>

#include "ricci/build/build.h"
#include "ricci/compiler/rule/lower.h"
#include "ricci/ir/rebuild.h"
#include "ricci/op/ops.h"

namespace ricci::schedule {
namespace {

using Views = std::vector<Op>;  // the first one is applied first

constexpr int Deepest = 64;  // ops that a view is moved past

// A pad that only takes away, as slices.
std::optional<Views> crops(const op::Pad& pad, const Dims& dims) {
  Views views;
  for (std::size_t a = 0; a < pad.low.size(); ++a) {
    const std::int64_t low = pad.low[a].value();
    const std::int64_t high = pad.high[a].value();
    if (low > 0 || high > 0) return std::nullopt;
    if (low == 0 && high == 0) continue;
    views.emplace_back(
        op::Narrow{static_cast<std::int64_t>(a), Dim(-low), Dim(dims[a].value() + low + high)});
  }
  return views;
}

// 0, and not -0.
bool is_zero(const Graph& graph, ValueId v) {
  const auto* constant = graph.node(v.node).op.as<op::Constant>();
  if (constant == nullptr || !constant->value.is_splat()) return false;
  const Tensor one = constant->value.contiguous();
  return std::ranges::all_of(one.bytes(), [](std::byte b) { return b == std::byte{0}; });
}

// Does it make 0 of zeros, to the bit? Then zeros may be put around its operands instead.
bool keeps_zero(const Node& node) {
  if (node.op.is<op::Cast>()) return true;
  const auto* binary = node.op.as<op::Binary>();
  if (binary == nullptr) return false;
  return binary->kind == BinaryKind::Add || binary->kind == BinaryKind::Sub ||
         binary->kind == BinaryKind::Mul;
}

// The views a node is of its operand; nothing for any other node.
std::optional<Views> views_of(const Graph& graph, const Node& node) {
  if (const auto* pad = node.op.as<op::Pad>()) {
    if (auto crop = crops(*pad, graph.type(node.operands[0]).dims)) return crop;
    return is_zero(graph, node.operands[1]) ? std::optional(Views{node.op}) : std::nullopt;
  }
  const bool is_view = node.op.is<op::Transpose>() || node.op.is<op::Narrow>() ||
                       node.op.is<op::TakeEvery>() || node.op.is<op::Reverse>();
  return is_view ? std::optional(Views{node.op}) : std::nullopt;
}

// One instruction per element that can go wrong at none of them.
bool is_instruction(const Graph& graph, const Node& node) {
  if (!node.op.has(Trait::Elementwise) || node.operands.empty()) return false;
  const Lowering lowered = lower_node(graph, node);
  if (lowered.form != Lowering::Form::Pointwise || lowered.indirect) return false;
  switch (lowered.instr.code) {
    case loop::Code::Unary:
    case loop::Code::Compare:
    case loop::Code::Select:
    case loop::Code::Cast:
    case loop::Code::Copy: return true;
    case loop::Code::Binary: return !loop::is_partial(lowered.instr);
    default: return false;
  }
}

ricci::Axes inverse(const ricci::Axes& perm) {
  ricci::Axes out(perm.size());
  for (std::size_t i = 0; i < perm.size(); ++i) {
    out[perm[i].index()] = static_cast<std::int64_t>(i);
  }
  return out;
}

// How many nodes read each node's results, and how often they are outputs.
std::vector<std::size_t> readers_of(const Graph& graph) {
  std::vector<std::size_t> readers(graph.size(), 0);
  std::vector<NodeId> last(graph.size(), 0);  // the reader that was counted, and one
  for (NodeId id = 0; id < graph.size(); ++id) {
    for (const ValueId v : graph.nodes()[id].operands) {
      if (last[v.node] != id + 1) ++readers[v.node];
      last[v.node] = id + 1;
    }
  }
  for (const ValueId v : graph.outputs()) ++readers[v.node];
  return readers;
}

class Pass {
 public:
  explicit Pass(const Graph& graph)
      : graph_(graph),
        uses_(readers_of(graph)),
        moves_(graph.size(), false),
        only_calls_(graph.size(), true) {
    for (const ValueId v : graph.outputs()) only_calls_[v.node] = false;
    for (auto id = static_cast<NodeId>(graph.size()); id-- > 0;) {
      const Node& node = graph.nodes()[id];
      moves_[id] = (uses_[id] == 1 || is_cut_up(id, node)) && is_instruction(graph, node);
      if (node.op.is<op::Narrow>() && !only_calls_[id]) note_slice(node);
      if (reads_views(id, node)) continue;
      for (const ValueId v : node.operands) only_calls_[v.node] = false;
    }
  }

  Change run() {
    const ChangedBodies bodies(graph_, [](const Graph& body) { return views_first(body); });
    const auto concerned = [&](const Node& node) { return concerns(node); };
    if (!bodies.any() && std::ranges::none_of(graph_.nodes(), concerned)) return std::nullopt;
    Rebuilder rebuild(graph_);
    rebuild_ = &rebuild;
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_.nodes()[id];
      if (concerns(node) && !only_calls_[id]) {
        const Provenance from = node.provenance ? *node.provenance : Provenance{};
        const ProvenanceScope scope(rebuild.to(), from);
        rebuild.map({id, 0}, rewritten(node));
      } else {
        rebuild.copy(id, bodies.of(id, node));
      }
    }
    return finished(rebuild);
  }

 private:
  // Slices that nobody but calls reads stay where they are, and what they cut with them.
  void note_slice(const Node& node) {
    Slices& slices = slices_[node.operands[0].node];
    ++slices.count;
    slices.elements += node.types[0].numel().value_or(0);
  }

  // Do slices alone read it, no more of it than there is? Then each can be computed for itself, as
  // the gates of a recurrent cell or the halves of a gated unit, and the whole is never stored.
  bool is_cut_up(NodeId id, const Node& node) const {
    const auto at = slices_.find(id);
    return at != slices_.end() && at->second.count == uses_[id] &&
           at->second.elements <= node.types[0].numel().value_or(0);
  }

  // Calls read views as they are; loops and branches want whole arrays.
  bool reads_views(NodeId id, const Node& node) const {
    if (node.is_leaf() || node.operands.empty()) return true;
    if (!node.bodies.empty()) return false;
    const Lowering::Form form = lower_node(graph_, node).form;
    return form == Lowering::Form::Call || (form == Lowering::Form::View && only_calls_[id]);
  }

  // A view that one other node looks at.
  [[nodiscard]] std::optional<Views> views_at(ValueId x) const {
    const Node& node = graph_.node(x.node);
    if (uses_[x.node] != 1 || node.is_leaf()) return std::nullopt;
    return views_of(graph_, node);
  }

  bool concerns(const Node& node) const {
    if (node.is_leaf()) return false;
    if (const auto* reduce = node.op.as<op::Reduce>()) {
      return !reduce->axes.empty() && permutation_under(node.operands[0], 0).has_value();
    }
    std::optional<Views> all = views_of(graph_, node);
    if (!all) return false;
    ValueId x = node.operands[0];
    for (auto more = views_at(x); more; more = views_at(x)) {
      all->insert(all->begin(), more->begin(), more->end());
      x = graph_.node(x.node).operands[0];
    }
    return moves_past(x, *all);
  }

  // How all the arrays of a chain of instructions are transposed, when they are alike.
  [[nodiscard]] std::optional<ricci::Axes> permutation_under(ValueId v, int depth) const {
    const Node& node = graph_.node(v.node);
    if (const auto* transpose = node.op.as<op::Transpose>()) {
      if (depth == 0 && uses_[v.node] != 1) return std::nullopt;
      return transpose->perm;
    }
    if (!moves_[v.node] || depth == Deepest) return std::nullopt;
    std::optional<ricci::Axes> found;
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const ValueId operand = node.operands[i];
      if (first_place(node, operand) != i || is_repeated(operand, node)) continue;
      const auto perm = permutation_under(operand, depth + 1);
      if (!perm || (found && *found != *perm)) return std::nullopt;
      found = perm;
    }
    return found;
  }

  // Where an operand stands first: one that a node reads twice is walked once, or chains of such
  // nodes would take twice as long with every one.
  static std::size_t first_place(const Node& node, ValueId operand) {
    return static_cast<std::size_t>(std::ranges::find(node.operands, operand) -
                                    node.operands.begin());
  }

  // Does an operand have fewer elements than the result, or one in all places?
  bool is_repeated(ValueId operand, const Node& node) const {
    if (graph_.type(operand).dims != node.types[0].dims) return true;
    const Node& from = graph_.node(operand.node);
    if (const auto* constant = from.op.as<op::Constant>()) return constant->value.is_splat();
    return from.op.is<op::Expand>();
  }

  Value rewritten(const Node& node) {
    if (const auto* reduce = node.op.as<op::Reduce>()) return reduced_in_order(*reduce, node);
    return moved(node.operands[0], *views_of(graph_, node), 0);
  }

  Value moved(ValueId x, const Views& views, int depth) {
    const Node& node = graph_.node(x.node);
    if (depth == Deepest) return viewed(rebuild_->value(x), views);
    if (std::optional<Views> all = views_at(x)) {
      all->insert(all->end(), views.begin(), views.end());
      return moved(node.operands[0], *all, depth + 1);
    }
    if (!moves_past(x, views)) return viewed(rebuild_->value(x), views);
    std::vector<Value> operands;
    for (const ValueId operand : node.operands) {
      if (const std::size_t first = first_place(node, operand); first < operands.size()) {
        operands.push_back(operands[first]);
      } else if (graph_.type(operand).dims == node.types[0].dims) {
        operands.push_back(moved(operand, views, depth + 1));
      } else {
        const Value repeated =
            expand(rebuild_->value(operand), {.target_shape = node.types[0].dims});
        operands.push_back(viewed(repeated, views));
      }
    }
    return rebuild_->to().add_node(node.op, operands)[0];
  }

  Value viewed(Value x, const Views& views) {
    Graph& to = rebuild_->to();
    for (const Op& view : views) {
      std::vector<Value> operands{x};
      if (view.is<op::Pad>()) operands.push_back(to.constant(Tensor::zeros({x.dtype(), {}})));
      x = to.add_node(view, operands)[0];
    }
    return x;
  }

  [[nodiscard]] bool moves_past(ValueId x, const Views& views) const {
    if (!moves_[x.node]) return false;
    const auto pads = [](const Op& view) { return view.is<op::Pad>(); };
    return keeps_zero(graph_.node(x.node)) || std::ranges::none_of(views, pads);
  }

  // In the order of memory; what is left of the axes is transposed in the end.
  Value reduced_in_order(const op::Reduce& op, const Node& node) {
    const ricci::Axes perm = *permutation_under(node.operands[0], 0);
    const Value x = moved(node.operands[0], {Op(op::Transpose{inverse(perm)})}, 0);
    std::vector<bool> reduced(perm.size(), false);
    ricci::Axes axes;
    for (const Axis a : op.axes) {
      reduced[a.index()] = true;
      axes.push_back(perm[a.index()]);
    }
    std::ranges::sort(axes, {}, &Axis::value);
    // Where each axis of x is among those that are left.
    std::vector<std::int64_t> place(perm.size(), 0);
    std::int64_t next = 0;
    for (std::size_t a = 0; a < perm.size(); ++a) {
      const bool gone = std::ranges::any_of(axes, [&](const Axis b) { return b.index() == a; });
      if (!gone) place[a] = next++;
    }
    ricci::Axes order;
    for (std::size_t i = 0; i < perm.size(); ++i) {
      if (!reduced[i]) order.emplace_back(place[perm[i].index()]);
    }
    Value y = reduce(x, {.op = op.op, .axes = axes});
    if (!std::ranges::is_sorted(order, {}, &Axis::value)) y = transpose(y, {.perm = order});
    return reshape_to(y, node.types[0].dims);
  }

  struct Slices {
    std::size_t count = 0;
    std::int64_t elements = 0;
  };

  const Graph& graph_;
  std::vector<std::size_t> uses_;
  std::map<NodeId, Slices> slices_;  // that read a node
  std::vector<bool> moves_;          // an instruction that one other node reads, or slices alone
  std::vector<bool> only_calls_;     // nobody but calls reads it
  Rebuilder* rebuild_ = nullptr;
};

}  // namespace

Change views_first(const Graph& graph) { return Pass(graph).run(); }

}  // namespace ricci::schedule
