// Functions of ricci/array/everyday.h under the names of PyTorch and JAX, and with their values
// (make_everyday_reference.py writes them).
#include "ricci/array/everyday.h"

#include <cmath>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "ricci/array.h"
#include "ricci/support/error.h"

namespace ricci::everyday_test {
namespace {

using Numbers = std::vector<double>;

const std::map<std::string, Numbers>& expected_values() {
  static const std::map<std::string, Numbers> values = {
#include "array/everyday_values.inc"
  };
  return values;
}

// NaN where there is NaN.
void expect_values(const std::string& name, const Array& actual) {
  SCOPED_TRACE(name);
  const Numbers& expected = expected_values().at(name);
  const Numbers found = actual.to_vector();
  ASSERT_EQ(found.size(), expected.size()) << actual;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(found[i])) << i << " of " << actual;
    } else {
      EXPECT_NEAR(found[i], expected[i], 2e-5 * (1 + std::abs(expected[i]))) << i;
    }
  }
}

const Array x = array({-2.5, -1.0, -0.0, 0.0, 0.5, 3.0});
const Array p = array({0.1, 0.5, 0.9});
Array matrix() { return reshape(pow(cast(arange(12), DType::F32), 1.5), {3, 4}) - 5.0; }
Array with_gaps() {
  const Array places = array({{0, 1, 0, 0}, {0, 0, 1, 0}, {1, 1, 1, 1}});
  return where(places == 1, NAN, matrix());
}
Array image() { return reshape(cast(arange(96), DType::F32), {2, 8, 2, 3}); }

TEST(ArrayEveryday, ElementByElement) {
  expect_values("cbrt", cbrt(x));
  expect_values("copysign", copysign(array({1.0, -2.0, 3.0, 4.0, -5.0, 6.0}), x));
  expect_values("signbit", signbit(x));
  expect_values("deg2rad", deg2rad(x));
  expect_values("rad2deg", rad2deg(x));
  expect_values("frac", frac(x));
  expect_values("heaviside", heaviside(x, 0.5));
  expect_values("fmax", fmax(array({NAN, 1.0, NAN}), array({1.0, NAN, NAN})));
  expect_values("fmin", fmin(array({NAN, 1.0, 3.0}), array({1.0, NAN, 2.0})));
  expect_values("logit", logit(p));
  expect_values("sinc", sinc(x));
  expect_values("sinc_slope", vmap(grad([](const Array& v) { return sinc(v); }))(x));
  expect_values("xlogy", xlogy(array({0.0, 2.0, 0.0}), array({0.0, 3.0, NAN})));
  expect_values("polyval", polyval(array({2.0, -1.0, 0.5}), x));
  const Array ends = array({-INFINITY, 1.0, INFINITY, NAN});
  EXPECT_EQ(isposinf(ends).to_vector(), (Numbers{0, 0, 1, 0}));
  EXPECT_EQ(isneginf(ends).to_vector(), (Numbers{1, 0, 0, 0}));
}

TEST(ArrayEveryday, OverAxes) {
  expect_values("nanmax", nanmax(with_gaps(), 1));
  expect_values("nanmin", nanmin(with_gaps(), 0));
  expect_values("nanvar", nanvar(with_gaps(), 0));
  expect_values("nanstd", nanstd(with_gaps()));
  expect_values("logmeanexp", logmeanexp(matrix(), 1));
  expect_values("trapezoid", trapezoid(matrix(), 0.5));
  expect_values("cov", cov(matrix()));
  expect_values("corrcoef", corrcoef(matrix()));
  const auto [low, high] = aminmax(x);
  EXPECT_EQ(low.item(), -2.5);
  EXPECT_EQ(high.item(), 3);
  EXPECT_EQ(nanmax(arange(3)).item(), 2);
}

TEST(ArrayEveryday, Shapes) {
  expect_values("column_stack", column_stack({p, 2.0 * p}));
  expect_values("dstack", dstack({matrix(), matrix() + 1.0}));
  expect_values("array_split", array_split(x, 4)[1]);
  expect_values("block_diag", block_diag({matrix(), p}));
  expect_values("vander", vander(p, 4));
  expect_values("pixel_shuffle", pixel_shuffle(image(), 2));
  expect_values("pixel_unshuffle", pixel_unshuffle(pixel_shuffle(image(), 2), 2));
  EXPECT_EQ(atleast_1d(array(1.0)).shape(), (Dims{1}));
  EXPECT_EQ(atleast_2d(p).shape(), (Dims{1, 3}));
  EXPECT_EQ(atleast_3d(p).shape(), (Dims{1, 3, 1}));
  EXPECT_EQ(atleast_3d(matrix()).shape(), (Dims{3, 4, 1}));
  EXPECT_EQ(unflatten(matrix(), -1, {2, 2}).shape(), (Dims{3, 2, 2}));
  EXPECT_EQ(matrix_transpose(image()).shape(), (Dims{2, 8, 3, 2}));
  const std::vector<Array> all = broadcast_arrays({p, zeros({2, 1})});
  EXPECT_EQ(all[0].shape(), (Dims{2, 3}));
  EXPECT_EQ(all[1].shape(), (Dims{2, 3}));
  EXPECT_THROW((void)pixel_shuffle(image(), 3), UserError);
  EXPECT_THROW((void)array_split(x, 0), UserError);
}

TEST(ArrayEveryday, Products) {
  expect_values("addmm", addmm(p, matrix(), transpose(matrix())));
  expect_values("multi_dot", multi_dot({matrix(), transpose(matrix()), matrix()}));
  expect_values("cdist", cdist(matrix(), matrix() + 1.0));
  expect_values("pairwise_distance", pairwise_distance(matrix(), matrix()[slice({}, {}, -1)]));
  expect_values("logdet", logdet(array({{2.0, 1.0}, {1.0, 3.0}})));
  EXPECT_EQ(vecdot(p, p).item(), sum(p * p).item());
  EXPECT_TRUE(std::isnan(logdet(array({{0.0, 1.0}, {1.0, 0.0}})).item()));
  const Array slopes = grad([](const Array& a) { return sum(cdist(a, a)); })(matrix());
  EXPECT_TRUE(all(isfinite(slopes)).item() != 0);
}

TEST(ArrayEveryday, Networks) {
  const Array line = reshape(sin(cast(arange(14), DType::F32)), {1, 2, 7});
  expect_values("max_pool1d", max_pool1d(line, 3, 2, 1));
  expect_values("avg_pool1d", avg_pool1d(line, 2));
  expect_values("softmin", softmin(matrix()));
  expect_values("hardtanh", hardtanh(x));
  expect_values("hardshrink", hardshrink(x));
  expect_values("softshrink", softshrink(x));
  expect_values("tanhshrink", tanhshrink(x));
  expect_values("threshold", threshold(x, 0.2, -7));
  expect_values("prelu", prelu(image() - 40.0, cast(arange(8), DType::F32) / 8.0));
  expect_values("squareplus", squareplus(x));
  expect_values("standardize", standardize(matrix()));
  expect_values("instance_norm", instance_norm(image()));
  expect_values("smooth_l1_loss", smooth_l1_loss(x, -x, 0.7));
  expect_values("margin_ranking_loss",
                margin_ranking_loss(p, p[slice({}, {}, -1)], array({1.0, -1.0, 1.0}), 0.3));
  expect_values("triplet_margin_loss",
                triplet_margin_loss(matrix(), matrix() + 1.0, matrix() * 1.1));
  expect_values("gaussian_nll_loss", gaussian_nll_loss(p, p * 2.0, array({0.5, 1.0, 0.0})));
  const Array drawn = gumbel_softmax(Key(1), zeros({5, 4}), 0.5);
  EXPECT_TRUE(allclose(sum(drawn, 1), ones({5})));
}

TEST(ArrayEveryday, TakePartInTransforms) {
  const auto f = [](const Array& v) {
    return sum(softshrink(v) * sinc(v) + cbrt(v + 9.0) + squareplus(v) + standardize(v));
  };
  const Array at = array({0.3, -1.7, 2.2});
  const Array once = grad(f)(at);
  EXPECT_TRUE(allclose(jit(grad(f))(at), once, 1e-4, 1e-5));
  EXPECT_TRUE(allclose(vmap(grad(f))(stack({at, at}))[1], once, 1e-4, 1e-5));
}

}  // namespace
}  // namespace ricci::everyday_test
