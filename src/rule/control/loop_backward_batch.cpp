// Batching of the loops' gradients.
#include "op/loop_layout.h"
#include "rule/control/body_masks.h"
#include "rule/control/loop_rewriting.h"
#include "rule/tables/batch_rules.h"
#include "rule/tables/expand_rules.h"

namespace ricci::rule {
namespace {

std::vector<Type> example_types(const VmapContext& c) {
  std::vector<Type> out;
  for (std::size_t k = 0; k < c.size(); ++k) out.push_back(c.type(k));
  return out;
}

BatchedValues through_expansion(const VmapContext& c) {
  return c.through([&](Graph& graph, std::span<const Value> operands) {
    return expand_node(c.node(), {operands.begin(), operands.end()}, graph);
  });
}

// Batches a loop's gradient as it is. A cotangent has the type of what it belongs to, so both are
// batched or neither is; `mask` says so for each input of the loop's body and each saved value.
class KeptLoop {
 public:
  KeptLoop(const VmapContext& c, LoopLayout layout, bool carry_rows)
      : c_(c), layout_(std::move(layout)), carry_rows_(carry_rows) {
    close();
  }

  BatchedValues run() {
    std::vector<Value> operands;
    for (std::size_t k = 0; k < c_.size(); ++k) {
      const Value v = is_batched(k) ? c_.lifted(k) : c_[k];
      operands.push_back(is_batched(k) && has_rows(k) ? swap_first_two(v) : v);
    }
    NodeSpec spec{.op = c_.node().op,
                  .bodies = {Body{"body_vjp", batched_gradient()}},
                  .wanted = c_.node().wanted};
    if (const Graph* forward = c_.node().body("forward_body")) {
      std::vector<bool> required(forward->outputs().size(), false);
      for (std::size_t i = 0; i < layout_.carries; ++i) required[i] = mask_[i];
      spec.bodies.push_back(
          {"forward_body", c_.bodies().batch(*forward, own_mask(), c_.batch(), required).graph});
    }
    for (const Value& v : operands) spec.operands.push_back(v.id());
    const NodeId id = c_.graph().add(std::move(spec));
    return results(id);
  }

 private:
  [[nodiscard]] std::size_t inputs() const { return layout_.step().operands(); }
  // The mask without the values saved of each step, which the loop's own body computes.
  [[nodiscard]] std::vector<bool> own_mask() const {
    return {mask_.begin(), mask_.begin() + static_cast<std::ptrdiff_t>(inputs())};
  }
  [[nodiscard]] bool counts(std::size_t k) const {
    return is_differentiable(c_.type(layout_.operand_of(k)).dtype);
  }

  void close() {
    for (std::size_t k = 0; k < layout_.gradient_inputs(); ++k) {
      mask_.push_back(c_.batched(layout_.operand_of(k)));
    }
    for (std::size_t i = 0; i < layout_.carries; ++i) {
      if (c_.batched(layout_.kept(i))) mask_[i] = true;
      if (const auto at = layout_.upstream(i); at && c_.batched(*at)) mask_[i] = true;
    }
    for (bool grew = true; grew;) {
      grew = false;
      const auto grow = [&](std::size_t k) {
        grew = grew || !mask_[k];
        mask_[k] = true;
      };
      if (const Graph* forward = c_.node().body("forward_body")) {
        const auto next = c_.bodies().batched_outputs(*forward, own_mask());
        for (std::size_t i = 0; i < layout_.carries; ++i) {
          if (next[i]) grow(i);
        }
      }
      const auto given = c_.bodies().batched_outputs(body_vjp(), gradient_inputs());
      for (std::size_t k = 0, r = 0; k < inputs(); ++k) {
        if (counts(k) && given[r++]) grow(k);
      }
    }
  }

  [[nodiscard]] std::vector<bool> wanted_mask() const {
    std::vector<bool> out;
    for (std::size_t k = 0; k < inputs(); ++k) {
      if (counts(k)) out.push_back(mask_[k]);
    }
    return out;
  }

  [[nodiscard]] std::shared_ptr<const Graph> batched_gradient() const {
    return c_.bodies().batch(body_vjp(), gradient_inputs(), c_.batch(), wanted_mask()).graph;
  }
  // Which inputs of body_vjp are batched.
  [[nodiscard]] std::vector<bool> gradient_inputs() const {
    std::vector<bool> batched;
    std::size_t next = 0;
    for (const NodeId id : body_vjp().inputs()) {
      const op::InputRole& role = body_vjp().node(id).op.as<op::Input>()->role;
      const auto i = static_cast<std::size_t>(role.index);
      if (role.kind == op::InputRole::Kind::None) {
        batched.push_back(mask_[next++]);
      } else if (i < layout_.carries) {
        batched.push_back(mask_[i]);
      } else {
        const auto at = layout_.upstream(i);
        batched.push_back(at && c_.batched(*at));
      }
    }
    return batched;
  }
  [[nodiscard]] const Graph& body_vjp() const { return *c_.node().body("body_vjp"); }

  [[nodiscard]] bool is_batched(std::size_t operand_index) const {
    if (operand_index < 2 * layout_.carries) return mask_[operand_index % layout_.carries];
    if (operand_index >= layout_.first_bcast()) {
      return mask_[layout_.input_of(operand_index)];
    }
    for (std::size_t i = 0; i < layout_.carries; ++i) {
      if (layout_.upstream(i) == operand_index) return mask_[i];
    }
    return c_.batched(operand_index);
  }

  // Is the operand's first axis that of the steps?
  [[nodiscard]] bool has_rows(std::size_t operand_index) const {
    if (operand_index < layout_.carries) return false;
    if (operand_index < 2 * layout_.carries || operand_index >= layout_.first_x()) return true;
    if (operand_index >= layout_.first_bcast()) return false;
    for (std::size_t i = 0; i < layout_.carries; ++i) {
      if (layout_.upstream(i) == operand_index) return carry_rows_;
    }
    return true;
  }

  [[nodiscard]] BatchedValues results(NodeId id) const {
    BatchedValues out;
    std::uint32_t r = 0;
    for (std::size_t k = 0; k < inputs(); ++k) {
      if (!counts(k)) continue;
      Value v = c_.node().wanted[r] ? c_.graph().value({id, r}) : Value();
      if (v.valid() && layout_.step().is_x(k) && mask_[k]) v = swap_first_two(v);
      out.emplace_back(v, mask_[k]);
      ++r;
    }
    return out;
  }

  const VmapContext& c_;
  LoopLayout layout_;
  bool carry_rows_;  // the upstreams of carries have one row per kept carry
  std::vector<bool> mask_;
};

}  // namespace

// [scan-vmap] A sweep that recomputes stays one, so that it keeps no more carries than before. Any
// other is a scan, in which only what depends on the batch gets it.
BatchedValues batch(const op::ScanBackward& op, const VmapContext& c) {
  const bool recomputes = op.num_checkpoints > 0 && !op.length.is(op.num_checkpoints);
  if (!recomputes) return through_expansion(c);
  return KeptLoop(c, *layout_of(op, example_types(c)), op.save_trajectory).run();
}

// Examples that made different trips are told apart by the expansion.
BatchedValues batch(const op::WhileBackward& op, const VmapContext& c) {
  LoopLayout layout = *layout_of(op, example_types(c));
  if (c.batched(layout.trip_count())) return through_expansion(c);
  return KeptLoop(c, std::move(layout), false).run();
}

}  // namespace ricci::rule
