// Printed CUDA kernels run on the host: compiled as C++ with cuda_shim.h into a program of their
// own, so that one that goes wrong harms nobody. A compiler is needed when the test runs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "backend/cuda/codegen/kernel_text.h"
#include "support/scratch_folder.h"

namespace ricci::testing {

/// Why kernels cannot be run on the host here; empty: they can.
[[nodiscard]] std::string why_no_cuda_on_host();

/// A kernel by number and its arrays, which hold the results when it has been run.
struct HostRun {
  std::size_t kernel = 0;
  std::vector<std::vector<std::byte>> arrays;
  cuda::Fault fault = {};
  std::string wrong = {};  ///< it ended badly, never, or wrote outside its arrays
};

/// Kernels compiled together. std::runtime_error with what the compiler says.
class HostKernels {
 public:
  explicit HostKernels(std::span<const cuda::KernelText> kernels);
  void run(std::vector<HostRun>& runs) const;

 private:
  void write_source() const;

  std::vector<cuda::KernelText> kernels_;
  ScratchFolder folder_;
};

}  // namespace ricci::testing
