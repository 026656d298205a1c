// Reverse rule and batching of rope.
#include "ricci/op/rope.h"

#include "rule/derivative_parts.h"
#include "rule/tables/batch_rules.h"
#include "rule/tables/vjp_rules.h"

namespace ricci::rule {

// Only the tables' gradients need x.
Cotangents vjp(const op::Rope& op, const VjpContext& c) {
  const op::RopeBackward backward{.head_dim = op.head_dim, .n_rot = op.n_rot, .style = op.style};
  if (c.needs(1) || c.needs(2)) {
    return add_wanted(c.graph(), Op(backward), std::array{c.cotangent(), c[1], c[2], c[0]},
                      c.needs());
  }
  return {rope_backward(c.cotangent(), c[1], c[2], backward), {}, {}};
}

namespace {

// Operand k, x or dy of rank 2 to 4, with the batch as its first axis or merged into it.
Value rows_in_batch(const VmapContext& c, std::size_t k) {
  return c.type(k).rank() == 2 ? c.lifted(k) : c.folded(k);
}

// Examples with tables of their own become stretches of one long sequence: the positions of x are
// [B·S], and the tables' rows follow each other.
class Positions {
 public:
  explicit Positions(const VmapContext& c)
      : c_(c), at_(c.type(0).rank() == 2 ? 0 : 1), steps_(c.type(0).dims[at_]) {}

  // Operand k, x or dy, [B, N, S, …] → [N, B·S, …].
  [[nodiscard]] Value sequence(std::size_t k) const {
    Dims dims = c_.type(k).dims;
    dims[at_] = c_.batch() * steps_;
    return reshape_to(move_axis(c_.lifted(k), 0, at_), std::move(dims));
  }
  [[nodiscard]] Value examples(Value v) const {
    Dims apart = c_.type(0).dims;
    apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(at_), c_.batch());
    return move_axis(reshape_to(v, std::move(apart)), at_, 0);
  }
  // The rows of operand k that are read, [S_max, W] → [B·S, W].
  [[nodiscard]] Value table(std::size_t k) const {
    const Value all = c_.lifted(k);
    const Value read =
        all.dims()[1] == steps_ ? all : narrow(all, {.axis = 1, .start = 0, .len = steps_});
    return reshape_to(read, {c_.batch() * steps_, all.dims()[2]});
  }
  // The gradient of a table: rows that are never read get 0.
  [[nodiscard]] Value table_gradient(Value d, std::size_t k) const {
    const Dims& table = c_.type(k).dims;
    const Value read = reshape_to(d, {c_.batch(), steps_, table[1]});
    if (table[0] == steps_) return read;
    const Type rest{d.dtype(), {c_.batch(), table[0] - steps_, table[1]}};
    return concat({read, filled(c_.graph(), rest, 0)}, {.axis = 1});
  }

 private:
  const VmapContext& c_;
  std::size_t at_;
  Dim steps_;
};

}  // namespace

BatchedValues batch(const op::Rope& op, const VmapContext& c) {
  if (!c.batched(1) && !c.batched(2)) {
    return {c.unfolded(c.emit(Op(op), std::array{rows_in_batch(c, 0), c[1], c[2]})[0].value)};
  }
  const Positions p(c);
  return {p.examples(c.emit(Op(op), std::array{p.sequence(0), p.table(1), p.table(2)})[0].value)};
}

BatchedValues batch(const op::RopeBackward& op, const VmapContext& c) {
  const std::vector<bool>& wanted = c.node().wanted;
  const bool tables = wanted.size() > 1 && (wanted[1] || wanted[2]);
  if (!tables && !c.batched(1) && !c.batched(2)) {
    std::vector<Value> operands{rows_in_batch(c, 0), c[1], c[2]};
    if (c.size() > 3) operands.push_back(rows_in_batch(c, 3));
    BatchedValues out = c.emit(Op(op), operands);
    out[0].value = c.unfolded(out[0].value);
    return out;
  }
  const Positions p(c);
  std::vector<Value> operands{p.sequence(0), p.table(1), p.table(2)};
  if (c.size() > 3) operands.push_back(p.sequence(3));
  BatchedValues out = c.emit(Op(op), operands);
  if (wanted[0]) out[0].value = p.examples(out[0].value);
  for (std::size_t r = 1; r < out.size(); ++r) {
    if (wanted[r]) out[r].value = p.table_gradient(out[r].value, r);
  }
  return out;
}

}  // namespace ricci::rule
