// Programs of kernels alone, compiled for other targets than this machine's own, in vectors of
// every width: what a wide machine's code never does, a narrow one's may.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/compiler/schedule/program.h"
#include "ricci/runtime/compiled_graph.h"

#include "backend/cpu/codegen/kernel_code.h"
#include "backend/cpu/run/executable.h"
#include "backend/cpu/run/target.h"
#include "support/run_executable.h"
#include "support/test_pool.h"

namespace ricci::testing {

// Compiles for a target that need not be this machine's own.
class TargetSource final : public cpu::CodeSource {
 public:
  explicit TargetSource(cpu::TargetInfo target) : target_(std::move(target)) {}

  std::vector<cpu::KernelCode> kernels(std::span<const loop::Kernel> kernels) override {
    std::vector<cpu::KernelSource> sources;
    for (const loop::Kernel& k : kernels) {
      sources.push_back({&k, fmt::format("k{}", sources.size())});
    }
    const auto code = cpu::compile_kernels(sources, {.target = &target_});
    std::vector<cpu::KernelCode> out;
    for (const cpu::KernelSource& s : sources) {
      out.push_back({code, reinterpret_cast<cpu::KernelFunction>(code->find(s.symbol))});
    }
    return out;
  }
  cpu::LoopCode loop(const loop::WrittenLoop&) override { return {}; }

 private:
  cpu::TargetInfo target_;
};

// Targets that run here, each with registers of all widths: narrower ones than it has make shorter
// vectors, wider ones longer.
inline std::vector<cpu::TargetInfo> targets_of_all_widths() {
  std::vector<cpu::TargetInfo> found;
  for (const char* name : {"portable", "avx2", "avx512"}) {
    if (!cpu::runs_here(cpu::target_named(name))) continue;
    for (const int bits : {64, 128, 256, 512}) {
      found.push_back(cpu::target_named(name));
      found.back().vector_bits = bits;
    }
  }
  return found;
}

inline std::vector<Tensor> run_kernels(const Graph& graph, const Feeds& feeds,
                                       const cpu::TargetInfo& target) {
  const auto program = std::make_shared<const Program>(make_program(graph));
  for (const Step& step : program->steps) {
    EXPECT_TRUE(std::holds_alternative<KernelStep>(step.what)) << to_string(*program);
  }
  const cpu::Executable executable(program, TargetSource(target), pool_of());
  return run_executable(executable, graph, feeds);
}

}  // namespace ricci::testing
