#include <algorithm>
#include <limits>

#include "ricci/compiler/rewrite/cleanup.h"
#include "ricci/compiler/rule/eval.h"
#include "ricci/op/elementwise.h"
#include "ricci/op/leaf.h"
#include "ricci/op/shape.h"

#include "rewrite/changes.h"
#include "rewrite/exact.h"
#include "rewrite/splat.h"
#include "support/float_environment.h"
#include "support/phases.h"

namespace ricci {
namespace {

bool is_plain_elementwise(const Op& op) {
  return op.is<op::Unary>() || op.is<op::Binary>() || op.is<op::Compare>() || op.is<op::Where>() ||
         op.is<op::Cast>() || op.is<op::StopGradient>();
}

bool is_plain_movement(const Op& op) {
  return op.is<op::Reshape>() || op.is<op::Transpose>() || op.is<op::Expand>() ||
         op.is<op::Narrow>();
}

std::vector<Tensor> run_kernel(const Node& node, const Graph& graph, std::vector<Tensor> operands) {
  EvalContext context(node, graph, std::move(operands), 0,
                      [](const Graph&, std::span<const Tensor>) -> std::vector<Tensor> {
                        throw InternalError("folding runs no bodies");
                      });
  evaluate(context);
  return context.take_results();
}

class Folder {
 public:
  Folder(const Graph& graph, const FoldOptions& options)
      : graph_(graph), options_(options), rebuild_(graph) {}

  Change run() {
    for (NodeId id = 0; id < graph_.size(); ++id) visit(id);
    if (!changed_) return std::nullopt;
    return finished(rebuild_);
  }

 private:
  void visit(NodeId id) {
    const Node& node = graph_.nodes()[id];
    if (const auto values = fold(node)) {
      for (std::uint32_t r = 0; r < node.types.size(); ++r) {
        if (node.wanted[r]) rebuild_.map({id, r}, constant(node, r, (*values)[r]));
      }
      changed_ = true;
      return;
    }
    rebuild_.copy(
        id,
        map_bodies(node, [&](const Graph& b) { return constant_folding(b, options_); }, changed_));
  }

  std::optional<std::vector<Tensor>> fold(const Node& node) {
    if (node.operands.empty() || !node.bodies.empty()) return std::nullopt;
    std::vector<Type> types;
    std::vector<Tensor> operands;
    std::vector<Tensor> elements;  // of the operands that repeat one
    for (const ValueId v : node.operands) {
      const auto now = rebuild_(v);
      const auto* c = rebuild_.to().node(now.node).op.as<op::Constant>();
      if (c == nullptr) return std::nullopt;
      operands.push_back(c->value);
      types.push_back(graph_.type(v));
      if (auto element = splat_element(&c->value)) elements.push_back(*std::move(element));
    }
    if (!is_exact(node.op, types)) return std::nullopt;
    for (const Type& t : node.types) {
      if (!t.is_static()) return std::nullopt;
    }
    try {
      if (node.types.size() == 1 && node.types[0].numel() == 0) {
        return std::vector{Tensor::splat(node.types[0], 0)};
      }
      const bool plain = is_plain_elementwise(node.op) || is_plain_movement(node.op);
      if (plain && elements.size() == operands.size()) {
        return std::vector{fold_splat(node, std::move(elements))};
      }
      if (!within_budget(node, operands)) return std::nullopt;
      return run_kernel(node, graph_, std::move(operands));
    } catch (const UserError&) {
      return std::nullopt;  // the run will report it
    }
  }

  // Element-wise ops and plain movement of one repeated element: one element is worked out.
  Tensor fold_splat(const Node& node, std::vector<Tensor> elements) {
    Tensor element = elements[0];
    if (is_plain_elementwise(node.op)) {
      Node scalar = node;
      scalar.types[0].dims.clear();
      element = run_kernel(scalar, graph_, std::move(elements))[0];
    }
    return element.broadcast_to(node.types[0].static_dims());
  }

  [[nodiscard]] bool within_budget(const Node& node, const std::vector<Tensor>& operands) const {
    for (const Type& t : node.types) {
      if (t.numel().value() > options_.max_bytes / size_of(t.dtype)) return false;
    }
    // Operands count too, so that folding never takes long. A repeated element may stand for more
    // bytes than an integer counts, so nothing is multiplied before it is known to fit.
    constexpr std::int64_t ReadPerWritten = 16;
    constexpr std::int64_t Most = std::numeric_limits<std::int64_t>::max() / ReadPerWritten;
    std::int64_t left = std::min(options_.max_bytes, Most) * ReadPerWritten;
    for (const Tensor& t : operands) {
      if (t.numel() > left / size_of(t.dtype())) return false;
      left -= t.numel() * size_of(t.dtype());
    }
    return true;
  }

  ValueId constant(const Node& node, std::uint32_t r, const Tensor& value) {
    Node made{.op = Op(op::Constant{value.canonical()}),
              .operands = {},
              .types = {node.types[r]},
              .wanted = {true},
              .names = {node.names[r]},
              .bodies = {},
              .provenance = {}};
    Provenance from = node.provenance ? *node.provenance : Provenance{};
    if (from.origin.empty()) from.origin = "constant_folding";
    made.provenance = std::make_shared<const Provenance>(std::move(from));
    return {rebuild_.to().append(std::move(made)), 0};
  }

  const Graph& graph_;
  const FoldOptions& options_;
  Rebuilder rebuild_;
  bool changed_ = false;
};

}  // namespace

Change fold_constants(const Graph& graph) {
  const Phase phase("constants");
  const DefaultFloatEnvironment floats;
  return Folder(graph, {}).run();
}

PassResult constant_folding(const Graph& graph, const FoldOptions& options) {
  const DefaultFloatEnvironment floats;
  return or_unchanged(graph, Folder(graph, options).run());
}

}  // namespace ricci
