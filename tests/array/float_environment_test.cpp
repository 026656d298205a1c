// Numbers that functions of arrays work out on the host, before there is a graph, and texts of
// arrays do not depend on the floating-point environment of the caller, who finds it as it was.
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ricci/array.h"
#include "ricci/array/counting.h"
#include "ricci/array/everyday.h"
#include "ricci/array/more.h"
#include "ricci/array/special.h"
#include "ricci/array/spectra.h"

#include "support/compare.h"
#include "support/float_environments.h"

namespace ricci::testing::float_environment_test {
namespace {

struct Made {
  const char* what;
  std::function<std::vector<Array>()> make;
};

Array some(std::int64_t n) { return uniform(Key(7), {n}, 0.01, 0.99); }

const std::vector<Made>& made_of_numbers() {
  static const Key key(11);
  static const std::vector<Made> all = {
      {"arange", [] { return std::vector{arange(0.1, 0.4, 0.1), arange(0.0, 1.0, 1.0 / 3)}; }},
      {"linspace", [] { return std::vector{linspace(0.1, 0.7, 19, {.dtype = DType::F64})}; }},
      {"windows", [] { return std::vector{hanning(31), hamming(30), blackman(29)}; }},
      {"frequencies", [] { return std::vector{fftfreq(11, 0.1), rfftfreq(12, 0.3)}; }},
      {"log10", [] { return std::vector{log10(some(9)), log10(cast(some(9), DType::F64))}; }},
      {"special",
       [] {
         const Array x = cast(some(9), DType::F64);
         return std::vector{erfinv(x),
                            lgamma(x),
                            digamma(x),
                            ndtr(x),
                            ndtri(x),
                            entr(x),
                            normal_logpdf(x, 0.3, 0.7)};
       }},
      {"quantile", [] { return std::vector{quantile(some(10), 0.3), median(some(10))}; }},
      {"histogram",
       [] {
         const auto [counts, edges] = histogram(cast(some(50), DType::F64), 7, {{0.1, 0.8}});
         return std::vector{counts, edges};
       }},
      {"logmeanexp", [] { return std::vector{logmeanexp(cast(some(11), DType::F64))}; }},
      {"moments",
       [] {
         const Array x = cast(reshape(some(12), {3, 4}), DType::F64);
         return std::vector{var(x), nanvar(x), cov(x), corrcoef(x), trapezoid(x, 0.1)};
       }},
      {"draws",
       [] {
         return std::vector{truncated_normal(key, {9}),   normal(key, {9}, 0.1, 0.3),
                            uniform(key, {9}, 0.1, 0.7),  randint(key, {9}, 3, 1000),
                            dropout(key, ones({9}), 0.1), gumbel(key, {9})};
       }},
      {"losses",
       [] {
         return std::vector{huber_loss(some(9), 0.0, 0.3), smooth_l1_loss(some(9), 0.0, 0.3)};
       }},
  };
  return all;
}

TEST(ArrayFloatEnvironment, NumbersMadeOnTheHostAreThoseOfTheDefaultOne) {
  for (const Made& m : made_of_numbers()) {
    const std::vector<Array> expected = m.make();
    for (const Array& x : expected) (void)x.tensor();
    for (const Environment& e : environments()) {
      std::vector<Tensor> actual;
      EXPECT_TRUE(is_kept(e,
                          [&] {
                            for (const Array& x : m.make()) actual.push_back(x.tensor());
                          }))
          << m.what << ", " << e.name;
      for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_TRUE(same(actual[i], expected[i].tensor())) << m.what << " " << i << ", " << e.name;
      }
    }
  }
}

TEST(ArrayFloatEnvironment, SoAreTexts) {
  const std::vector<Array> shown = {
      array({0.1, 1e-300, 1.0 / 3, 123456.789}, {.dtype = DType::F64}), array({999999.9, 0.001}),
      array({99.99999999, 1000.0}), Array(0.1)};
  for (const Array& x : shown) {
    const std::string expected = x.str();
    for (const Environment& e : environments()) {
      std::string actual;
      EXPECT_TRUE(is_kept(e, [&] { actual = x.str(); })) << e.name;
      EXPECT_EQ(actual, expected) << e.name;
    }
  }
}

TEST(ArrayFloatEnvironment, SoAreFunctionsAndTheirDerivatives) {
  const auto f = [](const Array& x) { return sum(log10(x) * 0.1 + quantile(x, 0.3) / 3.0); };
  const Array x = some(10);
  const auto all = [&] {
    return std::vector{jit(f)(x).tensor(), grad(f)(x).tensor(), jit(grad(f))(x).tensor()};
  };
  const std::vector<Tensor> expected = all();
  for (const Environment& e : environments()) {
    std::vector<Tensor> actual;
    EXPECT_TRUE(is_kept(e, [&] { actual = all(); })) << e.name;
    ASSERT_EQ(actual.size(), expected.size()) << e.name;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(same(actual[i], expected[i])) << e.name << ", result " << i;
    }
  }
}

}  // namespace
}  // namespace ricci::testing::float_environment_test
