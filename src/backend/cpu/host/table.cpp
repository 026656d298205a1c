// Which op has which host kernel.
#include "backend/cpu/host/kernels.h"

namespace ricci::cpu {

HostKernel host_kernel(OpKind kind) noexcept {
  switch (kind) {
    case OpKind::RngNormal: return rng_normal_kernel();
    case OpKind::RngUniform: return rng_uniform_kernel();
    case OpKind::RngBits: return rng_bits_kernel();
    case OpKind::Unary: return unary_kernel();
    case OpKind::Binary: return binary_kernel();
    case OpKind::Pad: return pad_kernel();
    case OpKind::Gather: return gather_kernel();
    case OpKind::GatherBackward: return gather_backward_kernel();
    case OpKind::ScatterAdd: return scatter_add_kernel();
    case OpKind::TakeAlongAxis: return take_along_axis_kernel();
    case OpKind::ScatterAddAlongAxis: return scatter_add_along_axis_kernel();
    case OpKind::DynamicNarrow: return dynamic_narrow_kernel();
    case OpKind::DynamicUpdate: return dynamic_update_kernel();
    case OpKind::Cumulative: return cumulative_kernel();
    case OpKind::CumsumBackward: return cumsum_backward_kernel();
    case OpKind::Sort: return sort_kernel();
    case OpKind::TopK: return top_k_kernel();
    case OpKind::ArgReduce: return arg_reduce_kernel();
    case OpKind::Sample: return sample_kernel();
    case OpKind::DenseSolve:
    case OpKind::BatchedDenseSolve: return dense_solve_kernel();
    case OpKind::TriangularSolve: return triangular_solve_kernel();
    case OpKind::GroupedMatmul: return grouped_matmul_kernel();
    case OpKind::GroupedMatmulBackward: return grouped_matmul_backward_kernel();
    case OpKind::Conv: return conv_kernel();
    case OpKind::Conv2dBackwardInput: return conv2d_backward_input_kernel();
    case OpKind::Conv2dBackwardWeight: return conv2d_backward_weight_kernel();
    case OpKind::SelectiveScan: return selective_scan_kernel();
    case OpKind::SelectiveScanBackward: return selective_scan_backward_kernel();
    case OpKind::GatedDeltaNet: return gated_delta_net_kernel();
    case OpKind::GatedDeltaNetBackward: return gated_delta_net_backward_kernel();
    default: return {};
  }
}

}  // namespace ricci::cpu
