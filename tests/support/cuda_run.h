// Programs on the GPU, where there is one.
#pragma once

#include <string>
#include <vector>

#include "ricci/interp/interpreter.h"
#include "ricci/runtime/compiled_graph.h"
#include "ricci/runtime/device.h"

#include "backend/agreement.h"

namespace ricci::testing {

/// Why there is no GPU to run on; empty when there is one. Found out once.
[[nodiscard]] const std::string& why_no_cuda();
/// The GPU: only where there is one.
[[nodiscard]] const Device& cuda_device();

/// Compiled and run several times, so that later runs are replayed; std::runtime_error when they do
/// not give the same bits.
[[nodiscard]] std::vector<Tensor> run_on_cuda(const Graph& graph, const Feeds& feeds,
                                              const CompileOptions& options = {});
[[nodiscard]] Outcome cuda_outcome(const Graph& graph, const Feeds& feeds,
                                   const CompileOptions& options = {});

}  // namespace ricci::testing

/// Ends a test that needs a GPU where there is none.
#define RICCI_NEEDS_CUDA()                                                      \
  if (!::ricci::testing::why_no_cuda().empty()) {                               \
    GTEST_SKIP() << "no GPU is used here: " << ::ricci::testing::why_no_cuda(); \
  }
