// Convolutions on GPUs and their gradients, on an emulated one against the reference: kernels,
// strides, dilations, paddings and groups that no tile divides. In a process of its own.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string_view>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/build/conv.h"
#include "ricci/transform/grad.h"

#include "backend/cuda/load/nvrtc.h"
#include "backend/cuda/run/planned_program.h"
#include "backend/cuda/run/target.h"
#include "runtime/models.h"
#include "support/compare.h"
#include "support/cuda_run.h"
#include "support/emulated_gpu.h"

namespace ricci::testing::cuda_convolutions_test {
namespace {

struct Images {
  const char* name = "";
  std::int64_t images = 2;
  std::int64_t in = 3;
  std::int64_t out = 5;
  std::int64_t groups = 1;
  HeightWidth size = {7, 9};
  HeightWidth kernel = {3, 3};
  HeightWidth stride = {1, 1};
  HeightWidth padding = {1, 1};
  HeightWidth dilation = {1, 1};
};

const std::vector<Images>& all_images() {
  static const std::vector<Images> all = {
      {.name = "few_channels"},
      {.name = "many_channels", .in = 33, .out = 40, .size = {6, 6}},
      {.name = "whole_blocks", .in = 32, .out = 64, .size = {8, 8}},
      {.name = "filled_blocks", .images = 1, .in = 50, .out = 20, .size = {5, 4}},
      {.name = "points", .in = 16, .out = 17, .kernel = {1, 1}, .padding = {0, 0}},
      {.name = "strided", .in = 10, .out = 12, .size = {9, 8}, .stride = {2, 2}},
      {.name = "strided_unevenly", .in = 9, .out = 20, .size = {11, 10}, .stride = {3, 2}},
      {.name = "wide_strides",
       .in = 16,
       .out = 13,
       .size = {9, 9},
       .kernel = {2, 1},
       .stride = {4, 3},
       .padding = {0, 0}},
      {.name = "dilated",
       .in = 9,
       .out = 10,
       .size = {9, 9},
       .padding = {2, 3},
       .dilation = {2, 3}},
      {.name = "dilated_and_strided",
       .in = 12,
       .out = 11,
       .size = {12, 11},
       .stride = {2, 3},
       .padding = {2, 2},
       .dilation = {2, 2}},
      {.name = "grouped_in_tiles", .in = 40, .out = 48, .groups = 2},
      {.name = "grouped", .in = 8, .out = 12, .groups = 4},
      {.name = "depthwise", .in = 6, .out = 6, .groups = 6},
      {.name = "depthwise_strided", .in = 4, .out = 8, .groups = 4, .stride = {2, 1}},
      {.name = "large_kernel",
       .in = 18,
       .out = 20,
       .size = {9, 12},
       .kernel = {7, 7},
       .padding = {3, 2}},
      {.name = "large_kernel_of_few",
       .in = 2,
       .out = 4,
       .size = {9, 12},
       .kernel = {7, 7},
       .padding = {3, 2}},
      {.name = "row", .in = 12, .out = 17, .size = {1, 40}, .kernel = {1, 5}, .padding = {0, 2}},
      {.name = "long", .images = 30, .in = 9, .out = 24, .size = {16, 16}},
      {.name = "without_padding", .in = 3, .out = 4, .padding = {0, 0}},
      {.name = "beyond_the_edge", .in = 2, .out = 3, .size = {2, 2}, .padding = {4, 5}},
  };
  return all;
}

Graph convolution_graph(const Images& s, DType dtype) {
  Graph g(s.name);
  const Value x = g.input("x", Type(dtype, {s.images, s.in, s.size[0], s.size[1]}));
  const Value w = g.input("w", Type(dtype, {s.out, s.in / s.groups, s.kernel[0], s.kernel[1]}));
  const auto two = [](const HeightWidth& pair) {
    return std::vector<std::int64_t>{pair[0], pair[1]};
  };
  const Value y = conv(x, w,
                       {.stride = two(s.stride),
                        .padding = two(s.padding),
                        .dilation = two(s.dilation),
                        .groups = s.groups});
  g.set_outputs({y});
  return g;
}

// The image, and the gradients of both factors.
Graph all_three(const Images& s, DType dtype) {
  Graph g = convolution_graph(s, dtype);
  const Value y = g.output_values()[0];
  const Value weights = g.input("weights", y.type());
  const Value loss =
      reduce(cast(y * weights, {.to = DType::F32}), {.op = ReduceKind::Sum, .axes = {0, 1, 2, 3}});
  g.set_outputs({loss, y});
  const std::vector<ValueRef> wrt = {"x", "w"};
  return value_and_grad(g, wrt).graph;
}

// Texts of all kernels that calls are served with.
std::vector<std::string> call_texts(const Graph& g, bool tf32 = false) {
  const cuda::PlannedProgram planned(
      std::make_shared<const Program>(make_program(g, {.target = &cuda::target()})),
      {.tf32 = tf32});
  std::vector<std::string> texts;
  for (const auto& step : planned.steps()) {
    if (!step.plan) continue;
    for (const cuda::PlannedLaunch& l : step.launches) texts.push_back(l.text.text);
  }
  return texts;
}

bool use(const Graph& g, const char* what, bool tf32 = false) {
  return std::ranges::any_of(call_texts(g, tf32), [&](const std::string& text) {
    return text.find(what) != std::string::npos;
  });
}

// f32 is rounded to tf32 only where that is asked for.
TEST(BackendCudaConvolutions, UseTensorCoresWhereTheyMay) {
  const Images& many = all_images()[1];
  EXPECT_TRUE(use(all_three(many, DType::BF16), "mma.sync"));
  EXPECT_TRUE(use(all_three(many, DType::F16), "mma.sync"));
  EXPECT_FALSE(use(all_three(many, DType::F32), "mma.sync"));
  EXPECT_TRUE(use(all_three(many, DType::F32), "mma.sync.aligned.m16n8k8", true));
  EXPECT_FALSE(use(all_three(many, DType::F64), "mma.sync", true));
}

TEST(BackendCudaConvolutions, OfAChannelEachHaveNoTiles) {
  for (const Images& s : all_images()) {
    if (!std::string_view(s.name).starts_with("depthwise")) continue;
    EXPECT_FALSE(use(all_three(s, DType::F32), "cp.async.wait_group")) << s.name;
  }
  EXPECT_TRUE(use(all_three(all_images()[1], DType::F32), "cp.async.wait_group"));
}

// With RICCI_ALL_CASES those of all dtypes.
TEST(BackendCudaConvolutions, Compile) {
  if (!cuda::why_no_compiler().empty()) GTEST_SKIP() << cuda::why_no_compiler();
  const bool all = std::getenv("RICCI_ALL_CASES") != nullptr;
  const auto expect_code = [](const Graph& g, bool tf32) {
    for (const std::string& text : call_texts(g, tf32)) {
      EXPECT_FALSE(cuda::compile_source(text, "sm_90").empty()) << g.name();
    }
  };
  for (const Images& s : all_images()) {
    const bool one = &s == &all_images()[1];
    expect_code(all_three(s, DType::F32), false);
    if (all || one) expect_code(all_three(s, DType::F32), true);
    if (all || one) expect_code(all_three(s, DType::BF16), false);
    if (all) expect_code(all_three(s, DType::F64), false);
  }
}

TEST(BackendCudaConvolutions, AgreeOnAnEmulatedGpu) {
  if (const std::string why = why_no_emulated_gpu(); !why.empty()) GTEST_SKIP() << why;
  // Other dtypes than f32 take long to emulate.
  const bool all = std::getenv("RICCI_ALL_CASES") != nullptr;
  const EmulatedRun run =
      run_with_emulated_gpu(all ? "*BackendEmulatedConv*:*BackendEmulatedPool*"
                                : "*BackendEmulatedConv*:*BackendEmulatedPool*-*OfOthers.*",
                            false);
  EXPECT_EQ(run.status, 0) << run.log;
  EXPECT_EQ(run.log.find("SKIPPED"), std::string::npos) << run.log;
  EXPECT_NE(run.log.find("AreThoseOfTheReference"), std::string::npos) << run.log;
  EXPECT_NE(run.log.find("TakesWindowsOfAllKinds"), std::string::npos) << run.log;
}

class BackendEmulatedConvolutions : public ::testing::TestWithParam<Images> {
 protected:
  void SetUp() override {
    if (emulated_folder() == nullptr) {
      GTEST_SKIP() << "run by BackendCudaConvolutions.AgreeOnAnEmulatedGpu";
    }
  }
};

// All but the loss, which only leads to the gradients.
void expect_as_the_reference(const Images& images, DType dtype, bool tf32 = false) {
  const Graph g = all_three(images, dtype);
  const Feeds feeds = random_feeds(g);
  const std::vector<Tensor> actual = run_on_cuda(g, feeds, {.tf32_products = tf32});
  const std::vector<Tensor> expected = interpret(g, feeds);
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 1; i < expected.size(); ++i) {
    Tolerance t = tolerance(dtype);
    if (dtype == DType::F32) t.absolute *= 64;  // of thousands of products that nearly cancel
    if (tf32) t = {.relative = 2e-3, .absolute = 0.1};
    EXPECT_TRUE(close(actual[i], expected[i], t)) << name(dtype) << ", output " << i;
  }
}

TEST_P(BackendEmulatedConvolutions, AreThoseOfTheReference) {
  expect_as_the_reference(GetParam(), DType::F32);
}

INSTANTIATE_TEST_SUITE_P(All, BackendEmulatedConvolutions, ::testing::ValuesIn(all_images()),
                         [](const auto& images) { return std::string(images.param.name); });

class BackendEmulatedConvolutionsOfOthers : public BackendEmulatedConvolutions {};

TEST_P(BackendEmulatedConvolutionsOfOthers, AreThoseOfTheReference) {
  for (const DType dtype : {DType::BF16, DType::F16, DType::F64}) {
    expect_as_the_reference(GetParam(), dtype);
  }
  expect_as_the_reference(GetParam(), DType::F32, true);
}

INSTANTIATE_TEST_SUITE_P(BackendEmulatedConvolutions, BackendEmulatedConvolutionsOfOthers,
                         ::testing::Values(all_images()[1], all_images()[6], all_images()[10],
                                           all_images()[13]),
                         [](const auto& images) { return std::string(images.param.name); });

struct Windows {
  const char* name = "";
  HeightWidth size = {8, 6};
  HeightWidth kernel = {2, 2};
  HeightWidth stride = {2, 2};
  HeightWidth padding = {0, 0};
};

class BackendEmulatedPooling : public ::testing::TestWithParam<Windows> {
 protected:
  void SetUp() override {
    if (emulated_folder() == nullptr) {
      GTEST_SKIP() << "run by BackendCudaConvolutions.AgreeOnAnEmulatedGpu";
    }
  }
};

// Of a maximum the gradient too, and what its derivative picks; there are ties and numbers that are
// none.
TEST_P(BackendEmulatedPooling, TakesWindowsOfAllKinds) {
  const Windows& s = GetParam();
  for (const DType dtype : {DType::F32, DType::BF16}) {
    Graph g(s.name);
    const Value x = g.input("x", Type(dtype, {2, 3, s.size[0], s.size[1]}));
    const auto pooled = [&](ReduceKind kind) {
      return pool(x, {.kind = kind,
                      .kernel_size = s.kernel,
                      .stride = s.stride,
                      .padding = s.padding,
                      .count_include_pad = false});
    };
    const Value most = pooled(ReduceKind::Max);
    const Value weights = g.input("weights", most.type());
    const Value loss = reduce(cast(most * weights, {.to = DType::F32}),
                              {.op = ReduceKind::Sum, .axes = {0, 1, 2, 3}});
    g.set_outputs({loss, most, pooled(ReduceKind::Mean), pooled(ReduceKind::Sum)});
    const Graph both = value_and_grad(g, std::vector<ValueRef>{"x"}).graph;
    Feeds feeds = random_feeds(both);
    std::vector<double> values = feeds.at("x").numbers<double>();
    for (double& v : values) v = std::round(2 * v) / 2;
    values[5] = std::numeric_limits<double>::quiet_NaN();
    feeds.at("x") = Tensor::from_numbers<double>(feeds.at("x").type(), values);
    const std::vector<Tensor> actual = run_on_cuda(both, feeds);
    const std::vector<Tensor> expected = interpret(both, feeds);
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 1; i < expected.size(); ++i) {
      EXPECT_TRUE(close(actual[i], expected[i])) << name(dtype) << ", output " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, BackendEmulatedPooling,
    ::testing::Values(
        Windows{.name = "side_by_side"},
        Windows{.name = "four_wide", .size = {3, 8}, .kernel = {1, 4}, .stride = {1, 4}},
        Windows{.name = "three_wide", .size = {6, 9}, .kernel = {3, 3}, .stride = {3, 3}},
        Windows{.name = "with_a_rest", .size = {7, 9}},
        Windows{.name = "in_each_other", .kernel = {3, 3}, .stride = {2, 1}},
        Windows{.name = "padded", .kernel = {3, 2}, .stride = {2, 2}, .padding = {1, 1}},
        Windows{.name = "apart", .size = {9, 9}, .kernel = {2, 2}, .stride = {3, 4}},
        Windows{.name = "large", .size = {9, 10}, .kernel = {9, 9}, .stride = {1, 1}}),
    [](const auto& windows) { return std::string(windows.param.name); });

}  // namespace
}  // namespace ricci::testing::cuda_convolutions_test
