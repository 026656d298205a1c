// Batching of the ops that draw. One node draws for the whole batch, in row-major order of
// [batch, example…]: examples get different parts of one stream. With a key per example each draws
// from a stream of its own, as it does alone.
#include "rule/derivative_parts.h"
#include "rule/tables/batch_rules.h"

namespace ricci::rule {
namespace {

// Example by example, on one row of each operand.
template <class Random>
BatchedValues draw_each(const Random& op, const VmapContext& c, std::vector<Value> rows) {
  const ScanOptions over{.xs = std::move(rows), .length = c.batch()};
  return {scan({}, over, [&](Graph& body, std::span<const Value> in) {
            return body.add_node(Op(op), in, {});
          }).at(0)};
}

// The key operand, if there is one, is operand `k`.
template <class Random>
BatchedValues draw_together(Random op, const VmapContext& c, std::size_t k) {
  if (k < c.size() && c.batched(k)) return draw_each(op, c, {c[k]});
  op.shape = c.with_batch(c.node().types[0].dims);
  std::vector<Value> operands;
  if (k < c.size()) operands.push_back(c[k]);
  return c.emit(Op(op), operands);
}

// A template says no more than the result's type does.
template <class Random>
BatchedValues draw_typed(Random op, const VmapContext& c) {
  const std::size_t k = op.shape ? 0 : 1;
  op.shape = c.node().types[0].dims;
  op.dtype = c.node().types[0].dtype;
  return draw_together(std::move(op), c, k);
}

}  // namespace

BatchedValues batch(const op::RngNormal& op, const VmapContext& c) { return draw_typed(op, c); }
BatchedValues batch(const op::RngUniform& op, const VmapContext& c) { return draw_typed(op, c); }
BatchedValues batch(const op::RngBits& op, const VmapContext& c) { return draw_together(op, c, 0); }

// Rows of all examples are rows of one matrix; row b·rows + r uses word b·rows + r.
BatchedValues batch(const op::Sample& op, const VmapContext& c) {
  if (c.size() > 1 && c.batched(1)) return draw_each(op, c, {c.lifted(0), c[1]});
  const bool matrix = c.type(0).rank() == 2;
  std::vector<Value> operands{matrix ? c.folded(0) : c.lifted(0)};
  if (c.size() > 1) operands.push_back(c[1]);
  return {c.unfolded(c.emit(Op(op), operands)[0].value)};
}

}  // namespace ricci::rule
