// NVIDIA's compiler of CUDA C++ at run time (NVRTC), loaded when the first kernel is compiled. It
// needs no GPU.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ricci::cuda {

/// Whether kernels can be compiled here, and why not.
[[nodiscard]] const std::string& why_no_compiler();
/// `13.0`; empty without a compiler.
[[nodiscard]] const std::string& compiler_version();
/// What it makes code for, ascending, 90 for sm_90; empty where it does not say.
[[nodiscard]] std::span<const int> compiler_architectures();

/// What a kernel is compiled to.
enum class CodeForm : unsigned char { Cubin, Ptx };

/// What kernels for a GPU are compiled to: machine code of its own, or PTX, which the driver
/// translates.
struct CodeTarget {
  std::string architecture;  ///< `sm_90`, `compute_90`
  CodeForm form = CodeForm::Cubin;
  bool operator==(const CodeTarget&) const = default;
};
/// For a GPU of a compute capability, 90 for 9.0. One that is newer than the compiler gets PTX of
/// the newest it knows; nothing for one that is older than all of them.
[[nodiscard]] std::optional<CodeTarget> code_target(int capability);
/// The same for a compiler that knows these, in ascending order; none: it does not say.
[[nodiscard]] std::optional<CodeTarget> code_target(int capability, std::span<const int> known);

/// A source for an architecture (`sm_90`). DeviceError with what the compiler says when it refuses;
/// UserError(unsupported_on_backend) without a compiler. Any number of threads may call it.
[[nodiscard]] std::vector<char> compile_source(const std::string& text,
                                               const std::string& architecture,
                                               CodeForm form = CodeForm::Cubin);
/// The options sources are compiled with: code depends on them.
[[nodiscard]] std::string_view compiler_options();

}  // namespace ricci::cuda
