// The kernels the table lists, by family file.
#pragma once

#include "backend/cpu/run/host_call.h"

namespace ricci::cpu {

// movement.cpp
[[nodiscard]] HostKernel pad_kernel() noexcept;
[[nodiscard]] HostKernel dynamic_narrow_kernel() noexcept;
[[nodiscard]] HostKernel dynamic_update_kernel() noexcept;

// gather.cpp
[[nodiscard]] HostKernel gather_kernel() noexcept;
[[nodiscard]] HostKernel take_along_axis_kernel() noexcept;

// scatter.cpp
[[nodiscard]] HostKernel gather_backward_kernel() noexcept;
[[nodiscard]] HostKernel scatter_add_kernel() noexcept;
[[nodiscard]] HostKernel scatter_add_along_axis_kernel() noexcept;

// cumulative.cpp
[[nodiscard]] HostKernel cumulative_kernel() noexcept;
[[nodiscard]] HostKernel cumsum_backward_kernel() noexcept;

// order.cpp
[[nodiscard]] HostKernel sort_kernel() noexcept;
[[nodiscard]] HostKernel top_k_kernel() noexcept;
[[nodiscard]] HostKernel arg_reduce_kernel() noexcept;

// random.cpp
[[nodiscard]] HostKernel rng_normal_kernel() noexcept;
[[nodiscard]] HostKernel rng_uniform_kernel() noexcept;
[[nodiscard]] HostKernel rng_bits_kernel() noexcept;

// sample.cpp
[[nodiscard]] HostKernel sample_kernel() noexcept;

// solve.cpp
[[nodiscard]] HostKernel dense_solve_kernel() noexcept;
[[nodiscard]] HostKernel triangular_solve_kernel() noexcept;

// grouped_matmul.cpp
[[nodiscard]] HostKernel grouped_matmul_kernel() noexcept;
[[nodiscard]] HostKernel grouped_matmul_backward_kernel() noexcept;

// selective_scan.cpp, gated_delta_net.cpp
[[nodiscard]] HostKernel selective_scan_kernel() noexcept;
[[nodiscard]] HostKernel selective_scan_backward_kernel() noexcept;
[[nodiscard]] HostKernel gated_delta_net_kernel() noexcept;
[[nodiscard]] HostKernel gated_delta_net_backward_kernel() noexcept;

// elementwise.cpp
[[nodiscard]] HostKernel unary_kernel() noexcept;
[[nodiscard]] HostKernel binary_kernel() noexcept;

// conv.cpp
[[nodiscard]] HostKernel conv_kernel() noexcept;
[[nodiscard]] HostKernel conv2d_backward_input_kernel() noexcept;
[[nodiscard]] HostKernel conv2d_backward_weight_kernel() noexcept;

}  // namespace ricci::cpu
