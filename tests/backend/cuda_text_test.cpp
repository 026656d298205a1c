// What CUDA code says where a test of its results could not tell: how exact functions are, where
// rows wait, and what stands before what.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/compiler/schedule/program.h"
#include "ricci/ir/text.h"

#include "backend/cuda/codegen/expression.h"
#include "backend/cuda/codegen/kernel_text.h"
#include "backend/cuda/codegen/program_text.h"
#include "support/cuda_kernels_target.h"

namespace ricci::testing::cuda_text_test {
namespace {

// A row of a vocabulary: it waits in shared memory as the bf16 it is rounded to, for two blocks.
TEST(BackendCudaText, LongRowsWaitInSharedMemory) {
  static const CudaKernelsTarget target;
  const Program program = make_program(parse_graph(R"(graph @g {
    %x = input "x" : bf16[300, 50304]
    %b = input "b" : bf16[50304]
    %z = add %x, %b
    %w = cast %z {to = f32}
    %s = softmax %w
    %y = cast %s {to = bf16}
    return %y
  })"),
                                       {.target = &target});
  ASSERT_EQ(program.kernels.size(), 1U);
  EXPECT_EQ(program.arena_bytes, 0);
  const cuda::KernelText text = cuda::print_kernel(program.kernels[0], "k");
  EXPECT_EQ(text.shared_bytes, 2 * 50304);
  EXPECT_EQ(text.scratch_bytes, 0);
  EXPECT_EQ(text.blocks, 300);
}

// What is rounded to bf16 in the end needs no function exact to f32's last digits; what is not, or
// decides something, does.
TEST(BackendCudaText, FunctionsAreAsExactAsWhatIsMadeOfThem) {
  static const CudaKernelsTarget target;
  const auto is_near = [](const char* lines) {
    const std::string text = cuda::program_text(make_program(
        parse_graph(fmt::format("graph @g {{\n  %x = input \"x\" : f32[300, 768]\n{}}}\n", lines)),
        {.target = &target}));
    EXPECT_NE(text.find("near_exp("), text.find(" expf(")) << text;
    return text.find(" expf(") == text.npos;
  };
  EXPECT_TRUE(is_near("  %s = softmax %x\n  %y = cast %s {to = bf16}\n  return %y\n"));
  EXPECT_FALSE(is_near("  %s = softmax %x\n  return %s\n"));
  EXPECT_FALSE(is_near("  %s = softmax %x\n  %y = cast %s {to = bf16}\n  return %y, %s\n"));
  EXPECT_FALSE(is_near("  %e = exp %x\n  %b = gt %e, %x\n  return %b\n"));
  EXPECT_FALSE(is_near("  %e = exp %x\n  %s = sin %e\n  %y = cast %s {to = bf16}\n  return %y\n"));
  EXPECT_FALSE(is_near("  %e = exp %x\n  %s = reduce %e {op = sum, axes = [0]}\n  return %s\n"));
}

// Neighbours are rounded two at a time; which of them an index picks is asked once.
TEST(BackendCudaText, NeighboursOfSmallFloatsAreRoundedTogether) {
  static const CudaKernelsTarget target;
  const std::string text = cuda::program_text(make_program(parse_graph(R"(graph @g {
    %x = input "x" : bf16[16384, 512]
    %y = mul %x, %x
    return %y
  })"),
                                                           {.target = &target}));
  EXPECT_NE(text.find("rounded_bf16(s0_0)"), text.npos) << text;
  EXPECT_EQ(text.find("= as_bf16("), text.npos) << text;
}

// What a thread reads does not wait for what it stores before: that of the next row, and all that
// it has of a row.
TEST(BackendCudaText, LoadsStandBeforeStores) {
  static const CudaKernelsTarget target;
  const auto before = [](const char* graph, const char* load, const char* store) {
    const std::string text =
        cuda::program_text(make_program(parse_graph(graph), {.target = &target}));
    EXPECT_NE(text.find(load), text.npos) << text;
    EXPECT_LT(text.rfind(load), text.find(store)) << text;
  };
  before(StoresAndSums, "p0_next = *(const Pack<float, 4>*)(a0", "*(Pack<float, 4>*)(a");
  before(RowsInPacks, "[p] = *(const Pack<bf16, 4>*)(a", "*(Pack<bf16, 4>*)(a");
}

// Of the sigmoids of x and of -x, which gradients ask for, one is made of the other.
TEST(BackendCudaText, SigmoidsOfBothSignsShareTheirFunctions) {
  static const CudaKernelsTarget target;
  const auto text = [&](const char* dtype) {
    return cuda::program_text(make_program(parse_graph(fmt::format(R"(graph @g {{
      %x = input "x" : f32[300, 768]
      %a = sigmoid %x
      %n = neg %x
      %b = sigmoid %n
      %p = mul %a, %b
      %y = cast %p {{to = {}}}
      return %y
    }})",
                                                                   dtype)),
                                           {.target = &target}));
  };
  EXPECT_NE(text("bf16").find(" near_other_sigmoid(r0, "), std::string::npos) << text("bf16");
  EXPECT_EQ(text("f64").find("near_other_sigmoid"), std::string::npos);
}

TEST(BackendCudaText, SignsAndWidePlacesMeanWhatTheySay) {
  EXPECT_EQ(cuda::unary_text(UnaryKind::Neg, DType::F32, "-0.5f"), "(-(-0.5f))");
  EXPECT_EQ(cuda::unary_text(UnaryKind::Neg, DType::F32, "x"), "(-x)");
  static const CudaKernelsTarget target;
  const std::string text = cuda::program_text(make_program(
      parse_graph("graph @g {\n  %x = input \"x\" : f32[2, 3000000000]\n  %y = softmax %x\n"
                  "  return %y\n}\n"),
      {.target = &target}));
  EXPECT_NE(text.find("i64 e = "), std::string::npos) << text;
  EXPECT_EQ(text.find("int e = "), std::string::npos) << text;
}

// Loops that may take long look whether they are to end, and others do not.
TEST(BackendCudaText, LongLoopsLookWhetherTheyAreToEnd) {
  static const CudaKernelsTarget target;
  for (const std::int64_t trips : {1000, 5000}) {
    const std::string text = cuda::program_text(make_program(
        parse_graph(fmt::format("graph @g {{\n  %c0 = input \"c0\" : f32[600]\n"
                                "  %last = scan %c0 {{length = {}, num_bcast = 0, num_xs = 0}} "
                                "body {{\n    %c = input \"c\" : f32[600]\n    %n = tanh %c\n"
                                "    return %n\n  }}\n  return %last\n}}\n",
                                trips)),
        {.target = &target}));
    const bool looks = text.find("__syncthreads_or(t == 0 && must_end(fault))") != text.npos;
    EXPECT_EQ(looks, trips > 1024) << text;
  }
}

}  // namespace
}  // namespace ricci::testing::cuda_text_test
