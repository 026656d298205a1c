// Rounding in the products of a graph that is trained with it.
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "ricci/build/quant.h"
#include "ricci/compiler/rewrite/quantize.h"
#include "ricci/op/ops.h"
#include "ricci/support/error.h"

#include "rewrite/params_alone.h"
#include "rewrite/replace_nodes.h"

namespace ricci {
namespace {

void require_sense(const FakeQuantizeOptions& options) {
  const auto require = [](std::int64_t bits, std::string_view what) {
    if ((bits >= 2 && bits <= 16) || bits == 0) return;
    throw UserError(ErrorCode::Attr, fmt::format("{} are to have {} bits", what, bits),
                    "they have between 2 and 16, or 0 to stay as they are");
  };
  require(options.weight_bits, "weights");
  require(options.activation_bits, "activations");
}

class Rounder {
 public:
  Rounder(const Graph& graph, const FakeQuantizeOptions& options)
      : from_(graph), options_(options), alone_(params_alone(graph)) {}

  NewResults operator()(const NodeVisit& v) {
    const Node& old = from_.nodes()[v.id];
    if (!concerns(old)) return std::nullopt;
    std::vector<Value> operands = v.operands;
    bool any = false;
    for (std::size_t k = 0; k < 2; ++k) {
      const bool weight = alone_[old.operands[k].node];
      const std::int64_t bits = weight ? options_.weight_bits : options_.activation_bits;
      if (bits == 0 || quantized_weight_bits(v.graph(), operands[k].id())) continue;
      operands[k] = rounded_once(operands[k], weight ? weight_op(old, k) : activation_op());
      any = true;
    }
    if (!any) return std::nullopt;
    return v.graph().add_node(v.node.op, operands);
  }

 private:
  [[nodiscard]] bool concerns(const Node& node) const {
    if (!node.op.is<op::Matmul>() && !node.op.is<op::Conv>()) return false;
    if (!is_float(node.types[0].dtype)) return false;
    const bool a = alone_[node.operands[0].node];
    const bool b = alone_[node.operands[1].node];
    if (a && b) return false;
    if (!a && !b && !options_.activation_products) return false;
    return !options_.products || options_.products(node);
  }

  [[nodiscard]] op::FakeQuantize activation_op() const {
    return {.bits = options_.activation_bits, .ste = options_.ste, .asymmetric = true};
  }

  // A scale for every channel of the result, where the weight is what has them.
  [[nodiscard]] op::FakeQuantize weight_op(const Node& node, std::size_t operand) const {
    op::FakeQuantize op{.bits = options_.weight_bits, .ste = options_.ste};
    if (!options_.per_channel) return op;
    if (node.op.is<op::Conv>()) {
      op.axis = Axis(0);
    } else if (operand == 1) {
      op.axis = Axis(static_cast<std::int64_t>(from_.type(node.operands[1]).rank()) - 1);
    }
    return op;
  }

  // What several products read in one way is rounded once.
  Value rounded_once(Value x, const op::FakeQuantize& op) {
    for (const auto& [value, how, made] : made_) {
      if (value == x.id() && how == op) return x.graph().value(made);
    }
    const Value y = x.graph().add_node(Op(op), std::span(&x, 1))[0];
    made_.emplace_back(x.id(), op, y.id());
    return y;
  }

  const Graph& from_;
  const FakeQuantizeOptions& options_;
  std::vector<bool> alone_;
  std::vector<std::tuple<ValueId, op::FakeQuantize, ValueId>> made_;
};

}  // namespace

PassResult insert_fake_quantize(const Graph& graph, const FakeQuantizeOptions& options) {
  require_sense(options);
  Rounder rounder(graph, options);
  return replace_nodes(
      graph, "insert_fake_quantize", [&](const NodeVisit& v) { return rounder(v); },
      [](const Graph& body) { return unchanged(body); });
}

}  // namespace ricci
