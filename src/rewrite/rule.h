// What a rewrite rule sees and says. A rule looks at one node, the root, whose operands are already
// in the new graph, and gives the values that replace its results, or nothing. It adds nodes only
// once it has decided; replacing, naming and iterating are the driver's business.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "ricci/ir/graph.h"
#include "ricci/op/leaf.h"

namespace ricci {

class Rewriter {
 public:
  Rewriter(Graph& graph, const Node& root, std::vector<Value> operands)
      : graph_(graph), root_(root), operands_(std::move(operands)) {}

  [[nodiscard]] Graph& graph() const { return graph_; }
  [[nodiscard]] const Node& root() const { return root_; }
  /// The type of the root's first result.
  [[nodiscard]] const Type& type() const { return root_.types[0]; }
  [[nodiscard]] Value operand(std::size_t k) const { return operands_[k]; }
  [[nodiscard]] std::span<const Value> operands() const { return operands_; }
  [[nodiscard]] const Node& producer(Value v) const { return graph_.node(v.id().node); }

  /// An op that made an operand, with its own first operand.
  template <OpStruct T>
  struct Inner {
    T op;
    Value x;
  };
  template <OpStruct T>
  [[nodiscard]] std::optional<Inner<T>> operand_as(std::size_t k) const {
    const Node& node = producer(operands_[k]);
    const T* op = node.op.as<T>();
    if (op == nullptr) return std::nullopt;
    return Inner<T>{*op, graph_.value(node.operands[0])};
  }

  /// The elements of a constant, or nullptr.
  [[nodiscard]] const Tensor* constant(Value v) const {
    const auto* c = producer(v).op.as<op::Constant>();
    return c == nullptr ? nullptr : &c->value;
  }

  template <OpStruct T>
  Value build(T op, std::initializer_list<Value> operands) {
    return graph_.add_node(Op(std::move(op)), std::span(operands.begin(), operands.size()))[0];
  }
  /// `v` repeated to the root's shape; `v` itself when it has it.
  Value fit(Value v);
  /// A number in the root's shape and dtype.
  Value number(double value);

 private:
  Graph& graph_;
  const Node& root_;
  std::vector<Value> operands_;
};

/// One value per result of the root.
using Replacement = std::optional<std::vector<Value>>;

struct Rule {
  std::string_view name;
  std::string_view identity;
  OpKind root;
  Replacement (*apply)(Rewriter& rewriter);
};

/// The rules written as functions.
[[nodiscard]] std::span<const Rule> structure_rules();
/// The rules written as identities: tries them in order. Sets `name` to the one that applied.
[[nodiscard]] Replacement apply_algebra(Rewriter& rewriter, std::string_view& name);
struct RuleInfo;
void list_algebra(std::vector<RuleInfo>& into);

}  // namespace ricci
