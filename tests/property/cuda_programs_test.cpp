// Random programs on the GPU: they compute what the reference does, and report the faults it
// reports.
#include <gtest/gtest.h>

#include "ricci/compiler/rewrite/cleanup.h"

#include "backend/agreement.h"
#include "property/for_programs.h"
#include "support/cuda_run.h"

namespace ricci::testing {
namespace {

// What nobody reads is taken away first: it might fault, and a device does not compute it.
std::string check_on_cuda(const Program& p) {
  const Graph graph = dead_code_elimination(p.graph).graph;
  const Outcome expected = reference_outcome(graph, p.feeds);
  for (const bool fuse : {false, true}) {
    const Outcome actual = cuda_outcome(graph, p.feeds, {.fuse = fuse});
    std::string wrong = device_disagreement(graph, p.feeds, actual, expected);
    if (!wrong.empty()) return (fuse ? "fused: " : "op by op: ") + wrong;
  }
  return {};
}

TEST(PropertyCuda, ComputesWhatTheReferenceDoes) {
  RICCI_NEEDS_CUDA();
  for_programs(program_count(600), {.nodes = 10, .large = true}, check_on_cuda);
}

// Runs with arrays that stay where they are are replayed: an emulated GPU does what need not wait
// in any order.
TEST(PropertyCudaGraphs, WaitForAllTheyMust) {
  RICCI_NEEDS_CUDA();
  for_programs(program_count(8), {.nodes = 24}, check_on_cuda);
}

TEST(PropertyCuda, InEveryDtype) {
  RICCI_NEEDS_CUDA();
  for (const DType dtype : AllDTypes) {
    SCOPED_TRACE(name(dtype));
    for_programs(program_count(16), {.nodes = 12, .dtypes = {dtype}, .random = true, .large = true},
                 check_on_cuda);
  }
}

TEST(PropertyCuda, ReportsTheFaultsOfTheReference) {
  RICCI_NEEDS_CUDA();
  for_programs(program_count(200), {.nodes = 10},
               [](const Program& p) { return check_on_cuda(with_wild_indices(p)); });
}

}  // namespace
}  // namespace ricci::testing
