// Fourier transforms, counts and functions of statistics with the values of NumPy, JAX and SciPy
// (make_everyday_reference.py writes them).
#include <cmath>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "ricci/array.h"
#include "ricci/support/error.h"

namespace ricci::signal_test {
namespace {

using Numbers = std::vector<double>;

const std::map<std::string, Numbers>& signal_values() {
  static const std::map<std::string, Numbers> values = {
#include "array/signal_values.inc"
  };
  return values;
}

// NaN and infinities where they are; else relative to the number and to `scale`.
void expect_signal(const std::string& name, const Array& actual, double tolerance = 1e-12,
                   double scale = 1) {
  SCOPED_TRACE(name);
  const Numbers& expected = signal_values().at(name);
  const Numbers found = actual.to_vector();
  ASSERT_EQ(found.size(), expected.size()) << actual;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!std::isfinite(expected[i])) {
      EXPECT_TRUE(std::isnan(expected[i]) ? std::isnan(found[i]) : found[i] == expected[i])
          << i << " of " << actual;
    } else {
      EXPECT_NEAR(found[i], expected[i], tolerance * (scale + std::abs(expected[i]))) << i;
    }
  }
}
void expect_complex(const std::string& name, const Array& z, double tolerance = 1e-12) {
  expect_signal(name, stack({real(z), imag(z)}), tolerance);
}

constexpr CreateOptions Wide{.dtype = DType::F64};
Array wave() { return reshape(sin(0.7 * arange(24, Wide)), {4, 6}); }
Array points() {
  using C = std::complex<double>;
  return array({C(0.1, 1), C(0.2, -0.5), C(0.3, 0.25), C(-0.4), C(2)}, {.dtype = DType::C128});
}
Array numbered() { return reshape(arange(15, Wide), {5, 3}) - 4.0; }

TEST(ArraySignal, FourierTransformsAreNumPys) {
  const Array z = points();
  const Array x = wave();
  expect_complex("fft", fft(z));
  expect_complex("fft_real", fft(x));
  expect_complex("fft_axis", fft(x, {.axis = 0}));
  expect_complex("fft_long", fft(z, 8));
  expect_complex("fft_short", fft(z, {.n = 3}));
  expect_complex("ifft", ifft(z));
  expect_complex("rfft", rfft(x));
  expect_complex("rfft_long", rfft(x, 9));
  expect_signal("irfft", irfft(z));
  expect_signal("irfft_odd", irfft(z, 9));
  expect_complex("fft2", fft2(x));
  expect_complex("ifft2", ifft2(x));
  expect_complex("fftn", fftn(reshape(x, {2, 2, 6})));
  expect_complex("rfft2", rfft2(x));
  EXPECT_TRUE(allclose(irfft2(rfft2(x)), x, 1e-12, 1e-12));
  EXPECT_TRUE(allclose(real(ifftn(fftn(x))), x, 1e-12, 1e-12));
  expect_signal("fftshift", fftshift(x));
  expect_signal("ifftshift", ifftshift(arange(5, Wide)));
  expect_signal("fftfreq", fftfreq(7, 0.5), 1e-6);
  expect_signal("fftfreq_even", fftfreq(6), 1e-6);
  expect_signal("rfftfreq", rfftfreq(6), 1e-6);
  expect_signal("angle", angle(z));
  expect_signal("fft_slope", grad([](const Array& v) { return sum(pow(abs(fft2(v)), 3.0)); })(x),
                1e-10);
  // Integers and narrow floats are transformed in f32.
  EXPECT_EQ(fft(arange(4)).dtype(), DType::C64);
  EXPECT_EQ(rfft(ones({4}, {.dtype = DType::BF16})).dtype(), DType::C64);
  EXPECT_THROW((void)rfft(z), UserError);
  EXPECT_THROW((void)fft(x, 0), UserError);
  EXPECT_THROW((void)fft(x, {.axis = 2}), UserError);
}

TEST(ArraySignal, ConvolutionsOfVectors) {
  const Array x = wave()[0];
  const Array w = array({1.0, 2.0, -1.0, 0.5}, Wide);
  expect_signal("convolve", convolve(x, w));
  expect_signal("convolve_same", convolve(x, w, ConvolveMode::Same));
  expect_signal("convolve_valid", convolve(array({1.0, 2.0}, Wide), x, ConvolveMode::Valid));
  expect_signal("correlate", correlate(x, array({1.0, 2.0, -1.0}, Wide)));
  expect_signal("correlate_full", correlate(array({1.0, 2.0, -1.0}, Wide), x, ConvolveMode::Full));
  expect_signal("correlate_same",
                correlate(x, array({1.0, 2.0, -1.0, 4.0}, Wide), ConvolveMode::Same));
  expect_signal("hanning", hanning(7), 1e-6);
  expect_signal("hamming", hamming(6), 1e-6);
  expect_signal("blackman", blackman(5), 1e-6);
  EXPECT_EQ(hanning(1).to_vector(), Numbers{1});
  EXPECT_THROW((void)convolve(wave(), w), UserError);
}

TEST(ArraySignal, SegmentsAndCounts) {
  const Array x = numbered();
  const Array ids = array({0, 2, 2, 0, 2});
  expect_signal("segment_sum", segment_sum(x, ids, 4));
  expect_signal("segment_prod", segment_prod(x, ids, 4));
  expect_signal("segment_max", segment_max(x, ids, 3)(slice({}, {}, 2)));
  expect_signal("segment_min", segment_min(x, ids, 3)(slice({}, {}, 2)));
  EXPECT_EQ(segment_max(x, ids, 3)[1].to_vector(), (Numbers{-INFINITY, -INFINITY, -INFINITY}));
  EXPECT_EQ(segment_min(array({7, 3, 5}), array({0, 0, 1}), 3).to_vector(),
            (Numbers{3, 5, 2147483647}));
  EXPECT_EQ(segment_max(array({7, 3}, {.dtype = DType::I64}), array({0, 0}), 2).to_vector(),
            (Numbers{7, -9223372036854775808.0}));
  EXPECT_TRUE(allclose(segment_mean(x, ids, 4) * array({{2.0}, {1.0}, {3.0}, {1.0}}, Wide),
                       segment_sum(x, ids, 4)));
  EXPECT_THROW((void)segment_sum(x, array({0, 1}), 2), UserError);
  EXPECT_EQ(segment_sum(zeros({0, 2}), zeros({0}, {.dtype = DType::I32}), 2).size(), 4);
  // Slopes go back to the rows.
  const auto f = [&](const Array& v) { return sum(square(segment_sum(v, ids, 3))); };
  EXPECT_TRUE(allclose(grad(f)(x), 2.0 * segment_sum(x, ids, 3)[ids]));
  const auto [counts, edges] = histogram(wave(), 5);
  expect_signal("histogram", counts);
  expect_signal("histogram_edges", edges);
  const Array some = array({0, 1, 2, 3, 4, 2, -1});
  expect_signal("histogram_range", histogram(some, 4, std::pair{0.0, 4.0}).first);
  EXPECT_EQ(histogram(zeros({0}), 2).first.to_vector(), (Numbers{0, 0}));
  expect_signal("unique", unique(array({3.0, 1.0, 3.0, -2.0, 1.0})));
  EXPECT_EQ(unique(zeros({0})).size(), 0);
  expect_signal("isin", isin(array({{1, 2}, {3, 4}}), array({4, 1, 7})));
  expect_signal("argwhere", argwhere(x(slice(2)) > -3.0));
  expect_signal("tril_rows", tril_indices(3, -1).first);
  expect_signal("tril_columns", tril_indices(3, -1).second);
  expect_signal("triu_rows", triu_indices(3).first);
  const std::vector<Array> places = unravel_index(array({0, 7, 23}), {2, 3, 4});
  expect_signal("unravel_middle", places[1]);
  expect_signal("unravel_columns", places[2]);
  EXPECT_EQ(ravel_multi_index(places, {2, 3, 4}).to_vector(), (Numbers{0, 7, 23}));
  expect_signal("select", select({x < -1.0, x > 5.0}, {x * 2.0, x * 10.0}, 7.0));
}

TEST(ArraySignal, FunctionsOfStatistics) {
  const Array wide =
      array({-3.7, -2.25, -0.5, 0.1, 0.5, 1.0, 1.5, 2.0, 3.3, 10.0, 171.5, 1e5}, Wide);
  const Array shares = array({1e-300, 1e-20, 1e-3, 0.02425, 0.3, 0.5, 0.7, 0.999, 1 - 1e-12}, Wide);
  const Array inner = array({-1 + 1e-15, -0.999999, -0.7, 0.0, 1e-30, 0.3, 0.95, 1 - 1e-10}, Wide);
  const auto slope = [](Array (*f)(const Array&, Here), const Array& at) {
    return vmap(grad([f](const Array& v) { return f(v, Here::current()); }))(at);
  };
  expect_signal("erfinv", erfinv(inner), 1e-12, 0);
  expect_signal("erfinv_slope", slope(erfinv, inner(slice(1, 7))), 1e-9);
  EXPECT_EQ(erfinv(array({-1.0, 1.0})).to_vector(), (Numbers{-INFINITY, INFINITY}));
  EXPECT_TRUE(std::isnan(erfinv(1.5).item()));
  expect_signal("lgamma", lgamma(wide));
  EXPECT_EQ(lgamma(array({INFINITY, -INFINITY, 0.0, -2.0})).to_vector(),
            (Numbers{INFINITY, INFINITY, INFINITY, INFINITY}));
  expect_signal("lgamma_slope", slope(lgamma, wide), 1e-11);
  expect_signal("digamma", digamma(wide));
  expect_signal("digamma_slope", slope(digamma, wide(slice(3, {}))), 1e-10);
  expect_signal("betaln", betaln(array({0.5, 2.0, 30.0}, Wide), array({1.5, 3.0, 0.1}, Wide)));
  expect_signal("ndtr", ndtr(wide(slice(10))));
  expect_signal("ndtri", ndtri(shares));
  EXPECT_EQ(ndtri(array({0.0, 1.0})).to_vector(), (Numbers{-INFINITY, INFINITY}));
  expect_signal("ndtri_slope", slope(ndtri, shares(slice(2, 8))), 1e-9);
  expect_signal("normal_logpdf", normal_logpdf(wide, 0.5, 2.0));
  expect_signal("entr", entr(array({-1.0, 0.0, 0.5, 2.0}, Wide)));
  expect_signal("xlog1py", xlog1py(array({0.0, 2.0, -1.0}, Wide), array({-1.0, 3.0, 0.5}, Wide)));
  expect_signal("cumlogsumexp", cumlogsumexp(numbered()(slice(), 0)));
  EXPECT_THROW((void)lgamma(arange(3)), UserError);
  // In f32 they are rounded once.
  EXPECT_EQ(lgamma(array({3.3})).item(),
            static_cast<float>(std::lgamma(static_cast<double>(3.3F))));
}

TEST(ArraySignal, AssociativeScansOfTrees) {
  const Array x = array({1.5, -2.0, 0.5, 3.0, 1.0, -1.0, 2.0}, Wide);
  const auto product = [](const Array& a, const Array& b) { return a * b; };
  expect_signal("associative", associative_scan(product, x));
  for (std::int64_t n = 0; n < 7; ++n) {
    EXPECT_TRUE(allclose(associative_scan(product, x(slice(n))), cumprod(x(slice(n)), 0))) << n;
  }
  // A linear recurrence: h[t] = a[t] h[t - 1] + b[t].
  using Step = std::pair<Array, Array>;
  const auto then = [](const Step& f, const Step& g) {
    return Step{f.first * g.first, g.first * f.second + g.second};
  };
  const auto last = [&](const Array& a) {
    return sum(associative_scan(then, Step{a, sin(a)}).second);
  };
  const auto by_scan = [](const Array& a) {
    return sum(scan(array(0.0, Wide), a, [](const Array& h, const Array& v) {
                 const Array next = v * h + sin(v);
                 return carry_and(next, next);
               }).ys);
  };
  EXPECT_NEAR(last(x).item(), by_scan(x).item(), 1e-12);
  EXPECT_TRUE(allclose(jit(grad(last))(x), grad(by_scan)(x), 1e-10, 1e-12));
}

}  // namespace
}  // namespace ricci::signal_test
