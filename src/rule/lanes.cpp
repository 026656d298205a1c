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

Lanes::Lanes(Value active) : active_(active) {
  const Value lane = iota(active.graph(), {.shape = active.dims(), .dtype = DType::I32});
  leader_ = reduce(where(active, lane, zero_like(lane)), {.op = ReduceKind::Max, .axes = {0}});
}

Value Lanes::any() const { return reduce(active_, {.op = ReduceKind::Any, .axes = {0}}); }

Value Lanes::safe(Value batched) const {
  Value row = gather(batched, leader_, {.axis = 0});
  if (has_derivative(row.dtype())) row = stop_gradient(row);
  return choose(batched, broadcast_to(reshape_to(row,
                                                 [&] {
                                                   Dims dims = batched.dims();
                                                   dims[0] = 1;
                                                   return dims;
                                                 }()),
                                      batched.dims()));
}

Value Lanes::choose(Value yes, Value no) const { return where(beside(active_, yes), yes, no); }

Value all_set(Value flags) {
  const Value set = flags.dtype() == DType::Bool ? flags : ne(flags, scalar_like(flags, 0));
  Axes axes;
  for (std::size_t i = 1; i < set.rank(); ++i) axes.emplace_back(static_cast<std::int64_t>(i));
  return axes.empty() ? set : reduce(set, {.op = ReduceKind::All, .axes = axes});
}

}  // namespace ricci::rule
