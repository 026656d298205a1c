// The back end of NVIDIA GPUs. The driver, NVRTC and cuBLASLt are loaded when it is first opened.
#pragma once

#include "ricci/compiler/device/backend.h"
#include "ricci/compiler/device/thread_pool.h"

#include "backend/cuda/run/gpu.h"
#include "backend/cuda/run/memory.h"

namespace ricci::cuda {

class Backend final : public device::Backend {
 public:
  /// UserError(unsupported_on_backend) that says why when no GPU can be used here.
  explicit Backend(int threads);

  [[nodiscard]] std::string_view name() const noexcept override { return "cuda"; }
  [[nodiscard]] const schedule::Target& target() const noexcept override;
  [[nodiscard]] Memory& memory() const noexcept override { return memory_; }
  /// Those that compile kernels.
  [[nodiscard]] int threads() const noexcept override { return pool_.threads(); }
  [[nodiscard]] std::unique_ptr<device::Executable> compile(
      std::shared_ptr<const Program> program,
      const device::CompileSettings& settings = {}) const override;
  /// See compiler.h.
  [[nodiscard]] std::string code_text(const Program& program, std::string_view form,
                                      const std::string& machine) const override;

 private:
  const Gpu& gpu_;
  mutable Memory memory_;  // compiling is const: these serve any number of threads
  mutable ThreadPool pool_;
};

/// What backends.cpp opens, and why it cannot.
[[nodiscard]] std::shared_ptr<const device::Backend> make_backend(int threads);
[[nodiscard]] std::string why_not();

}  // namespace ricci::cuda
