// How each role is planned. Results nobody wants have no place, and none that is planned is empty.
#pragma once

#include "backend/cuda/structured/plan_builder.h"

namespace ricci::cuda {

void plan_product(PlanBuilder& builder, const Program& program, const loop::MatrixProduct& product,
                  const Means& means);
void plan_convolution(PlanBuilder& builder, const loop::Convolution& convolution,
                      const Means& means);
void plan_pooling(PlanBuilder& builder, const loop::Pooling& pooling);
void plan_attention(PlanBuilder& builder, const loop::Attention& attention);
void plan_gather(PlanBuilder& builder, const loop::Gather& gather);
void plan_scatter(PlanBuilder& builder, const loop::Scatter& scatter);
void plan_scatter_into(PlanBuilder& builder, const loop::ScatterInto& scatter);
void plan_slice(PlanBuilder& builder, const loop::DynamicSlice& slice);
void plan_sort(PlanBuilder& builder, const loop::Sort& sort);
void plan_arg_reduce(PlanBuilder& builder, const loop::ArgReduce& reduce);
void plan_cumulative(PlanBuilder& builder, const loop::Cumulative& cumulative);

/// Attention of a type and width that there is a kernel for.
[[nodiscard]] bool serves_attention(const loop::Attention& attention,
                                    std::span<const Type> operands);

}  // namespace ricci::cuda
