// The kernels the table lists, by family file.
#pragma once

#include "backend/cpu/run/host_call.h"

namespace ricci::cpu {

// movement.cpp
[[nodiscard]] HostKernel dynamic_slice_kernel() noexcept;
[[nodiscard]] HostKernel dynamic_update_kernel() noexcept;

// gather.cpp
[[nodiscard]] HostKernel gather_kernel() noexcept;
[[nodiscard]] HostKernel gather_each_kernel() noexcept;

// scatter.cpp
[[nodiscard]] HostKernel scatter_kernel() noexcept;
[[nodiscard]] HostKernel scatter_each_kernel() noexcept;

// scatter_into.cpp
[[nodiscard]] HostKernel scatter_into_kernel() noexcept;

// cumulative.cpp
[[nodiscard]] HostKernel cumulative_kernel() noexcept;

// order.cpp
[[nodiscard]] HostKernel sort_kernel() noexcept;
[[nodiscard]] HostKernel arg_reduce_kernel() noexcept;

// sample.cpp
[[nodiscard]] HostKernel sample_kernel() noexcept;

// solve.cpp
[[nodiscard]] HostKernel dense_solve_kernel() noexcept;
[[nodiscard]] HostKernel triangular_solve_kernel() noexcept;

// factorization.cpp, spectral.cpp, matrix_function.cpp
[[nodiscard]] HostKernel cholesky_kernel() noexcept;
[[nodiscard]] HostKernel lu_kernel() noexcept;
[[nodiscard]] HostKernel qr_kernel() noexcept;
[[nodiscard]] HostKernel eigh_kernel() noexcept;
[[nodiscard]] HostKernel svd_kernel() noexcept;
[[nodiscard]] HostKernel exponential_kernel() noexcept;
[[nodiscard]] HostKernel adjugate_kernel() noexcept;

// grouped_matmul.cpp
[[nodiscard]] HostKernel grouped_product_kernel() noexcept;
[[nodiscard]] HostKernel grouped_product_backward_kernel() noexcept;

// packed_product.cpp, integer_product.cpp
[[nodiscard]] HostKernel packed_product_kernel() noexcept;
[[nodiscard]] HostKernel packed_experts_kernel() noexcept;
[[nodiscard]] HostKernel packed_decoding_kernel() noexcept;
[[nodiscard]] HostKernel integer_product_kernel() noexcept;
[[nodiscard]] HostKernel integer_convolution_kernel() noexcept;

// selective_scan.cpp, gated_delta_net.cpp
[[nodiscard]] HostKernel selective_scan_kernel() noexcept;
[[nodiscard]] HostKernel selective_scan_backward_kernel() noexcept;
[[nodiscard]] HostKernel gated_delta_kernel() noexcept;
[[nodiscard]] HostKernel gated_delta_backward_kernel() noexcept;

// splats.cpp, splats_backward.cpp
[[nodiscard]] HostKernel splats_kernel(loop::Splats::Stage stage) noexcept;
[[nodiscard]] HostKernel splats_backward_kernel() noexcept;

// conv.cpp
[[nodiscard]] HostKernel conv_image_kernel() noexcept;
[[nodiscard]] HostKernel conv_image_gradient_kernel() noexcept;
[[nodiscard]] HostKernel conv_weight_gradient_kernel() noexcept;

}  // namespace ricci::cpu
