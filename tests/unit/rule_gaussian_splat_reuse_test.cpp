// What the way back of an image of splats is given by the way there, and derivatives of it.
#include <cmath>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/build/reduce.h"
#include "ricci/interp/interpreter.h"
#include "ricci/transform/check.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/higher_order.h"

#include "support/compare.h"
#include "support/count.h"
#include "support/splat_scene.h"

namespace ricci::testing::rule_gaussian_splat_reuse_test {
namespace {

using Params = GaussianSplatRenderParams;

Graph loss_of(const SplatScene& scene, const Params& params, bool decomposed = false) {
  Graph g("loss");
  const GaussianSplatInputs in = scene.inputs(g);
  const Value image =
      decomposed ? gaussian_splat_render_decomposed(in, params) : gaussian_splat_render(in, params);
  const Value weights = g.constant(random_tensor(99, image.type(), -1, 1));
  g.set_outputs({sum(square(image) * weights)});
  return g;
}

const Node* backward_in(const Graph& g) {
  for (const Node& node : g.nodes()) {
    if (node.op.as<op::GaussianSplatBackward>() != nullptr) return &node;
  }
  return nullptr;
}

Graph gradient_of(const SplatScene& scene, const Params& params) {
  return value_and_grad(loss_of(scene, params), {SplatNames.begin(), SplatNames.end()}).graph;
}

// The gradient's operands are results of the forward's nodes: the image, where pixels end, the
// projection and the lists. [splat-backward-reuse]
TEST(GaussianSplatReuse, TheWayBackIsGivenWhatTheWayThereFound) {
  const SplatScene scene;
  const Graph g = gradient_of(scene, {.width = 9, .height = 7, .tile_size = 4});
  EXPECT_EQ(count_ops<op::GaussianSplatPrepare>(g), 1U);
  EXPECT_EQ(count_ops<op::GaussianSplatRasterize>(g), 1U);
  EXPECT_EQ(count_ops<op::GaussianSplatRender>(g), 0U);
  const Node* back = backward_in(g);
  ASSERT_NE(back, nullptr);
  ASSERT_EQ(back->operands.size(), 18U);
  for (std::size_t k = 8; k < 18; ++k) {
    const Op& from = g.node(back->operands[k].node).op;
    const bool pixels = from.as<op::GaussianSplatRasterize>() != nullptr;
    EXPECT_TRUE(pixels || from.as<op::GaussianSplatPrepare>() != nullptr) << k;
    EXPECT_EQ(pixels, k < 11) << k;
  }
}

// Nothing is kept for lists that would be too long; the gradient is the same.
TEST(GaussianSplatReuse, LongListsAreNotKept) {
  const SplatScene scene{.count = 3};
  const Params params{.width = 9, .height = 7, .tile_size = 4, .max_list_entries = 18};
  const SplatScene many{.count = 1 << 14};
  const Graph large = gradient_of(many, {.width = 1024, .height = 1024, .tile_size = 8});
  EXPECT_EQ(count_ops<op::GaussianSplatPrepare>(large), 0U);
  ASSERT_NE(backward_in(large), nullptr);
  EXPECT_EQ(backward_in(large)->operands.size(), 8U);
  const Graph bounded = gradient_of(
      many, {.width = 1024, .height = 1024, .tile_size = 8, .max_list_entries = 1 << 20});
  EXPECT_EQ(count_ops<op::GaussianSplatPrepare>(bounded), 1U);
  const Graph kept = gradient_of(scene, params);
  EXPECT_EQ(count_ops<op::GaussianSplatPrepare>(kept), 1U);
}

// Lists that are too short for a scene are an error that says so, in the gradient too.
// [splat-no-drop]
TEST(GaussianSplatReuse, ShortListsAreAnError) {
  const SplatScene scene{.count = 3, .smallest = 0, .largest = 1};
  const Params params{.width = 9, .height = 7, .tile_size = 4, .max_list_entries = 5};
  try {
    (void)interpret(gradient_of(scene, params), scene.feeds());
    FAIL() << "lists of 5 entries held more";
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ErrorCode::OutOfMemory);
    EXPECT_NE(std::string(e.what()).find("room for 5"), std::string::npos) << e.what();
  }
}

// First and second derivatives of the whole and of the halves, by differences and by duality.
// [splat-second-order]
TEST(GaussianSplatReuse, DerivativesOfDerivatives) {
  const SplatScene scene{.count = 2, .coefficients = 4};
  const Params params{.width = 5, .height = 4, .tile_size = 3, .alpha_cutoff = 1e-9};
  for (const bool decomposed : {false, true}) {
    const DerivativeReport report = check_derivatives(loss_of(scene, params, decomposed), {},
                                                      scene.feeds(), {.directions = 1, .order = 2});
    EXPECT_TRUE(report.ok()) << report.to_string();
  }
}

// The product of the second derivative and a vector is the difference of gradients along it.
// [splat-second-order]
TEST(GaussianSplatReuse, HessianTimesVector) {
  const SplatScene scene{.count = 3, .coefficients = 4};
  const Params params{.width = 6, .height = 5, .tile_size = 4, .alpha_cutoff = 1e-12};
  const Graph loss = loss_of(scene, params);
  const Feeds feeds = scene.feeds();
  const Transformed product = hvp(loss, {"positions"});
  const Tensor along = random_tensor(7, feeds.at("positions").type(), -1, 1);
  Feeds with_vector = feeds;
  for (const auto& [conventional, chosen] : product.names) with_vector[chosen] = along;
  const Graph gradient = value_and_grad(loss, {"positions"}).graph;
  const auto gradient_at = [&](double h) {
    std::vector<double> moved = feeds.at("positions").numbers<double>();
    const std::vector<double> by = along.numbers<double>();
    for (std::size_t i = 0; i < moved.size(); ++i) moved[i] += h * by[i];
    Feeds other = feeds;
    other["positions"] = Tensor::from_numbers<double>(along.type(), moved);
    return interpret(gradient, other)[1].numbers<double>();
  };
  const std::vector<Tensor> out = interpret(product.graph, with_vector);
  const std::vector<double> exact = out.back().numbers<double>();
  constexpr double Step = 1e-5;
  const std::vector<double> above = gradient_at(Step);
  const std::vector<double> below = gradient_at(-Step);
  ASSERT_EQ(exact.size(), above.size());
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double difference = (above[i] - below[i]) / (2 * Step);
    EXPECT_NEAR(exact[i], difference, 1e-6 * (1 + std::fabs(difference))) << i;
  }
}

// Ids and ranges are integers, and tile by tile the ids are in the order of distance.
// [splat-ids-exact]
TEST(GaussianSplatReuse, IdsAreIntegers) {
  const SplatScene scene{.count = 12, .coefficients = 1};
  Graph g("prepared");
  const GaussianSplatInputs in = scene.inputs(g);
  const GaussianSplatPrepared p =
      gaussian_splat_prepare(in, {.width = 16, .height = 16, .tile_size = 4});
  EXPECT_EQ(p.ids.dtype(), DType::I32);
  EXPECT_EQ(p.tile_ranges.dtype(), DType::I32);
  g.set_outputs({p.ids, p.tile_ranges});
  const std::vector<Tensor> out = interpret(g, scene.feeds());
  const std::vector<std::int64_t> ids = out[0].numbers<std::int64_t>();
  const std::vector<std::int64_t> ranges = out[1].numbers<std::int64_t>();
  const std::vector<double> positions = scene.feeds().at("positions").numbers<double>();
  const auto distance = [&](std::int64_t i) {
    double sum = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      const double d = positions[3 * static_cast<std::size_t>(i) + k] - scene.camera.position[k];
      sum += d * d;
    }
    return sum;
  };
  std::int64_t next = 0;
  for (std::size_t t = 0; t < ranges.size(); t += 2) {
    if (ranges[t] < 0) {
      EXPECT_EQ(ranges[t + 1], 0);
      continue;
    }
    EXPECT_EQ(ranges[t], next);
    next = ranges[t + 1];
    for (std::int64_t k = ranges[t] + 1; k < next; ++k) {
      EXPECT_LE(distance(ids[static_cast<std::size_t>(k - 1)]),
                distance(ids[static_cast<std::size_t>(k)]));
    }
  }
  EXPECT_GT(next, 12);
}

// A buffer gives back what was packed, and the image made of it is the same.
TEST(GaussianSplatReuse, PreparedBuffersComeApartAsTheyWere) {
  for (const std::int64_t count : {0, 1, 5}) {
    const SplatScene scene{.count = count, .coefficients = 1};
    Graph g("packed");
    const GaussianSplatInputs in = scene.inputs(g);
    const op::GaussianSplatPrepare prepare{
        .width = 9, .height = 7, .tile_size = 4, .max_list_entries = 40};
    const op::GaussianSplatRasterize rasterize{
        .width = 9, .height = 7, .tile_size = 4, .max_list_entries = 40};
    const GaussianSplatPrepared p = gaussian_splat_prepare(in, prepare);
    const Value packed = pack_gaussian_splat_prepared(p, in.meta, rasterize);
    EXPECT_TRUE(packed.dims()[0].is(gaussian_splat_prepare_length(prepare, count)));
    const GaussianSplatPrepared again = unpack_gaussian_splat_prepared(packed, count, rasterize);
    const auto parts = [](const GaussianSplatPrepared& v) {
      return std::vector{v.color_alpha, v.pos_local,   v.inv_scale, v.quaternion,
                         v.ids,         v.tile_ranges, v.rays};
    };
    std::vector<Value> outputs = parts(p);
    for (const Value& v : parts(again)) outputs.push_back(v);
    outputs.push_back(gaussian_splat_rasterize(p, in.meta, rasterize));
    outputs.push_back(gaussian_splat_rasterize(again, in.meta, rasterize));
    g.set_outputs(outputs);
    const std::vector<Tensor> out = interpret(g, scene.feeds());
    for (std::size_t k = 0; k < 7; ++k) EXPECT_TRUE(same(out[k], out[k + 7])) << k;
    EXPECT_TRUE(same(out[14], out[15]));
  }
}

}  // namespace
}  // namespace ricci::testing::rule_gaussian_splat_reuse_test
