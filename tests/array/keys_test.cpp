// Keys in a row: what split gives, loops and vmap go through, and functions of one key refuse.
// Distributions: moments of many draws.
#include <cmath>

#include <gtest/gtest.h>

#include "ricci/array.h"
#include "ricci/support/error.h"

namespace ricci::keys_test {
namespace {

using Numbers = std::vector<double>;

TEST(ArrayKeys, AreGoneThroughOneByOne) {
  const Keys keys = split(Key(3), 4);
  EXPECT_EQ(keys.size(), 4U);
  const auto draw = [](Key k) { return normal(k, {3}); };
  const Array all = vmap(draw)(keys);
  const Array compiled = jit(vmap(draw))(split(Key(3), 4));
  const auto [last, scanned] =
      scan(array(0), keys, [](Array n, Key k) { return carry_and(n + 1, normal(k, {3})); });
  EXPECT_EQ(last.item(), 4);
  std::int64_t i = 0;
  for (const Key& k : keys) {
    const Numbers one = normal(k, {3}).to_vector();
    EXPECT_EQ(normal(keys[i], {3}).to_vector(), one);
    EXPECT_EQ(all[i].to_vector(), one);
    EXPECT_EQ(compiled[i].to_vector(), one);
    EXPECT_EQ(scanned[i].to_vector(), one);
    ++i;
  }
  EXPECT_EQ(i, 4);
  const std::vector<Key> several = split(Key(3), 4);
  EXPECT_EQ(normal(several[2], {3}).to_vector(), all[2].to_vector());
}

TEST(ArrayKeys, LieInTreesAndTakeAxes) {
  struct State {
    Array x;
    Key key;
  };
  const auto step = [](State s, const std::tuple<Array, Key>& row) {
    const auto& [by, k] = row;
    return State{s.x + by * uniform(k, {}), s.key.fold_in(1)};
  };
  const State last =
      scan(State{array(0.0), Key(1)}, std::tuple{ones({5}), split(Key(2), 5)}, step).last;
  double expected = 0;
  for (const Key& k : split(Key(2), 5)) expected += uniform(k, {}).item();
  EXPECT_NEAR(last.x.item(), expected, 1e-6);
  const auto noisy = [](Key k, const Array& x) { return x + normal(k, {2}); };
  EXPECT_EQ(vmap(noisy, {.in_axes = {0, {}}})(split(Key(5), 3), zeros({2})).shape(), (Dims{3, 2}));
  EXPECT_EQ(vmap([](Key k) { return split(k, 2); })(split(Key(5), 3)).words().shape(),
            (Dims{3, 2}));
}

TEST(ArrayKeys, AreNotOneKey) {
  try {
    (void)normal(split(Key(1), 4), {2});
    FAIL();
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("[4] keys stand where one is drawn from"),
              std::string::npos)
        << e.what();
  }
  EXPECT_THROW((void)split(split(Key(1), 4), 2), UserError);
  EXPECT_THROW((void)split(Key(1), 4).fold_in(2), UserError);
}

// Mean and variance of many draws, within five deviations of the mean.
void expect_moments(const char* name, const Array& drawn, double mean, double variance) {
  SCOPED_TRACE(name);
  const Array x = cast(drawn, DType::F64);
  const auto n = static_cast<double>(x.size());
  EXPECT_NEAR(ricci::mean(x).item(), mean, 5 * std::sqrt(variance / n));
  EXPECT_NEAR(var(x).item(), variance, 0.1 * variance);
}

TEST(ArrayDistributions, HaveTheirMoments) {
  const Dims shape = {200, 100};
  expect_moments("laplace", laplace(Key(1), shape), 0, 2);
  expect_moments("logistic", logistic(Key(2), shape), 0, M_PI * M_PI / 3);
  expect_moments("rademacher", rademacher(Key(3), shape), 0, 1);
  for (const double a : {0.3, 1.0, 4.5}) {
    expect_moments("gamma", gamma(Key(4), a, shape), a, a);
  }
  expect_moments("beta", beta(Key(5), 2.0, 3.0, shape), 0.4, 0.04);
  for (const double rate : {0.0, 0.5, 9.5, 10.5, 1000.0}) {
    const Array n = poisson(Key(6), rate, shape);
    EXPECT_EQ(n.dtype(), DType::I32);
    expect_moments("poisson", n, rate, rate);
  }
  EXPECT_NEAR(median(cauchy(Key(7), shape)).item(), 0, 0.05);
  const Array cov = array({{2.0, 0.5}, {0.5, 1.0}});
  const Array v = multivariate_normal(Key(8), array({1.0, -1.0}), cov, {20000});
  EXPECT_TRUE(allclose(mean(v, 0), array({1.0, -1.0}), 0, 0.06));
  EXPECT_TRUE(allclose(ricci::cov(transpose(v)), cov, 0, 0.1));
  const Array d = dirichlet(Key(9), array({1.0, 2.0, 7.0}), {5000});
  EXPECT_TRUE(allclose(sum(d, 1), ones({5000})));
  EXPECT_TRUE(allclose(mean(d, 0), array({0.1, 0.2, 0.7}), 0, 0.02));
  // Each element has a parameter of its own; the same under jit and vmap.
  const Array rates = array({1.0, 100.0});
  EXPECT_TRUE(
      allclose(mean(cast(poisson(Key(10), rates, {20000, 2}), DType::F32), 0), rates, 0.03));
  const auto draw = [](Key k) { return gamma(k, array({0.5, 3.0}), {2}); };
  const Keys keys = split(Key(11), 3);
  const Array rows = jit(vmap(draw))(keys);
  for (std::int64_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(allclose(rows[i], draw(keys[i]), 1e-6)) << i;
  }
}

// Parameters that are none end in NaN or -1, not in a loop without end.
TEST(ArrayDistributions, HaveNoDrawsOfWhatIsNoParameter) {
  const Array odd = array({NAN, INFINITY, -1.0, 0.0, 2.0});
  const Array g = gamma(Key(1), odd, {5});
  EXPECT_EQ(isnan(g).to_vector(), (Numbers{1, 1, 1, 0, 0})) << g;
  EXPECT_EQ(g[3].item(), 0);
  const Array n = poisson(Key(2), concat({odd, array({3e9})}, 0), {6});
  EXPECT_EQ(n[slice(0, 4)].to_vector(), (Numbers{-1, -1, -1, 0})) << n;
  EXPECT_GE(n[4].item(), 0);
  EXPECT_EQ(n[5].item(), -1);
  EXPECT_TRUE(std::isnan(beta(Key(3), NAN, 1.0, {}).item()));
}

TEST(ArrayDistributions, OfSmallParametersAreAtTheEnds) {
  const Array b = beta(Key(1), 0.01, 0.01, {20000});
  EXPECT_FALSE(any(isnan(b)).item());
  EXPECT_NEAR(mean(b).item(), 0.5, 0.02);
  EXPECT_NEAR(var(b).item(), 0.25 / 1.02, 0.01);
  const Array d = dirichlet(Key(2), array({1e-3, 1e-3, 2e-3}), {20000});
  EXPECT_TRUE(allclose(sum(d, 1), ones({20000})));
  EXPECT_TRUE(allclose(mean(d, 0), array({0.25, 0.25, 0.5}), 0, 0.02));
}

TEST(ArrayDistributions, Choices) {
  const Array all = choice(Key(1), 10, {10}, {.replace = false});
  EXPECT_EQ(sort(all).to_vector(), (Numbers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  const Array some = choice(Key(2), array({5.0, 6.0, 7.0}), {1000}, {.p = array({0.2, 0.8, 0.0})});
  EXPECT_NEAR(mean(some).item(), 5.8, 0.08);
  EXPECT_EQ(max(some).item(), 6);
  const Array two = choice(Key(3), 3, {2}, {.replace = false, .p = array({0.5, 0.5, 0.0})});
  EXPECT_EQ(sort(two).to_vector(), (Numbers{0, 1}));
  EXPECT_THROW((void)choice(Key(1), 3, {4}, {.replace = false}), UserError);
  EXPECT_THROW((void)choice(Key(1), 0, {4}), UserError);
  EXPECT_THROW((void)choice(Key(1), 3, {4}, {.p = ones({2})}), UserError);
}

}  // namespace
}  // namespace ricci::keys_test
