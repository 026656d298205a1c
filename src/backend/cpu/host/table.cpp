// Which role has which host kernel.
#include "backend/cpu/host/kernels.h"
#include "backend/cpu/run/library_parts.h"

extern "C" [[gnu::weak]] ricci::cpu::LinearAlgebra* ricci_cpu_linear_algebra() noexcept;

namespace ricci::cpu {
namespace {

using loop::Pass;

HostKernel kernel(const loop::HostCall& /*c*/) noexcept { return {}; }
HostKernel kernel(const loop::MatrixProduct& /*c*/) noexcept { return {}; }
HostKernel kernel(const loop::Pooling& /*c*/) noexcept { return {}; }
HostKernel kernel(const loop::Attention& /*c*/) noexcept { return {}; }
HostKernel kernel(const loop::FourierTransform& /*c*/) noexcept { return {}; }

HostKernel kernel(const loop::GroupedProduct& c) noexcept {
  return c.pass == Pass::Forward ? grouped_product_kernel() : grouped_product_backward_kernel();
}
HostKernel kernel(const loop::PackedProduct& c) noexcept {
  return c.experts == 0 ? packed_product_kernel() : packed_experts_kernel();
}
HostKernel kernel(const loop::PackedDecoding& /*c*/) noexcept { return packed_decoding_kernel(); }
HostKernel kernel(const loop::IntegerProduct& /*c*/) noexcept { return integer_product_kernel(); }
HostKernel kernel(const loop::IntegerConvolution& /*c*/) noexcept {
  return integer_convolution_kernel();
}
HostKernel kernel(const loop::Convolution& c) noexcept {
  switch (c.of) {
    case loop::Convolution::Of::Image: return conv_image_kernel();
    case loop::Convolution::Of::ImageGradient: return conv_image_gradient_kernel();
    case loop::Convolution::Of::WeightGradient: return conv_weight_gradient_kernel();
  }
  return {};
}
HostKernel kernel(const loop::Sort& /*c*/) noexcept { return sort_kernel(); }
HostKernel kernel(const loop::ArgReduce& /*c*/) noexcept { return arg_reduce_kernel(); }
HostKernel kernel(const loop::Cumulative& /*c*/) noexcept { return cumulative_kernel(); }
HostKernel kernel(const loop::Gather& c) noexcept {
  return c.each ? gather_each_kernel() : gather_kernel();
}
HostKernel kernel(const loop::Scatter& c) noexcept {
  return c.each ? scatter_each_kernel() : scatter_kernel();
}
HostKernel kernel(const loop::ScatterInto& /*c*/) noexcept { return scatter_into_kernel(); }
HostKernel kernel(const loop::DynamicSlice& c) noexcept {
  return c.replaces ? dynamic_update_kernel() : dynamic_slice_kernel();
}
HostKernel kernel(const loop::Sample& /*c*/) noexcept { return sample_kernel(); }
HostKernel kernel(const loop::SelectiveScan& c) noexcept {
  return c.pass == Pass::Forward ? selective_scan_kernel() : selective_scan_backward_kernel();
}
HostKernel kernel(const loop::GatedDelta& c) noexcept {
  return c.pass == Pass::Forward ? gated_delta_kernel() : gated_delta_backward_kernel();
}
HostKernel kernel(const loop::Splats& c) noexcept { return splats_kernel(c.stage); }

}  // namespace

HostKernel host_kernel(const loop::Call& call) noexcept {
  const auto own = [&]<class Role>(const Role& role) -> HostKernel {
    if constexpr (std::is_same_v<Role, loop::Solve> || std::is_same_v<Role, loop::MatrixFunction>) {
      return ricci_cpu_linear_algebra == nullptr ? HostKernel{} : ricci_cpu_linear_algebra()(call);
    } else {
      return kernel(role);
    }
  };
  return std::visit(own, call);
}

}  // namespace ricci::cpu
