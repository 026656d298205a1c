// What makes code for NVIDIA GPUs, whether or not there is one: CUDA C++ needs nothing, PTX and
// machine code NVRTC alone.
#pragma once

#include "ricci/compiler/device/backend.h"

namespace ricci::cuda {

class Compiler final : public device::Compiler {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "cuda"; }
  [[nodiscard]] const schedule::Target& target() const noexcept override;
  /// As it is where cuBLASLt is.
  [[nodiscard]] std::unique_ptr<device::Outline> outline(
      std::shared_ptr<const Program> program,
      const device::CompileSettings& settings = {}) const override;
  /// `cuda`: its kernels as CUDA C++. `ptx`: as what `machine` (an architecture such as `sm_80`;
  /// `host` is that of this machine's GPU) assembles.
  [[nodiscard]] std::string code_text(const Program& program, std::string_view form,
                                      const std::string& machine) const override;
};

/// The same for those who have opened a GPU.
[[nodiscard]] std::string code_text(const Program& program, std::string_view form,
                                    const std::string& machine);
/// The architecture that `machine` names: `host` is this machine's. UserError for one that there
/// is not, that is too old, or that the compiler which is here does not know.
[[nodiscard]] std::string architecture_named(const std::string& machine);

/// What backends.cpp opens.
[[nodiscard]] std::shared_ptr<const device::Compiler> make_compiler();

}  // namespace ricci::cuda
