#include "schedule/scatter_loops.h"

#include <algorithm>
#include <limits>

#include "ricci/build/build.h"
#include "ricci/build/reduce.h"
#include "ricci/compiler/rule/lower.h"
#include "ricci/op/ops.h"

namespace ricci::schedule {
namespace {

// Rows are numbered in i32, and what is in range of them fits.
constexpr std::int64_t MostRows = std::numeric_limits<std::int32_t>::max();

Value zero_of(const Value& x) { return x.graph().constant(Tensor::splat({x.dtype(), {}}, 0.0)); }

// The indices, where the program has them; nothing unless all are in [0, limit).
std::optional<std::vector<std::int64_t>> known_indices(const Value& indices, std::int64_t limit) {
  const Op& op = indices.graph().node(indices.id().node).op;
  std::vector<std::int64_t> known;
  if (const auto* constant = op.as<op::Constant>()) {
    known = constant->value.numbers<std::int64_t>();
  } else if (op.is<op::Iota>() && indices.rank() == 1) {
    for (std::int64_t i = 0; i < indices.dims()[0].value(); ++i) known.push_back(i);
  } else {
    return std::nullopt;
  }
  const auto inside = [&](std::int64_t i) { return i >= 0 && i < limit; };
  if (!std::ranges::all_of(known, inside)) return std::nullopt;
  return known;
}

// Which updates each row gets: layer by layer one for each row, in their order, -1 for none.
// Nothing when rows that get many make that much more to read than there is.
std::optional<std::vector<std::vector<std::int64_t>>> layers_of_rows(
    const std::vector<std::int64_t>& indices, std::int64_t rows) {
  constexpr std::size_t MostLayers = 16;
  std::vector<std::size_t> taken(static_cast<std::size_t>(rows), 0);
  std::vector<std::vector<std::int64_t>> layers;
  for (std::size_t k = 0; k < indices.size(); ++k) {
    const auto row = static_cast<std::size_t>(indices[k]);
    const std::size_t layer = taken[row]++;
    if (layer == MostLayers) return std::nullopt;
    if (layer == layers.size()) layers.emplace_back(static_cast<std::size_t>(rows), -1);
    layers[layer][row] = static_cast<std::int64_t>(k);
  }
  const bool reads_much =
      layers.size() > 1 && layers.size() * static_cast<std::size_t>(rows) > 3 * indices.size();
  if (reads_much) return std::nullopt;
  return layers;
}

bool is_in_line(const std::vector<std::int64_t>& indices) {
  bool in_line = true;
  for (std::size_t k = 1; k < indices.size(); ++k) in_line &= indices[k] == indices[k - 1] + 1;
  return in_line;
}

// out[o, r, t] = updates[o, r - first, t] for the rows from `first` on, 0 for others.
Value padded(const Value& updates, std::int64_t first, std::int64_t rows) {
  const std::int64_t count = updates.dims()[1].value();
  return pad(updates, zero_of(updates),
             {.low = {0, first, 0}, .high = {0, rows - count - first, 0}});
}

// out[o, r, t] = updates[o, update[r], t], 0 for rows without one.
Value looked_up(const Value& updates, std::vector<std::int64_t> update) {
  const auto rows = static_cast<std::int64_t>(update.size());
  const Value zero = zero_of(updates);
  const bool all = std::ranges::find(update, -1) == update.end();
  std::vector<std::int64_t> has(update.size());
  std::ranges::transform(update, has.begin(), [](std::int64_t k) { return k >= 0 ? 1 : 0; });
  std::ranges::replace(update, std::int64_t{-1}, std::int64_t{0});
  Graph& graph = updates.graph();
  const Value places =
      graph.constant(Tensor::from_numbers<std::int64_t>({DType::I64, {rows}}, update));
  const Value picked = gather(updates, places, {.axis = 1});
  if (all) return picked;
  const Value wanted =
      graph.constant(Tensor::from_numbers<std::int64_t>({DType::Bool, {1, rows, 1}}, has));
  return where(wanted, picked, zero);
}

// The indices, each read where it points to in a row that repeats it: itself, or a fault.
Value checked(Value indices, std::int64_t limit) {
  Dims one = indices.dims();
  one.emplace_back(1);
  Dims repeated = indices.dims();
  repeated.emplace_back(limit);
  const Value column = reshape_to(indices, one);
  return reshape_to(take_along_axis(broadcast_to(column, repeated), column, {.axis = -1}),
                    indices.dims());
}

// out[o, r, t] = Σ_k (indices[k] = r ? updates[o, k, t] : 0); updates have an axis of one row.
Value compared(Value updates, Value indices, std::int64_t rows) {
  const Value numbers = iota(updates.graph(), {.shape = {1, rows, 1, 1}, .axis = 1});
  const Value hit = eq(cast(indices, {.to = DType::I32}), numbers);
  return sum(where(hit, updates, zero_of(updates)), {2});
}

}  // namespace

bool is_scatter(const Op& op) {
  return op.is<op::GatherBackward>() || op.is<op::ScatterAdd>() || op.is<op::ScatterAddAlongAxis>();
}

NewResults scatter_by_loops(const NodeVisit& v, const Target& target) {
  if (!is_scatter(v.node.op)) return std::nullopt;
  const loop::Call call = lower_node(v.rebuild.from(), v.node).call;
  const auto* scatter = std::get_if<loop::Scatter>(&call);
  // Floats that hold indices are checked one by one, in a kernel of its own.
  if (scatter == nullptr || !is_int(v.operands[1].dtype())) return std::nullopt;
  const auto& [out, count, each] = *scatter;
  // Indices are checked even where there is nothing to add, or nothing to add to.
  if (out.outer * out.inner == 0 || out.size == 0 || out.size > MostRows) return std::nullopt;
  const Dims& dims = v.node.types[0].dims;
  const Value& updates = v.operands[0];
  if (count == 0) return std::vector{broadcast_to(zero_of(updates), dims)};
  const auto known = known_indices(v.operands[1], out.size);
  if (known && !each) {
    if (const auto layers = layers_of_rows(*known, out.size)) {
      const Value slices = reshape_to(updates, {out.outer, count, out.inner});
      Value placed;
      if (is_in_line(*known)) {
        placed = padded(slices, known->front(), out.size);
      } else {
        for (const std::vector<std::int64_t>& layer : *layers) {
          const Value part = looked_up(slices, layer);
          placed = placed.valid() ? add(placed, part) : part;
        }
      }
      // A sum starts from zero, which makes -0 to 0.
      return std::vector{reshape_to(add(placed, zero_of(placed)), dims)};
    }
  }
  if (!target.compares_indices(*scatter)) return std::nullopt;
  const Value indices = known ? v.operands[1] : checked(v.operands[1], out.size);
  const Dims by = each ? Dims{out.outer, 1, count, out.inner} : Dims{1, 1, count, 1};
  const Value sums = compared(reshape_to(updates, {out.outer, 1, count, out.inner}),
                              reshape_to(indices, by), out.size);
  return std::vector{reshape_to(sums, dims)};
}

}  // namespace ricci::schedule
