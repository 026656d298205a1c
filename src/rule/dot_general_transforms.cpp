// Derivatives and batching of the product over any axes.
#include "op/dot_axes.h"
#include "rule/axis_moves.h"
#include "rule/derivative_parts.h"
#include "rule/tables/batch_rules.h"
#include "rule/tables/vjp_rules.h"

namespace ricci::rule {
namespace {

// Where `axis` stands among `axes` in ascending order.
std::size_t place_among(const Axes& axes, Axis axis) {
  return static_cast<std::size_t>(
      std::ranges::count_if(axes, [&](Axis other) { return other.value < axis.value; }));
}

// How an operand's axes are found in a product made for its cotangent.
struct Sources {
  std::size_t batch = 0;        // of the first batch axis
  std::size_t free = 0;         // of the first free axis
  std::size_t contracting = 0;  // of the first contracting axis, in the partner's ascending order
};

// The transpose that puts every axis of such a product where the operand has it.
Axes back_in_place(std::size_t rank, const Sources& from, const Axes& batch,
                   const Axes& contracting, const Axes& partner_contracting) {
  Axes perm(rank);
  const auto put = [&](Axis at, std::size_t source) {
    perm[at.index()] = static_cast<std::int64_t>(source);
  };
  for (std::size_t i = 0; i < batch.size(); ++i) put(batch[i], from.batch + i);
  for (std::size_t i = 0; i < contracting.size(); ++i) {
    put(contracting[i],
        from.contracting + place_among(partner_contracting, partner_contracting[i]));
  }
  const Axes free = free_axes(rank, contracting, batch);
  for (std::size_t i = 0; i < free.size(); ++i) put(free[i], from.free + i);
  return perm;
}

}  // namespace

// With g [batch, lhs free, rhs free], dlhs sums g·rhs over rhs's free axes and has dims
// [batch, lhs free, contracting as rhs orders them]; drhs sums lhs·g over lhs's free axes and has
// dims [batch, contracting as lhs orders them, rhs free].
Cotangents vjp(const op::DotGeneral& op, const VjpContext& c) {
  Cotangents out = c.none();
  const Value g = c.cotangent();
  const Axes lhs_free = free_axes(c[0].rank(), op.lhs_contracting, op.lhs_batch);
  const Axes rhs_free = free_axes(c[1].rank(), op.rhs_contracting, op.rhs_batch);
  const std::size_t batches = op.lhs_batch.size();
  const std::size_t contracted = op.lhs_contracting.size();
  const Axes g_batch = counted(0, batches);
  if (c.needs(0)) {
    const Value raw =
        dot_general(g, conj(c[1]),
                    {.lhs_contracting = counted(batches + lhs_free.size(), rhs_free.size()),
                     .rhs_contracting = rhs_free,
                     .lhs_batch = g_batch,
                     .rhs_batch = op.rhs_batch});
    const Sources from{.batch = 0, .free = batches, .contracting = batches + lhs_free.size()};
    out[0] = permuted(raw, back_in_place(c[0].rank(), from, op.lhs_batch, op.lhs_contracting,
                                         op.rhs_contracting));
  }
  if (c.needs(1)) {
    const Value raw = dot_general(conj(c[0]), g,
                                  {.lhs_contracting = lhs_free,
                                   .rhs_contracting = counted(batches, lhs_free.size()),
                                   .lhs_batch = op.lhs_batch,
                                   .rhs_batch = g_batch});
    const Sources from{.batch = 0, .free = batches + contracted, .contracting = batches};
    out[1] = permuted(raw, back_in_place(c[1].rank(), from, op.rhs_batch, op.rhs_contracting,
                                         op.lhs_contracting));
  }
  return out;
}

// Both batched: one more pair of batch axes. One batched: its batch is a free axis of the product,
// brought to the front afterwards.
BatchedValues batch(const op::DotGeneral& op, const VmapContext& c) {
  op::DotGeneral wide = op;
  if (c.batched(0)) {
    wide.lhs_contracting = shifted(op.lhs_contracting);
    wide.lhs_batch = shifted(op.lhs_batch);
  }
  if (c.batched(1)) {
    wide.rhs_contracting = shifted(op.rhs_contracting);
    wide.rhs_batch = shifted(op.rhs_batch);
  }
  if (c.batched(0) && c.batched(1)) {
    wide.lhs_batch.insert(wide.lhs_batch.begin(), Axis(0));
    wide.rhs_batch.insert(wide.rhs_batch.begin(), Axis(0));
    return {dot_general(c[0], c[1], wide)};
  }
  const std::size_t lhs_free = c.type(0).rank() - op.lhs_contracting.size() - op.lhs_batch.size();
  const std::size_t place = op.lhs_batch.size() + (c.batched(0) ? 0 : lhs_free);
  return {with_axis_moved(dot_general(c[0], c[1], wide), place, 0)};
}

}  // namespace ricci::rule
