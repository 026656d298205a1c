#include "rule/lanes.h"

namespace ricci::rule {
namespace {

// bool[B] with sizes 1 behind, to go with a batched value.
Value beside(Value flags, Value batched) {
  Dims dims(batched.rank(), Dim(1));
  dims[0] = flags.dims()[0];
  return reshape_to(flags, std::move(dims));
}

}  // namespace

Value Lanes::leader() const {
  const Value lane = iota(active_.graph(), {.shape = active_.dims(), .dtype = DType::I32});
  return reduce(where(active_, lane, zero_like(lane)), {.op = ReduceKind::Max, .axes = {0}});
}

Value Lanes::any() const { return reduce(active_, {.op = ReduceKind::Any, .axes = {0}}); }

Value Lanes::safe(Value batched) const {
  const Value fixed = is_differentiable(batched.dtype()) ? stop_gradient(batched) : batched;
  const Value row = gather(fixed, leader(), {.axis = 0});
  return choose(batched, repeat_for_batch(row, batched.dims()[0]));
}

Value Lanes::choose(Value yes, Value no) const { return where(beside(active_, yes), yes, no); }

Value all_set(Value flags) {
  const Value set = flags.dtype() == DType::Bool ? flags : ne(flags, scalar_like(flags, 0));
  Axes axes;
  for (std::size_t i = 1; i < set.rank(); ++i) axes.emplace_back(static_cast<std::int64_t>(i));
  return axes.empty() ? set : reduce(set, {.op = ReduceKind::All, .axes = axes});
}

}  // namespace ricci::rule
