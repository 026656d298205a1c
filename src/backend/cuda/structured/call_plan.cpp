#include "backend/cuda/structured/call_plan.h"

#include <algorithm>

#include "backend/cuda/structured/roles.h"
#include "device/reference_call.h"

namespace ricci::cuda {

namespace {

// How a role is planned, and whether there is a kernel for these types.
struct Serving {
  std::span<const Type> operands;

  [[nodiscard]] DType dtype(std::size_t k = 0) const { return operands[k].dtype; }
  [[nodiscard]] bool has_order() const { return !is_complex(dtype()); }

  bool operator()(const loop::MatrixProduct&) const { return dtype() != DType::Bool; }
  bool operator()(const loop::Convolution& c) const { return is_float(c.dtype); }
  bool operator()(const loop::Pooling& p) const { return is_float(p.dtype); }
  bool operator()(const loop::Attention& a) const { return serves_attention(a, operands); }
  // Indices that are floats may be none: the host says so.
  bool operator()(const loop::Gather&) const { return is_int(dtype(1)); }
  bool operator()(const loop::Scatter&) const { return is_int(dtype(1)) && dtype() != DType::Bool; }
  bool operator()(const loop::ScatterInto& s) const {
    const bool ordered = s.kind == ScatterKind::Max || s.kind == ScatterKind::Min;
    return is_int(dtype(2)) && dtype() != DType::Bool && (has_order() || !ordered);
  }
  bool operator()(const loop::DynamicSlice& s) const { return is_int(dtype(s.replaces ? 2 : 1)); }
  bool operator()(const loop::Sort& s) const { return has_order() && s.x.size < (1LL << 30); }
  bool operator()(const loop::ArgReduce&) const { return has_order(); }
  bool operator()(const loop::Cumulative& c) const {
    const bool ordered = c.kind == CumulativeKind::Cummax || c.kind == CumulativeKind::Cummin;
    return dtype() != DType::Bool && (has_order() || !ordered);
  }
  template <class Role>
  bool operator()(const Role&) const {
    return false;
  }
};

struct Planning {
  PlanBuilder& builder;
  const Program& program;
  const Means& means;

  void operator()(const loop::MatrixProduct& r) const { plan_product(builder, program, r, means); }
  void operator()(const loop::Convolution& r) const { plan_convolution(builder, r, means); }
  void operator()(const loop::Pooling& r) const { plan_pooling(builder, r); }
  void operator()(const loop::Attention& r) const { plan_attention(builder, r); }
  void operator()(const loop::Gather& r) const { plan_gather(builder, r); }
  void operator()(const loop::Scatter& r) const { plan_scatter(builder, r); }
  void operator()(const loop::ScatterInto& r) const { plan_scatter_into(builder, r); }
  void operator()(const loop::DynamicSlice& r) const { plan_slice(builder, r); }
  void operator()(const loop::Sort& r) const { plan_sort(builder, r); }
  void operator()(const loop::ArgReduce& r) const { plan_arg_reduce(builder, r); }
  void operator()(const loop::Cumulative& r) const { plan_cumulative(builder, r); }
  template <class Role>
  void operator()(const Role&) const {}
};

}  // namespace

bool serves(const loop::Call& call, std::span<const Type> operands) {
  return std::visit(Serving{operands}, call);
}

std::optional<CallPlan> plan_call(const Program& program, const CallStep& step,
                                  const Means& means) {
  std::vector<Type> types;
  for (const BufferView& v : step.operands) types.push_back(v.type);
  if (!serves(step.call, types)) return std::nullopt;
  PlanBuilder builder(step,
                      means.gpu != nullptr ? means.gpu->shared_bytes() : PlanBuilder::HopperShared);
  if (device::gives_nothing(program, step)) return std::move(builder.plan);
  std::visit(Planning{builder, program, means}, step.call);
  return std::move(builder.plan);
}

}  // namespace ricci::cuda
