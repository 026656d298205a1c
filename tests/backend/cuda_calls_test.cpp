// Kernels that serve calls, compiled by NVRTC where it is found: it needs no GPU.
// RICCI_CUDA_LIBRARIES says where else to look for it.
#include <array>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/build/shape.h"
#include "ricci/op/table.h"

#include "backend/cuda/load/nvrtc.h"
#include "backend/cuda/run/planned_program.h"
#include "backend/cuda/run/target.h"
#include "backend/cuda/structured/call_plan.h"
#include "ops/cases.h"
#include "ops/chosen_cases.h"
#include "ops/transformed_case.h"
#include "runtime/models.h"

namespace ricci::testing::cuda_calls_test {
namespace {

// The texts of a program's calls, by what they serve.
void collect_calls(const ricci::Program& program, std::map<std::string, std::string>& texts,
                   std::set<std::string>& hosts) {
  for (const Step& step : program.steps) {
    if (const auto* control = std::get_if<ControlStep>(&step.what)) {
      for (const auto& [role, body] : control->bodies) collect_calls(*body, texts, hosts);
    }
    const auto* call = std::get_if<CallStep>(&step.what);
    if (call == nullptr) continue;
    const auto plan = cuda::plan_call(program, *call);
    if (!plan) {
      hosts.insert(std::string(loop::role_of(call->call)));
      continue;
    }
    for (const auto& part : plan->parts) {
      if (const auto* launch = std::get_if<cuda::CallLaunch>(&part)) {
        EXPECT_GE(launch->text.blocks, 1) << step.label;
        texts.emplace(launch->text.text, step.label);
      }
    }
  }
}

// More rows than the smallest tile has, and a matrix that no library takes as it lies.
Graph strided_product(DType dtype) {
  Graph g("strided");
  const Value b = g.input("b", Type(dtype, {24, 24}));
  g.set_outputs({matmul(g.input("a", Type(dtype, {40, 24})), slice(b, {.axis = 1, .step = 2}))});
  return g;
}

TEST(BackendCudaCalls, Compile) {
  if (!cuda::why_no_compiler().empty()) GTEST_SKIP() << cuda::why_no_compiler();
  std::map<std::string, std::string> texts;
  std::set<std::string> hosts;
  const auto take = [&](const Graph& graph) {
    if (graph.outputs().empty() || !graph.symbols().empty()) return;
    collect_calls(make_program(graph, {.target = &cuda::target()}), texts, hosts);
  };
  for (const OpDescriptor& d : all_ops()) {
    if (d.op_class == OpClass::Block) continue;
    for (const DType dtype : AllDTypes) {
      std::size_t place = 0;
      for (const Case& c : cases_for(d.kind)) {
        if (!c.rejects.empty() || !c.dtypes.has(dtype) || !is_chosen(d, place++, c, dtype)) {
          continue;
        }
        take(build_case(c, dtype).graph);
        if (dtype != DType::F32 || c.fails || is_unbounded(c)) continue;
        if (d.vjp == RuleSource::Leaf || d.vjp == RuleSource::Refused) continue;
        const CaseProgram p = program_of(c, dtype);
        if (p.graph.symbols().empty() && !p.differentiable().empty()) take(gradient_of(p, 7).graph);
      }
    }
  }
  for (const DType dtype : AllDTypes) {
    if (dtype != DType::Bool) take(strided_product(dtype));
  }
  EXPECT_GE(texts.size(), 100U);
  for (const auto& [text, label] : texts) {
    try {
      EXPECT_FALSE(cuda::compile_source(text, "sm_90").empty());
    } catch (const Error& e) {
      ADD_FAILURE() << label << ": " << e.what();
      return;
    }
  }
}

// Kernels of one launch, of which equal ones share their code.
TEST(BackendCudaCalls, CompileTogetherWithOthers) {
  const Graph g = updates_graph();
  std::vector<Donated> donated;
  for (std::size_t k = 0; k < g.outputs().size(); ++k) donated.push_back({k, 2 * k});
  const cuda::PlannedProgram planned(std::make_shared<const Program>(make_program(
                                         g, {.target = &cuda::target(), .donated = donated})),
                                     {});
  std::size_t launches = 0;
  for (const auto& step : planned.steps()) {
    for (const cuda::PlannedLaunch& l : step.launches) {
      ++launches;
      EXPECT_EQ(l.members.size(), g.outputs().size());
      EXPECT_EQ(l.text.pointers, 3 * g.outputs().size());
      EXPECT_NE(l.text.text.find("part6("), std::string::npos) << l.text.text;
      EXPECT_EQ(l.text.text.find("part7("), std::string::npos) << "two are the same";
      if (cuda::why_no_compiler().empty()) {
        EXPECT_FALSE(cuda::compile_source(l.text.text, "sm_90").empty());
      }
    }
  }
  EXPECT_EQ(launches, 1U);
}

TEST(BackendCudaCalls, OfAKernelThatIsNoneSayWhatIsWrong) {
  if (!cuda::why_no_compiler().empty()) GTEST_SKIP() << cuda::why_no_compiler();
  try {
    (void)cuda::compile_source("__global__ void f() { nonsense; }", "sm_90");
    FAIL();
  } catch (const DeviceError& e) {
    EXPECT_NE(std::string(e.what()).find("nonsense"), std::string::npos) << e.what();
  }
  EXPECT_THROW((void)cuda::compile_source("__global__ void f() {}", "sm_1"), DeviceError);
}

}  // namespace
}  // namespace ricci::testing::cuda_calls_test
