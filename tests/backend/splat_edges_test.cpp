// Scenes and cameras at the edge of what there is, on the CPU against the reference, and what is
// said of operands that are none.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/build/reduce.h"
#include "ricci/runtime/compiled_graph.h"
#include "ricci/transform/grad.h"

#include "support/compare.h"
#include "support/splat_scene.h"

namespace ricci::testing::splat_edges_test {
namespace {

const double NaN = std::numeric_limits<double>::quiet_NaN();
const double Infinity = std::numeric_limits<double>::infinity();

using Numbers = std::vector<double>;

// A scene of which some numbers are replaced.
struct EdgeScene {
  SplatScene scene;
  Feeds feeds;

  explicit EdgeScene(const SplatScene& s) : scene(s), feeds(s.feeds()) {}
  EdgeScene& with(const std::string& name, std::size_t at, const Numbers& by) {
    Numbers numbers = feeds.at(name).numbers<double>();
    std::ranges::copy(by, numbers.begin() + static_cast<std::ptrdiff_t>(at));
    feeds[name] = Tensor::from_numbers<double>(feeds.at(name).type(), numbers);
    return *this;
  }
  [[nodiscard]] Graph step(const GaussianSplatRenderParams& params) const {
    Graph g("step");
    const Value image = gaussian_splat_render(scene.inputs(g), params);
    g.set_outputs({sum(image * g.constant(random_tensor(99, image.type(), -1, 1))), image});
    return value_and_grad(g, {SplatNames.begin(), SplatNames.end()}).graph;
  }
  /// Image and gradients of device and reference.
  std::vector<Tensor> agree(const GaussianSplatRenderParams& params) const {
    const Graph g = step(params);
    const std::vector<Tensor> expected = interpret(g, feeds);
    const std::vector<Tensor> actual = compile(g, Device::cpu(2)).run(feeds);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(close(actual[i], expected[i], {1e-8, 1e-9})) << i;
    }
    return actual;
  }
};

bool finite(const Tensor& t) {
  return std::ranges::all_of(t.numbers<double>(), [](double v) { return std::isfinite(v); });
}

const GaussianSplatRenderParams Odd = {.width = 13, .height = 9, .tile_size = 4};

SplatScene few() { return {.count = 4, .coefficients = 4}; }

TEST(BackendSplatEdges, NoSplats) {
  const EdgeScene none({.count = 0, .coefficients = 1});
  const std::vector<Tensor> out = none.agree(Odd);
  const Numbers rgba = out[1].numbers<double>();
  for (std::size_t i = 3; i < rgba.size(); i += 4) EXPECT_EQ(rgba[i], 0);
  EXPECT_EQ(out[2].numel(), 0);
}

TEST(BackendSplatEdges, OneSplat) {
  (void)EdgeScene({.count = 1, .coefficients = 16}).agree(Odd);
  (void)EdgeScene({.count = 1, .coefficients = 16}).agree({.width = 1, .height = 1});
}

// Behind the camera, at it, and on either side of the nearest depth there is.
TEST(BackendSplatEdges, SplatsAboutTheCamerasPlane) {
  SplatScene scene = few();
  scene.camera = {.position = {0, 0, -2}, .background = {0.1, 0.2, 0.3}};
  EdgeScene edge(scene);
  edge.with("positions", 0, {0.1, 0.1, -5, 0, 0, -2, 0.3, 0.2, -2, 0.05, 0, -2 + 2e-4});
  const std::vector<Tensor> out = edge.agree(Odd);
  for (const Tensor& t : out) EXPECT_TRUE(finite(t));
  const Numbers d = out[2].numbers<double>();
  for (std::size_t k = 0; k < 9; ++k) EXPECT_EQ(d[k], 0) << k;
  edge.with("positions", 9, {0.05, 0, -2 + 0.5e-4});
  EXPECT_TRUE(same(edge.agree(Odd)[2], Tensor::zeros(out[2].type())));
}

TEST(BackendSplatEdges, HugeAndTinySplats) {
  for (const double scale : {3.0, 8.0, 20.0, -20.0, -100.0, -700.0}) {
    EdgeScene edge(few());
    edge.with("scales", 0, {scale, scale, scale, scale, -1, -1});
    for (const Tensor& t : edge.agree(Odd)) EXPECT_TRUE(finite(t)) << scale;
  }
}

TEST(BackendSplatEdges, OpacitiesOfNothingAndAll) {
  EdgeScene edge(few());
  edge.with("opacities", 0, {0, 1, -3, 7});
  for (const Tensor& t : edge.agree(Odd)) EXPECT_TRUE(finite(t));
  GaussianSplatRenderParams logits = Odd;
  logits.opacity_space = OpacitySpace::Logit;
  edge.with("opacities", 0, {-Infinity, Infinity, -800, 800});
  for (const Tensor& t : edge.agree(logits)) EXPECT_TRUE(finite(t));
}

// A splat with a number that is none is not there: the others look as without it, and nothing comes
// back to it.
TEST(BackendSplatEdges, NumbersThatAreNone) {
  const EdgeScene whole(few());
  EdgeScene without(few());
  without.with("opacities", 1, {0});
  const Tensor expected = without.agree(Odd)[1];
  for (const double none : {NaN, Infinity, -Infinity}) {
    for (const char* name : {"positions", "scales", "rotations"}) {
      EdgeScene edge = whole;
      edge.with(name, name == SplatNames[2] ? 5 : 4, {none});
      const std::vector<Tensor> out = edge.agree(Odd);
      EXPECT_TRUE(same(out[1], expected)) << name << none;
      for (std::size_t k = 2; k < out.size(); ++k) EXPECT_TRUE(finite(out[k])) << name << k;
    }
  }
  EdgeScene edge = whole;
  edge.with("opacities", 1, {NaN});
  EXPECT_TRUE(same(edge.agree(Odd)[1], expected));
}

// Cameras that look nowhere see the background; nothing crashes, and scenes get zeros.
TEST(BackendSplatEdges, CamerasThatLookNowhere) {
  const EdgeScene whole(few());
  const Numbers at_target = whole.feeds.at("meta").numbers<double>();
  for (const auto& [place, by] : std::vector<std::pair<std::size_t, Numbers>>{
           {3, {at_target[0], at_target[1], at_target[2]}},  // the target is where it is
           {6, {0, 0, 0}},                                   // no up
           {9, {0}},
           {9, {NaN}},
           {0, {NaN, 0, 0}}}) {
    EdgeScene edge = whole;
    edge.with("meta", place, by);
    const std::vector<Tensor> out = compile(edge.step(Odd), Device::cpu(2)).run(edge.feeds);
    for (std::size_t k = 2; k < 8; ++k) EXPECT_TRUE(finite(out[k])) << place << ", " << k;
    EXPECT_TRUE(close(out[1], interpret(edge.step(Odd), edge.feeds)[1], {1e-8, 1e-9})) << place;
  }
}

// The same in f32: no fault, and numbers where there should be some.
TEST(BackendSplatEdges, InSinglePrecision) {
  for (const double scale : {10.0, -50.0, -2.0}) {
    EdgeScene edge({.dtype = DType::F32, .count = 4, .coefficients = 4});
    edge.with("scales", 0, {scale, scale, scale, scale, -1, -1}).with("positions", 6, {NaN});
    const std::vector<Tensor> out = compile(edge.step(Odd), Device::cpu(2)).run(edge.feeds);
    for (const Tensor& t : out) EXPECT_TRUE(finite(t)) << scale;
  }
}

std::string complaint_about(const std::array<std::int64_t, 7>& lengths,
                            const GaussianSplatRenderParams& params) {
  Graph g("wrong");
  std::array<Value, 7> v;
  for (std::size_t k = 0; k < v.size(); ++k) {
    v[k] = g.input(SplatNames[k], {DType::F32, {lengths[k]}});
  }
  try {
    (void)gaussian_splat_render({v[0], v[1], v[2], v[3], v[4], v[5], v[6]}, params);
  } catch (const UserError& e) {
    return e.what();
  }
  return "nothing";
}

TEST(BackendSplatEdges, WrongShapesAreNamed) {
  using Lengths = std::array<std::int64_t, 7>;
  const auto says = [](const Lengths& lengths, const GaussianSplatRenderParams& params,
                       const std::string& part) {
    const std::string text = complaint_about(lengths, params);
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  says({7, 6, 8, 2, 6, 6, 23}, {}, "positions has 7 numbers, which are not 3 for every splat");
  says({6, 6, 6, 2, 6, 6, 23}, {}, "rotations has 6 numbers instead of 8");
  says({6, 6, 8, 2, 6, 5, 23}, {}, "sh_coeffs has 5 numbers for 2 splats");
  says({6, 6, 8, 2, 6, 6, 24}, {}, "meta has 24 numbers instead of 23, or 35 with a lens");
  says({6, 6, 8, 2, 6, 6, 23}, {.width = 0}, "the image is 0 x 64");
  says({6, 6, 8, 2, 6, 6, 23}, {.alpha_cutoff = 0}, "alpha_cutoff is 0");
}

// Lists that i32 could not count are refused before they are made.
TEST(BackendSplatEdges, ListsThatNobodyCouldHold) {
  const SplatScene scene{.count = 1000};
  Graph g("large");
  const GaussianSplatInputs in = scene.inputs(g);
  try {
    (void)gaussian_splat_prepare(in, {.width = 65536, .height = 65536, .tile_size = 1});
    FAIL() << "lists of 2^42 entries";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("give max_list_entries"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace ricci::testing::splat_edges_test
