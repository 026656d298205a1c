// Kernels that are compiled together: each once, in groups of about the same size, under names of
// their own, so that sources with the same functions and names can be one.
#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/compiler/schedule/program.h"

#include "backend/cuda/run/compiler.h"
#include "backend/cuda/run/planned_program.h"
#include "backend/cuda/run/source_groups.h"
#include "support/nvrtc.h"

namespace ricci::testing::cuda_source_groups_test {
namespace {

using cuda::KernelText;
using cuda::SourceGroup;

std::vector<const KernelText*> pointers_to(const std::vector<KernelText>& texts) {
  std::vector<const KernelText*> out;
  for (const KernelText& t : texts) out.push_back(&t);
  return out;
}

KernelText kernel_of_size(std::size_t size) {
  return {.name = "kernel",
          .text = "// a kernel(\n__device__ int one() { return 1; }\nextern \"C\" __global__ void "
                  "__launch_bounds__(32) kernel(int* a) {\n  a[0] = one();\n}\n" +
                  std::string(size, ' ')};
}

TEST(BackendCudaSourceGroups, HaveEveryKernelOnce) {
  for (const std::size_t count : {0, 1, 5, 6, 7, 40}) {
    std::vector<KernelText> texts;
    for (std::size_t k = 0; k < count; ++k) texts.push_back(kernel_of_size(100 * k));
    for (const std::size_t most : {0, 1, 3, 100}) {
      const std::vector<SourceGroup> groups = cuda::group_sources(pointers_to(texts), most);
      EXPECT_LE(groups.size(), std::max<std::size_t>(most, 1));
      EXPECT_LE(groups.size(), (count + 5) / 6);
      std::vector<std::size_t> all;
      for (const SourceGroup& group : groups) {
        ASSERT_EQ(group.members.size(), group.names.size());
        all.insert(all.end(), group.members.begin(), group.members.end());
        for (const std::string& name : group.names) {
          EXPECT_NE(group.text.find(") " + name + "(int* a)"), std::string::npos) << group.text;
        }
      }
      std::ranges::sort(all);
      ASSERT_EQ(all.size(), count);
      for (std::size_t k = 0; k < count; ++k) EXPECT_EQ(all[k], k);
    }
  }
}

TEST(BackendCudaSourceGroups, AreOfAboutTheSameSize) {
  std::vector<KernelText> texts;
  for (const std::size_t size : {9000, 100, 100, 100, 100, 100, 4000, 5000}) {
    texts.push_back(kernel_of_size(size));
  }
  const std::vector<SourceGroup> groups = cuda::group_sources(pointers_to(texts), 16);
  ASSERT_EQ(groups.size(), 2U);
  const auto [least, most] = std::ranges::minmax({groups[0].text.size(), groups[1].text.size()});
  EXPECT_LE(most - least, 1000U);
}

// All kernels of a program as one source: sorts and gathers bring sources of their own.
TEST(BackendCudaSourceGroups, Compile) {
  if (const std::string why = why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  Graph g("several");
  const Value x = g.input("x", f32({33, 70}));
  const Value picked = gather(x, g.input("ids", i32({5})));
  const Value divided = g.input("n", i32({9})) / g.input("d", i32({9}));
  g.set_outputs({softmax(x, {.axis = 1}), sort(picked)[0],
                 tanh(matmul(picked, g.param("w", f32({70, 8})))), divided});
  const cuda::Compiler compiler;
  const auto program =
      std::make_shared<const Program>(make_program(g, {.target = &compiler.target()}));
  cuda::PlannedProgram planned(program, {});
  std::vector<KernelText> texts;
  for (const cuda::PlannedProgram::PlannedStep& step : planned.steps()) {
    for (const auto* launches : {&step.before, &step.launches, &step.after}) {
      for (const cuda::PlannedLaunch& launch : *launches) texts.push_back(launch.text);
    }
  }
  ASSERT_GE(texts.size(), 5U);
  const std::vector<SourceGroup> groups = cuda::group_sources(pointers_to(texts), 1);
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(compile_for_gpu(groups[0].text), "");
}

}  // namespace
}  // namespace ricci::testing::cuda_source_groups_test
