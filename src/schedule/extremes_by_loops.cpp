#include "schedule/extremes_by_loops.h"

#include <limits>

#include "ricci/build/build.h"
#include "ricci/compiler/rule/lower.h"
#include "ricci/op/ops.h"

namespace ricci::schedule {

NewResults extremes_by_loops(const NodeVisit& v) {
  const auto* op = v.node.op.as<op::ArgReduce>();
  if (op == nullptr) return std::nullopt;
  // What is only true or false has no extreme; as numbers it does.
  const bool flags = v.operands[0].dtype() == DType::Bool;
  const Value x = flags ? cast_to(v.operands[0], DType::U8) : v.operands[0];
  const loop::Call call = lower_node(v.rebuild.from(), v.node).call;
  const auto* search = std::get_if<loop::ArgReduce>(&call);
  // Places are counted in i32.
  constexpr std::int64_t MostPlaces = std::numeric_limits<std::int32_t>::max();
  if (search == nullptr || search->x.size > MostPlaces) return std::nullopt;
  const Axis axis = op->axis;
  Dims one = x.dims();
  one[axis.index()] = 1;
  Dims line(x.rank(), 1);
  line[axis.index()] = x.dims()[axis.index()];
  const ReduceKind kind = search->largest ? ReduceKind::Max : ReduceKind::Min;
  const Value extreme = reshape_to(reduce(x, {.op = kind, .axes = {axis}}), one);
  // Where there is a NaN it is the extreme, which equals nothing.
  Value hit = eq(x, extreme);
  if (is_float(x.dtype())) hit = logical_or(hit, is_nan(x));
  const Value place = iota(v.graph(), {.shape = line, .axis = axis});
  const Value none = v.graph().constant(Tensor::splat({DType::I32, {}}, MostPlaces));
  const Value first = reduce(where(hit, place, none), {.op = ReduceKind::Min, .axes = {axis}});
  return std::vector{reshape_to(cast(first, {.to = op->index_dtype}), v.node.types[0].dims)};
}

}  // namespace ricci::schedule
