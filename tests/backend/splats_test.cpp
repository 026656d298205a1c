// Images of splats on devices: larger scenes than the cases have, against the reference, and the
// same bits whatever the threads.
#include <array>
#include <cmath>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/runtime/compiled_graph.h"
#include "ricci/transform/grad.h"

#include "backend/agreement.h"
#include "support/compare.h"
#include "support/splat_scene.h"

namespace ricci::testing::splats_test {
namespace {

// The image and the gradient of a weighted sum of it.
Graph step_of(const SplatScene& scene, const GaussianSplatRenderParams& params) {
  Graph g("step");
  const Value image = gaussian_splat_render(scene.inputs(g), params);
  const Value weights = g.constant(random_tensor(99, image.type(), -1, 1));
  g.set_outputs({sum(image * weights), image});
  return value_and_grad(g, {SplatNames.begin(), SplatNames.end()}).graph;
}

TEST(BackendSplats, AgreeWithTheReference) {
  const SplatScene scene{.count = 60, .coefficients = 9, .smallest = -4, .largest = -0.5};
  for (const std::int64_t tile : {3, 8, 16}) {
    const GaussianSplatRenderParams params{.width = 37, .height = 29, .tile_size = tile};
    const Graph g = step_of(scene, params);
    const std::vector<Tensor> expected = interpret(g, scene.feeds());
    const std::vector<Tensor> actual = compile(g, Device::cpu(2)).run(scene.feeds());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(close(actual[i], expected[i], {1e-9, 1e-10})) << i << ", tiles of " << tile;
    }
  }
}

// A camera among the splats, some of them behind it, some around it.
TEST(BackendSplats, ACameraAmongSplats) {
  SplatScene scene{.count = 50, .coefficients = 4, .smallest = -3, .largest = 0.5};
  scene.camera.position = {0.2, 0.1, -0.3};
  const Graph g = step_of(scene, {.width = 21, .height = 17, .tile_size = 4});
  const std::vector<Tensor> expected = interpret(g, scene.feeds());
  const std::vector<Tensor> actual = compile(g, Device::cpu(2)).run(scene.feeds());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(close(actual[i], expected[i], {1e-9, 1e-10})) << i;
  }
}

// Sums over pixels are made in one order. [splat-backward-reuse]
TEST(BackendSplats, BitsDoNotDependOnThreads) {
  const SplatScene scene{.dtype = DType::F32, .count = 300, .coefficients = 4, .smallest = -4};
  const Graph g = step_of(scene, {.width = 65, .height = 50, .tile_size = 8});
  const std::vector<Tensor> one = compile(g, Device::cpu(1)).run(scene.feeds());
  for (const int threads : {2, 3, 5}) {
    const std::vector<Tensor> more = compile(g, Device::cpu(threads)).run(scene.feeds());
    for (std::size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(same(more[i], one[i])) << i;
  }
}

// The device has kernels for the whole way there and back, and for the halves; nothing is left to
// the reference. [splat-common-lowering]
TEST(BackendSplats, AreServedByKernels) {
  const SplatScene scene{.dtype = DType::F32, .count = 5};
  const CompiledGraph compiled =
      compile(step_of(scene, {.width = 16, .height = 16}), Device::cpu(1));
  const std::string program = to_string(compiled.program());
  for (const char* stage : {"prepare", "rasterize", "backward from what is known"}) {
    EXPECT_NE(program.find(std::string("splats [") + stage), std::string::npos) << program;
  }
  for (std::size_t step = 0; step < compiled.program().steps.size(); ++step) {
    EXPECT_NE(compiled.served_by(step), "reference") << compiled.report();
  }
}

// Where there is no kernel for splats, the program is primitives or the reference's kernel, and the
// image and its gradient are the same. [splat-common-lowering]
TEST(BackendSplats, WithoutKernelsTheImageIsTheSame) {
  const SplatScene scene{.count = 20, .coefficients = 4};
  const GaussianSplatRenderParams params{.width = 11, .height = 9, .tile_size = 4};
  const Graph g = step_of(scene, params);
  const std::vector<Tensor> expected = interpret(g, scene.feeds());
  const std::vector<Tensor> actual = compile(g, Device::named("lir")).run(scene.feeds());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(close(actual[i], expected[i], {1e-9, 1e-10})) << i;
  }
}

// The way back gives the same whether it is told what the way there has found or finds it again.
// [splat-backward-reuse]
TEST(BackendSplats, WhatIsKnownIsNotNew) {
  for (const DType dtype : {DType::F32, DType::F64}) {
    for (const double gamma : {1.0, 2.2}) {
      const SplatScene scene{.dtype = dtype, .count = 80, .coefficients = 4, .largest = -0.3};
      const GaussianSplatRenderParams params{
          .width = 33, .height = 21, .tile_size = 8, .max_splat_steps = 6, .gamma = gamma};
      Graph g("both");
      const GaussianSplatInputs in = scene.inputs(g);
      const Value d = g.constant(random_tensor(5, {dtype, {33 * 21 * 4}}, -1, 1));
      g.set_outputs({gaussian_splat_render_backward(in, d, {.render = params})});
      Graph loss("loss");
      const Value image = gaussian_splat_render(scene.inputs(loss), params);
      loss.set_outputs({sum(image * loss.constant(random_tensor(5, image.type(), -1, 1)))});
      const auto gradients =
          compile(value_and_grad(loss, {SplatNames.begin(), SplatNames.end() - 1}).graph,
                  Device::cpu(2))
              .run(scene.feeds());
      const std::vector<double> packed =
          compile(g, Device::cpu(2)).run(scene.feeds())[0].numbers<double>();
      std::size_t next = 0;
      const double most = dtype == DType::F32 ? 2e-4 : 1e-10;
      for (std::size_t k = 1; k < gradients.size(); ++k) {
        for (const double v : gradients[k].numbers<double>()) {
          EXPECT_NEAR(v, packed[next], most * (1 + std::fabs(v))) << SplatNames[k - 1];
          ++next;
        }
      }
      EXPECT_EQ(next, packed.size());
    }
  }
}

// Splats that hide all that is behind them: the way back begins in front of them.
TEST(BackendSplats, OpaqueSplats) {
  const SplatScene scene{.count = 12, .coefficients = 1, .smallest = -1.5, .largest = 0};
  Feeds feeds = scene.feeds();
  feeds["opacities"] =
      Tensor::from_numbers<double>(feeds.at("opacities").type(), std::vector<double>(12, 1.0));
  std::vector<double> positions = feeds.at("positions").numbers<double>();
  for (double& v : positions) v *= 0.1;
  feeds["positions"] = Tensor::from_numbers<double>(feeds.at("positions").type(), positions);
  for (const double threshold : {0.0, 0.01}) {
    const Graph g = step_of(scene, {.width = 16,
                                    .height = 16,
                                    .tile_size = 8,
                                    .max_splat_steps = 0,
                                    .transmittance_threshold = threshold});
    const std::vector<Tensor> expected = interpret(g, feeds);
    const std::vector<Tensor> actual = compile(g, Device::cpu(2)).run(feeds);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(close(actual[i], expected[i], {1e-8, 1e-9})) << i << ", " << threshold;
    }
  }
}

// Images of one pixel, and of sizes that no tile divides, through a lens.
TEST(BackendSplats, OddImages) {
  for (const auto& [width, height, tile] : {std::array{1, 1, 16}, std::array{1, 40, 7},
                                            std::array{17, 3, 16}, std::array{35, 33, 32}}) {
    for (const bool lens : {false, true}) {
      SplatScene scene{.count = 25, .coefficients = 9, .smallest = -3};
      if (lens) {
        scene.camera.lens = {.focal = {0.9 * width, 1.1 * height},
                             .principal_point = {0.48 * width, 0.53 * height},
                             .distortion = {0.1, -0.05, 0.02, -0.01, 0.01, 0.05, 0.01, 0}};
      }
      const Graph g = step_of(scene, {.width = width, .height = height, .tile_size = tile});
      const std::vector<Tensor> expected = interpret(g, scene.feeds());
      const std::vector<Tensor> actual = compile(g, Device::cpu(2)).run(scene.feeds());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_TRUE(close(actual[i], expected[i], {1e-9, 1e-10})) << i << ", " << width;
      }
    }
  }
}

// In f32, splats of very different sizes: flat ones, needles, some around the camera. The image is
// that of f64 to a rounding, apart from pixels where a splat comes and goes with the last bit.
TEST(BackendSplats, SinglePrecisionIsEnough) {
  SplatScene scene{
      .dtype = DType::F32, .count = 200, .coefficients = 4, .smallest = -12, .largest = 1};
  const Graph g = step_of(scene, {.width = 40, .height = 30, .tile_size = 8, .gamma = 1});
  const std::vector<double> expected = interpret(g, scene.feeds())[1].numbers<double>();
  const std::vector<double> actual =
      compile(g, Device::cpu(2)).run(scene.feeds())[1].numbers<double>();
  std::size_t off = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::fabs(actual[i] - expected[i]) > 2e-5) ++off;
  }
  EXPECT_LE(off, expected.size() / 1000);
}

// Scenes, cameras and ways to see them, at random.
TEST(BackendSplats, RandomScenes) {
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    std::uint64_t state = seed * 977;
    const auto draw = [&](double low, double high) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      return low + (high - low) * static_cast<double>(state >> 11) * 0x1p-53;
    };
    const auto whole = [&](double low, double high) {
      return static_cast<std::int64_t>(draw(low, high + 1));
    };
    SplatScene scene{.count = whole(0, 40), .coefficients = whole(1, 16)};
    scene.smallest = draw(-9, -1);
    scene.largest = scene.smallest + draw(0, 4);
    scene.camera.position = {draw(-3, 3), draw(-1, 1), draw(-4, 1)};
    scene.camera.field_of_view = draw(10, 140);
    const GaussianSplatRenderParams params{
        .width = whole(1, 40),
        .height = whole(1, 30),
        .tile_size = whole(1, 20),
        .radius_scale = draw(0.5, 3),
        .alpha_cutoff = draw(1e-4, 0.1),
        .max_splat_steps = whole(0, 6),
        .transmittance_threshold = whole(0, 1) == 0 ? 0 : draw(0.001, 0.5),
        .opacity_space = whole(0, 1) == 0 ? OpacitySpace::Linear : OpacitySpace::Logit,
        .color_source = whole(0, 2) == 0 ? SplatColor::Rgb : SplatColor::Sh,
        .sh_band = whole(0, 3),
        .view_from_splat = whole(0, 1) == 0,
        .gamma = draw(0.6, 2.5)};
    if (whole(0, 1) == 0) {
      const double side = static_cast<double>(params.width);
      scene.camera.lens = {.focal = {draw(0.5, 2) * side, draw(0.5, 2) * side},
                           .principal_point = {draw(0.3, 0.7) * side, draw(0.3, 0.7) * side},
                           .distortion = {draw(-0.1, 0.2), 0, draw(-0.02, 0.02), 0, 0.01, 0, 0, 0}};
    }
    const Graph g = step_of(scene, params);
    const Feeds feeds = scene.feeds(seed);
    const std::vector<Tensor> expected = interpret(g, feeds);
    const std::vector<Tensor> actual = compile(g, Device::cpu(2)).run(feeds);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(close(actual[i], expected[i], {1e-7, 1e-8})) << i << ", seed " << seed;
    }
  }
}

// Overflowing lists, and lists that are none, are errors on devices too. [splat-no-drop]
TEST(BackendSplats, FaultsAreTold) {
  const SplatScene scene{.count = 4, .smallest = 0, .largest = 1};
  const Graph g =
      step_of(scene, {.width = 16, .height = 16, .tile_size = 4, .max_list_entries = 7});
  try {
    (void)compile(g, Device::cpu(2)).run(scene.feeds());
    FAIL() << "lists of 7 entries held more";
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ErrorCode::OutOfMemory);
    EXPECT_NE(std::string(e.what()).find("room for 7"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace ricci::testing::splats_test
