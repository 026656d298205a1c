// Gaussian splats: images whose pixels are known, gradients by differences for every number of the
// scene and of the camera, the two halves against the whole, and packed gradients.
#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/compiler/rewrite/fuse.h"
#include "ricci/compiler/rewrite/prepare.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/verify.h"
#include "ricci/transform/check.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/vmap.h"

#include "support/compare.h"
#include "support/count.h"
#include "support/splat_scene.h"

namespace ricci::testing::rule_gaussian_splat_test {
namespace {

using Params = GaussianSplatRenderParams;

Params small() { return {.width = 9, .height = 7, .tile_size = 4}; }

Graph image_of(const SplatScene& scene, const Params& params) {
  Graph g("image");
  g.set_outputs({gaussian_splat_render(scene.inputs(g), params)});
  return g;
}

// A number that every pixel moves.
Graph loss_of(const SplatScene& scene, const Params& params, bool decomposed = false) {
  Graph g("loss");
  const GaussianSplatInputs in = scene.inputs(g);
  const Value image =
      decomposed ? gaussian_splat_render_decomposed(in, params) : gaussian_splat_render(in, params);
  const Value weights = g.constant(random_tensor(99, image.type(), -1, 1));
  g.set_outputs({sum(image * weights)});
  return g;
}

std::vector<Tensor> gradients_of(const Graph& loss, const Feeds& feeds) {
  const std::vector<ValueRef> names(SplatNames.begin(), SplatNames.end());
  std::vector<Tensor> out = interpret(value_and_grad(loss, names).graph, feeds);
  out.erase(out.begin());  // the loss
  return out;
}

// Every number of every input, one after the other. Options keep the image smooth: what is cut off
// is too small to see.
void expect_gradient_by_differences(const SplatScene& scene, Params params) {
  params.alpha_cutoff = 1e-13;
  params.transmittance_threshold = 0;
  params.max_splat_steps = 0;
  const Graph loss = loss_of(scene, params);
  const Feeds feeds = scene.feeds();
  const std::vector<Tensor> gradients = gradients_of(loss, feeds);
  const auto moved = [&](std::size_t k, std::size_t i, double by) {
    Feeds other = feeds;
    std::vector<double> numbers = feeds.at(SplatNames[k]).numbers<double>();
    numbers[i] += by;
    other[SplatNames[k]] = Tensor::from_numbers<double>(feeds.at(SplatNames[k]).type(), numbers);
    return interpret(loss, other)[0].item();
  };
  for (std::size_t k = 0; k < SplatNames.size(); ++k) {
    const std::vector<double> exact = gradients[k].numbers<double>();
    for (std::size_t i = 0; i < exact.size(); ++i) {
      constexpr double Step = 1e-4;
      const auto slope = [&](double h) { return (moved(k, i, h) - moved(k, i, -h)) / (2 * h); };
      // Richardson's extrapolation: what is left is of fourth order.
      const double difference = (4 * slope(Step) - slope(2 * Step)) / 3;
      EXPECT_NEAR(exact[i], difference, 1e-7 * (1 + std::fabs(difference)))
          << SplatNames[k] << "[" << i << "]";
    }
  }
}

// Position, target, up, field of view and background of the camera; all bands.
// [splat-analytic-grad] [splat-sh-bands] [splat-conventions]
TEST(GaussianSplat, GradientsAreThoseOfDifferences) {
  for (const std::int64_t coefficients : {1, 4, 9, 16}) {
    expect_gradient_by_differences({.count = 2, .coefficients = coefficients}, small());
  }
}

TEST(GaussianSplat, GradientsInOtherSpacesAreThoseOfDifferences) {
  Params params = small();
  params.opacity_space = OpacitySpace::Logit;
  params.color_source = SplatColor::Rgb;
  params.gamma = 1;
  expect_gradient_by_differences({.count = 3, .coefficients = 1}, params);
  params = small();
  params.view_from_splat = true;
  expect_gradient_by_differences({.count = 2, .coefficients = 9}, params);
}

// Focal lengths, the principal point and every coefficient of the distortion. [splat-conventions]
TEST(GaussianSplat, GradientsThroughALensAreThoseOfDifferences) {
  SplatScene scene{.count = 2, .coefficients = 4};
  scene.camera.lens = {.focal = {9, 8.5},
                       .principal_point = {4.4, 3.7},
                       .distortion = {0.11, -0.06, 0.02, -0.03, 0.04, 0.05, -0.02, 0.01}};
  expect_gradient_by_differences(scene, small());
}

// A lens that does nothing, with the focal length that the field of view stands for.
TEST(GaussianSplat, AClearLensIsNone) {
  SplatScene scene{.count = 5, .coefficients = 4};
  const Tensor plain = interpret(image_of(scene, small()), scene.feeds())[0];
  const double focal = 3.5 / std::tan(scene.camera.field_of_view * std::numbers::pi / 360);
  scene.camera.lens = {.focal = {focal, focal}, .principal_point = {4.5, 3.5}};
  EXPECT_TRUE(close(interpret(image_of(scene, small()), scene.feeds())[0], plain, {1e-12, 1e-12}));
  scene.camera.lens->distortion[0] = 0.3;
  EXPECT_FALSE(close(interpret(image_of(scene, small()), scene.feeds())[0], plain, {1e-3, 1e-3}));
}

// [splat-background]
TEST(GaussianSplat, APixelWithoutHitsIsBackground) {
  const SplatScene none{.count = 0, .coefficients = 1};
  const std::vector<double> rgba =
      interpret(image_of(none, small()), none.feeds())[0].numbers<double>();
  for (std::size_t p = 0; p < rgba.size(); p += 4) {
    for (std::size_t c = 0; c < 3; ++c) {
      EXPECT_DOUBLE_EQ(rgba[p + c], std::pow(none.camera.background[c], 2.2));
    }
    EXPECT_EQ(rgba[p + 3], 0);
  }
}

// Odd bands change their sign with the direction. [splat-view-direction]
TEST(GaussianSplat, TheViewDirectionHasASide) {
  const SplatScene scene{.count = 1, .coefficients = 4};
  Feeds feeds = scene.feeds();
  Feeds mirrored = feeds;
  std::vector<double> sh = feeds.at("sh_coeffs").numbers<double>();
  for (std::size_t i = 3; i < sh.size(); ++i) sh[i] = -sh[i];
  mirrored["sh_coeffs"] = Tensor::from_numbers<double>(feeds.at("sh_coeffs").type(), sh);
  Params other = small();
  other.view_from_splat = true;
  const Tensor from_splat = interpret(image_of(scene, other), feeds)[0];
  EXPECT_TRUE(close(interpret(image_of(scene, small()), mirrored)[0], from_splat));
  EXPECT_FALSE(close(interpret(image_of(scene, small()), feeds)[0], from_splat));
}

// One round splat straight ahead: what is seen of it in the middle is its colour, and that is
// 1/2 + C0·sh_0 - C1·y·sh_1 + C1·z·sh_2 - C1·x·sh_3 in the direction from the camera to it.
// [splat-view-direction] [splat-sh-bands]
TEST(GaussianSplat, HarmonicsAreThoseOfTheDirectionFromTheCamera) {
  SplatScene scene{.count = 1, .coefficients = 4};
  scene.camera = {.position = {0, 0, -3}};
  Feeds feeds = scene.feeds();
  const auto feed = [&](const char* name, const std::vector<double>& numbers) {
    feeds[name] = Tensor::from_numbers<double>(feeds.at(name).type(), numbers);
  };
  feed("positions", {0, 0, 0});
  feed("opacities", {1});
  feed("rotations", {1, 0, 0, 0});
  feed("sh_coeffs", {0.1, 0.2, 0.3, 9, 9, 9, 0.4, 0.1, -0.2, 9, 9, 9});
  const Params params{.width = 1, .height = 1, .gamma = 1};
  const std::vector<double> rgba = interpret(image_of(scene, params), feeds)[0].numbers<double>();
  constexpr double C0 = 0.28209479177387814;
  constexpr double C1 = 0.4886025119029199;
  EXPECT_NEAR(rgba[0], 0.5 + C0 * 0.1 + C1 * 0.4, 1e-12);
  EXPECT_NEAR(rgba[1], 0.5 + C0 * 0.2 + C1 * 0.1, 1e-12);
  EXPECT_NEAR(rgba[2], 0.5 + C0 * 0.3 - C1 * 0.2, 1e-12);
  EXPECT_NEAR(rgba[3], 1, 1e-12);
}

// Rotations need no length. They are w, x, y, z: a quarter turn about z lays x along y.
// [splat-conventions]
TEST(GaussianSplat, QuaternionsAreNormalised) {
  const SplatScene scene{.count = 1, .coefficients = 1};
  const auto image = [&](const std::vector<double>& q, const std::vector<double>& scales) {
    Feeds feeds = scene.feeds();
    feeds["rotations"] = Tensor::from_numbers<double>(feeds.at("rotations").type(), q);
    feeds["scales"] = Tensor::from_numbers<double>(feeds.at("scales").type(), scales);
    return interpret(image_of(scene, small()), feeds)[0];
  };
  const double half = std::sqrt(0.5);
  const Tensor turned = image({half, 0, 0, half}, {-1, -2, -2.2});
  EXPECT_TRUE(close(turned, image({1, 0, 0, 0}, {-2, -1, -2.2})));
  EXPECT_TRUE(close(turned, image({4, 0, 0, 4}, {-1, -2, -2.2})));
  EXPECT_FALSE(close(turned, image({half, half, 0, 0}, {-1, -2, -2.2})));
}

// [splat-conventions]
TEST(GaussianSplat, OpacitiesAreLinearOrLogits) {
  const SplatScene scene{.count = 3, .coefficients = 1};
  Feeds feeds = scene.feeds();
  const Tensor linear = interpret(image_of(scene, small()), feeds)[0];
  std::vector<double> logits = feeds.at("opacities").numbers<double>();
  for (double& v : logits) v = std::log(v / (1 - v));
  feeds["opacities"] = Tensor::from_numbers<double>(feeds.at("opacities").type(), logits);
  Params params = small();
  params.opacity_space = OpacitySpace::Logit;
  EXPECT_TRUE(close(interpret(image_of(scene, params), feeds)[0], linear));
  EXPECT_FALSE(close(interpret(image_of(scene, small()), feeds)[0], linear));
}

// Harmonics are harmonics, also where all of band 0 is zero; colors are not looked at then, and get
// nothing. With colors it is the other way round. [splat-color-source]
TEST(GaussianSplat, ColoursHaveOneSource) {
  const SplatScene scene{.count = 3, .coefficients = 1};
  Feeds feeds = scene.feeds();
  feeds["sh_coeffs"] = Tensor::zeros(feeds.at("sh_coeffs").type());
  Feeds other = feeds;
  other["colors"] = random_tensor(77, feeds.at("colors").type(), 0, 1);
  Params rgb = small();
  rgb.color_source = SplatColor::Rgb;
  const auto image = [&](const Params& p, const Feeds& f) {
    return interpret(image_of(scene, p), f)[0];
  };
  EXPECT_TRUE(same(image(small(), feeds), image(small(), other)));
  EXPECT_FALSE(close(image(rgb, feeds), image(rgb, other)));
  const auto is_zero = [](const Tensor& t) { return same(t, Tensor::zeros(t.type())); };
  const std::vector<Tensor> of_harmonics = gradients_of(loss_of(scene, small()), feeds);
  EXPECT_TRUE(is_zero(of_harmonics[4]));
  EXPECT_FALSE(is_zero(of_harmonics[5]));
  const std::vector<Tensor> of_colors = gradients_of(loss_of(scene, rgb), feeds);
  EXPECT_FALSE(is_zero(of_colors[4]));
  EXPECT_TRUE(is_zero(of_colors[5]));
}

// With one step a pixel sees its nearest splat and the background; the others get no gradient.
// [splat-background]
TEST(GaussianSplat, StepsAreCountedEverywhere) {
  const SplatScene scene{.count = 3, .coefficients = 1, .smallest = 0, .largest = 1};
  Params params = small();
  params.max_splat_steps = 1;
  Feeds feeds = scene.feeds();
  const std::vector<double> in_a_row = {0, 0, 0.5, 0, 0, -0.5, 0, 0, 0};
  feeds["positions"] = Tensor::from_numbers<double>(feeds.at("positions").type(), in_a_row);
  const auto image = [&](bool decomposed) {
    Graph g("image");
    const GaussianSplatInputs in = scene.inputs(g);
    g.set_outputs({decomposed ? gaussian_splat_render_decomposed(in, params)
                              : gaussian_splat_render(in, params)});
    return interpret(g, feeds)[0];
  };
  const Tensor whole = image(false);
  EXPECT_TRUE(close(image(true), whole, {1e-12, 1e-12}));
  Feeds alone = feeds;
  std::vector<double> opacities = feeds.at("opacities").numbers<double>();
  opacities[0] = opacities[2] = 0;  // the nearest is the second
  alone["opacities"] = Tensor::from_numbers<double>(feeds.at("opacities").type(), opacities);
  EXPECT_TRUE(close(interpret(image_of(scene, params), alone)[0], whole));
  const std::vector<double> d = gradients_of(loss_of(scene, params), feeds)[3].numbers<double>();
  EXPECT_EQ(d[0], 0);
  EXPECT_NE(d[1], 0);
  EXPECT_EQ(d[2], 0);
}

// Lists of tiles lose nothing, whatever the tiles, splats around the camera and tiny ones included.
// [splat-no-drop] [splat-exact-ellipse] [splat-ids-exact]
TEST(GaussianSplat, TheImageDoesNotDependOnTiles) {
  SplatScene scene{.count = 40, .coefficients = 1, .smallest = -7, .largest = 0.3};
  scene.camera.position = {0.4, 0.3, -1.1};
  Params params{.width = 13, .height = 11, .max_splat_steps = 0};
  const Tensor whole = interpret(image_of(scene, params), scene.feeds())[0];
  for (const std::int64_t tile : {1, 2, 5, 16}) {
    params.tile_size = tile;
    Graph g("halves");
    g.set_outputs({gaussian_splat_render_decomposed(scene.inputs(g), params)});
    EXPECT_TRUE(close(interpret(g, scene.feeds())[0], whole, {1e-12, 1e-12})) << tile;
  }
}

// [splat-second-order]
TEST(GaussianSplat, HalvesHaveTheGradientOfTheWhole) {
  const SplatScene scene{.count = 3, .coefficients = 4};
  const auto gradients = [&](bool decomposed) {
    return gradients_of(loss_of(scene, small(), decomposed), scene.feeds());
  };
  const std::vector<Tensor> whole = gradients(false);
  const std::vector<Tensor> halves = gradients(true);
  for (std::size_t k = 0; k < whole.size(); ++k) {
    EXPECT_TRUE(close(halves[k], whole[k], {1e-10, 1e-12})) << SplatNames[k];
  }
}

TEST(GaussianSplat, PreparationJoinsTheHalves) {
  const SplatScene scene;
  const Graph halves = loss_of(scene, small(), true);
  for (const auto& pass : {fuse_decomposed_gaussian_splat, prepare_for_autodiff}) {
    const PassResult fused = pass(halves);
    verify(fused.graph);
    EXPECT_TRUE(fused.changed);
    EXPECT_EQ(count_ops<op::GaussianSplatRender>(fused.graph), 1U);
    EXPECT_EQ(count_ops<op::GaussianSplatRasterize>(fused.graph), 0U);
    EXPECT_EQ(count_ops<op::GaussianSplatPrepare>(fused.graph), 0U);
    EXPECT_FALSE(fuse_decomposed_gaussian_splat(fused.graph).changed);
    EXPECT_TRUE(
        close(interpret(fused.graph, scene.feeds())[0], interpret(halves, scene.feeds())[0]));
  }
}

// An axis without extent is as thin as axes may be, and nothing pulls at it.
TEST(GaussianSplat, FlatSplatsAreSeen) {
  const SplatScene scene{.count = 2, .coefficients = 1};
  const auto with_scale = [&](double s) {
    Feeds feeds = scene.feeds();
    std::vector<double> scales = feeds.at("scales").numbers<double>();
    scales[0] = s;
    feeds["scales"] = Tensor::from_numbers<double>(feeds.at("scales").type(), scales);
    return feeds;
  };
  const Tensor flat = interpret(image_of(scene, small()), with_scale(-60))[0];
  EXPECT_TRUE(same(flat, interpret(image_of(scene, small()), with_scale(-40))[0]));
  const std::vector<Tensor> d = gradients_of(loss_of(scene, small()), with_scale(-40));
  EXPECT_EQ(d[1].numbers<double>()[0], 0);
  EXPECT_NE(d[1].numbers<double>()[1], 0);
}

// A prepare that somebody else reads stays, and so does its rasterize.
TEST(GaussianSplat, HalvesThatAreSeenStayApart) {
  const SplatScene scene;
  Graph g("seen");
  const GaussianSplatInputs in = scene.inputs(g);
  const Value image = gaussian_splat_render_decomposed(in, small());
  const Value colors = g.value({image.graph().node(image.id().node).operands[0].node, 0});
  g.set_outputs({image, colors});
  EXPECT_FALSE(fuse_decomposed_gaussian_splat(g).changed);
}

TEST(GaussianSplat, PackedGradientsComeApartAsTheyWere) {
  const SplatScene scene{.count = 3, .coefficients = 4};
  Graph g("packed");
  const GaussianSplatInputs in = scene.inputs(g);
  const Value d = g.constant(random_tensor(5, {DType::F64, {9 * 7 * 4}}, -1, 1));
  const Value packed = gaussian_splat_render_backward(in, d, {.render = small()});
  EXPECT_TRUE(packed.dims()[0].is(gaussian_splat_packed_grad_length(3, 4)));
  const GaussianSplatGradients parts = unpack_gaussian_splat_packed_grads(g, packed, 3, 4);
  const auto direct =
      gaussian_splat_backward(in.positions, in.scales, in.rotations, in.opacities, in.colors,
                              in.sh_coeffs, in.meta, d, {.width = 9, .height = 7, .tile_size = 4});
  g.set_outputs({parts.positions, parts.scales, parts.rotations, parts.opacities, parts.colors,
                 parts.sh_coeffs, direct[0], direct[1], direct[2], direct[3], direct[4],
                 direct[5]});
  const std::vector<Tensor> out = interpret(g, scene.feeds());
  for (std::size_t k = 0; k < 6; ++k) EXPECT_TRUE(same(out[k], out[k + 6])) << SplatNames[k];
}

// What training may ask for is no part of the gradient. [splat-no-clip-in-vjp]
TEST(GaussianSplat, ClippingIsAskedFor) {
  const SplatScene scene{.count = 2, .coefficients = 1};
  const auto packed = [&](double scale, const GaussianSplatBackwardParams& params) {
    Graph g("packed");
    const GaussianSplatInputs in = scene.inputs(g);
    const Value d = g.constant(Tensor::from_numbers<double>({DType::F64, {9 * 7 * 4}},
                                                            std::vector<double>(9 * 7 * 4, scale)));
    g.set_outputs({gaussian_splat_render_backward(in, d, params)});
    return interpret(g, scene.feeds())[0];
  };
  const Tensor once = packed(1, {.render = small()});
  EXPECT_TRUE(same(packed(5, {.render = small(), .loss_grad_clip = 1}), once));
  EXPECT_FALSE(close(packed(5, {.render = small()}), once));
  EXPECT_TRUE(same(packed(1, {.render = small(), .max_anisotropy = 1e6}), once));
  EXPECT_FALSE(close(packed(1, {.render = small(), .max_anisotropy = 1}), once));
}

TEST(GaussianSplat, LengthsOfBuffers) {
  EXPECT_EQ(gaussian_splat_tile_count(33, 16, 16), 3);
  EXPECT_EQ(gaussian_splat_packed_grad_length(0, 7), 0);
  EXPECT_EQ(gaussian_splat_prepare_length(
                {.width = 32, .height = 16, .tile_size = 16, .max_list_entries = 10}, 2),
            2 * 15 + 10 + 2 * 2 + 3 * 32 * 16 + 11);
}

// Cameras in a batch share the scene, which gets the sum of their gradients.
TEST(GaussianSplat, ABatchOfCameras) {
  const SplatScene scene{.count = 3, .coefficients = 4};
  const Transformed over = vmap(image_of(scene, small()), {{"meta"}}, 2);
  EXPECT_EQ(count_ops<op::GaussianSplatRender>(over.graph), 1U);
  Feeds feeds = scene.feeds();
  SplatScene other = scene;
  other.camera.position = {-0.5, 0.2, -3.5};
  std::vector<double> both = feeds.at("meta").numbers<double>();
  for (const double v : other.feeds().at("meta").numbers<double>()) both.push_back(v);
  feeds["meta"] = Tensor::from_numbers<double>({DType::F64, {2, SplatMetaLength}}, both);
  const Tensor images = interpret(over.graph, feeds)[0];
  const Tensor second = interpret(image_of(scene, small()), other.feeds())[0];
  EXPECT_TRUE(same(images.narrowed(0, 1, 1).reshaped(second.dims()), second));
}

}  // namespace
}  // namespace ricci::testing::rule_gaussian_splat_test
