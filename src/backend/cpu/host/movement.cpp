// Ops that move elements: every one is a few strided copies.
#include <algorithm>

#include "ricci/op/indexing.h"
#include "ricci/op/shape.h"

#include "backend/cpu/host/indices.h"
#include "backend/cpu/host/kernels.h"
#include "backend/cpu/host/view.h"
#include "backend/cpu/structured/strided_copy.h"

namespace ricci::cpu {
namespace {

void copy(const HostCall& c, const OwnedView& to, const OwnedView& from) {
  copy_strided(to.view(), from.view(), c.pool);
}

// Operand 0 as it is, written in the order of its own indices.
void run_identity(const HostCall& c) {
  copy(c, OwnedView(c.results[0].data, c.results[0].dtype, c.operands[0].dims),
       OwnedView(c.operands[0]));
}

void run_transpose(const HostCall& c) {
  const auto& op = *c.op.as<op::Transpose>();
  OwnedView from(c.operands[0]);
  copy(c, OwnedView(c.results[0]), from.permute([&](std::size_t k) { return op.perm[k].index(); }));
}

void run_expand(const HostCall& c) {
  OwnedView from(c.operands[0]);
  copy(c, OwnedView(c.results[0]), from.broadcast_to(c.results[0].dims));
}

void run_narrow(const HostCall& c) {
  const auto& op = *c.op.as<op::Narrow>();
  const std::size_t axis = op.axis.index();
  OwnedView from(c.operands[0]);
  copy(c, OwnedView(c.results[0]), from.narrow(axis, op.start.value(), c.results[0].dims[axis]));
}

void run_concat(const HostCall& c) {
  const std::size_t axis = c.op.as<op::Concat>()->axis.index();
  std::int64_t start = 0;
  for (const ArrayView& operand : c.operands) {
    OwnedView to(c.results[0]);
    copy(c, to.narrow(axis, start, operand.dims[axis]), OwnedView(operand));
    start += operand.dims[axis];
  }
}

void run_reverse(const HostCall& c) {
  OwnedView from(c.operands[0]);
  for (const Axis a : c.op.as<op::Reverse>()->axes) from.mirror(a.index());
  copy(c, OwnedView(c.results[0]), from);
}

std::int64_t clamped_start(const HostCall& c, std::size_t k, std::int64_t size, std::int64_t len) {
  return std::clamp<std::int64_t>(exact_integer(c, k), 0, size - len);
}

void run_dynamic_narrow(const HostCall& c) {
  const std::size_t axis = c.op.as<op::DynamicNarrow>()->axis.index();
  const std::int64_t len = c.results[0].dims[axis];
  OwnedView from(c.operands[0]);
  from.narrow(axis, clamped_start(c, 1, c.operands[0].dims[axis], len), len);
  copy(c, OwnedView(c.results[0]), from);
}

void run_dynamic_update(const HostCall& c) {
  const std::size_t axis = c.op.as<op::DynamicUpdate>()->axis.index();
  const std::int64_t size = c.operands[0].dims[axis];
  const std::int64_t len = c.operands[1].dims[axis];
  const std::int64_t start = clamped_start(c, 2, size, len);
  const auto keep = [&](std::int64_t first, std::int64_t count) {
    OwnedView from(c.operands[0]);
    OwnedView to(c.results[0]);
    copy(c, to.narrow(axis, first, count), from.narrow(axis, first, count));
  };
  keep(0, start);
  keep(start + len, size - start - len);
  OwnedView to(c.results[0]);
  copy(c, to.narrow(axis, start, len), OwnedView(c.operands[1]));
}

}  // namespace

HostKernel identity_kernel() noexcept { return {run_identity}; }
HostKernel transpose_kernel() noexcept { return {run_transpose}; }
HostKernel expand_kernel() noexcept { return {run_expand}; }
HostKernel narrow_kernel() noexcept { return {run_narrow}; }
HostKernel concat_kernel() noexcept { return {run_concat}; }
HostKernel reverse_kernel() noexcept { return {run_reverse}; }
HostKernel dynamic_narrow_kernel() noexcept { return {run_dynamic_narrow}; }
HostKernel dynamic_update_kernel() noexcept { return {run_dynamic_update}; }

}  // namespace ricci::cpu
