// NVIDIA's compiler of CUDA C++ at run time (NVRTC), loaded when the first kernel is compiled. It
// needs no GPU.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ricci::cuda {

/// Whether kernels can be compiled here, and why not.
[[nodiscard]] const std::string& why_no_compiler();
/// `13.0`; empty without a compiler.
[[nodiscard]] const std::string& compiler_version();

/// What a kernel is compiled to.
enum class CodeForm : unsigned char { Cubin, Ptx };

/// A source for an architecture (`sm_90`). DeviceError with what the compiler says when it refuses;
/// UserError(unsupported_on_backend) without a compiler. Any number of threads may call it.
[[nodiscard]] std::vector<char> compile_source(const std::string& text,
                                               const std::string& architecture,
                                               CodeForm form = CodeForm::Cubin);
/// The options sources are compiled with: code depends on them.
[[nodiscard]] std::string_view compiler_options();

}  // namespace ricci::cuda
