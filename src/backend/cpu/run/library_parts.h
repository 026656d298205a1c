// Kernels that stand on a library: linear algebra on OpenBLAS, convolutions of f32 on oneDNN. What
// runs programs refers to them weakly, so that they, and with them the library, are linked only
// where somebody asks for them by name: the back end that compiles asks for all, the object of a
// program compiled ahead of time for those its calls need (`Package::parts`). Their sources are
// compiled one by one, because an archive gives whole members.
#pragma once

#include <memory>

#include "ricci/compiler/loop/call.h"

#include "backend/cpu/run/host_call.h"
#include "backend/cpu/structured/conv.h"

namespace ricci::cpu {

/// The kernel of a solve or of a function of matrices.
using LinearAlgebra = HostKernel(const loop::Call& call) noexcept;
/// What oneDNN has for a convolution; null when it has nothing.
using LibraryConvolution = std::shared_ptr<const ConvMethod>(const loop::Convolution& call);

/// The symbols by which parts are asked for.
inline constexpr const char* LinearAlgebraSymbol = "ricci_cpu_linear_algebra";
inline constexpr const char* ConvolutionSymbol = "ricci_cpu_convolution";

}  // namespace ricci::cpu

extern "C" {
ricci::cpu::LinearAlgebra* ricci_cpu_linear_algebra() noexcept;
ricci::cpu::LibraryConvolution* ricci_cpu_convolution() noexcept;
}
