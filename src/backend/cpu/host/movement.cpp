// Slices that begin where a value says: every one is a few strided copies.
#include <algorithm>

#include "backend/cpu/host/indices.h"
#include "backend/cpu/host/kernels.h"
#include "backend/cpu/host/view.h"
#include "backend/cpu/structured/strided_copy.h"

namespace ricci::cpu {
namespace {

void copy(const HostArguments& c, const OwnedView& to, const OwnedView& from) {
  copy_strided(to.view(), from.view(), c.pool);
}

std::int64_t clamped_start(const HostArguments& c, std::size_t k) {
  const auto& slice = c.as<loop::DynamicSlice>();
  return std::clamp<std::int64_t>(exact_integer(c, k), 0, slice.size - slice.length);
}

void run_dynamic_slice(const HostArguments& c) {
  const auto& slice = c.as<loop::DynamicSlice>();
  OwnedView from(c.operands[0]);
  from.narrow(static_cast<std::size_t>(slice.axis), clamped_start(c, 1), slice.length);
  copy(c, OwnedView(c.results[0]), from);
}

void run_dynamic_update(const HostArguments& c) {
  const auto& slice = c.as<loop::DynamicSlice>();
  const auto axis = static_cast<std::size_t>(slice.axis);
  const std::int64_t start = clamped_start(c, 2);
  const auto keep = [&](std::int64_t first, std::int64_t count) {
    OwnedView from(c.operands[0]);
    OwnedView to(c.results[0]);
    copy(c, to.narrow(axis, first, count), from.narrow(axis, first, count));
  };
  keep(0, start);
  keep(start + slice.length, slice.size - start - slice.length);
  OwnedView to(c.results[0]);
  copy(c, to.narrow(axis, start, slice.length), OwnedView(c.operands[1]));
}

}  // namespace

HostKernel dynamic_slice_kernel() noexcept { return {run_dynamic_slice}; }
HostKernel dynamic_update_kernel() noexcept { return {run_dynamic_update}; }

}  // namespace ricci::cpu
