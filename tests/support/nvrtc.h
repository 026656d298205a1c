// CUDA C++ compiled with NVRTC, which needs no GPU. The library is looked for in the folders that
// RICCI_CUDA_LIBRARIES names, a list with colons of absolute paths, and where the loader looks.
#pragma once

#include <string>

namespace ricci::testing {

/// Why there is no NVRTC here; empty: there is.
[[nodiscard]] std::string why_no_nvrtc();
/// What the compiler says against a source for GPUs of the architecture sm_90; empty: nothing.
[[nodiscard]] std::string compile_for_gpu(const std::string& source);

}  // namespace ricci::testing
