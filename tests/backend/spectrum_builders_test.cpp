// What is built on transforms: its values, and that every device computes them.
#include <cmath>
#include <complex>
#include <random>

#include <gtest/gtest.h>

#include "ricci/build/spectrum.h"
#include "ricci/compat/spectrum.h"
#include "ricci/transform/grad.h"

#include "backend/agreement.h"
#include "support/compare.h"

namespace ricci::testing::spectrum_builders_test {
namespace {

constexpr FftNorm Norms[] = {FftNorm::Backward, FftNorm::Forward, FftNorm::Ortho};

Tensor random_numbers(const Type& type, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<std::complex<double>> z(static_cast<std::size_t>(type.numel().value()));
  for (auto& v : z) v = {normal(random), normal(random)};
  if (is_complex(type.dtype)) return Tensor::from_numbers<std::complex<double>>(type, z);
  std::vector<double> x;
  for (const auto& v : z) x.push_back(v.real());
  return Tensor::from_numbers<double>(type, x);
}

// A graph of one output with random numbers for its inputs.
struct Built {
  Graph graph{"built"};
  Feeds feeds;

  Value input(const char* name, const Type& type) {
    feeds.emplace(name, random_numbers(type, static_cast<unsigned>(feeds.size() + 1)));
    return graph.input(name, type);
  }
  std::vector<double> values(Value y) {
    graph.set_outputs({y});
    return interpret(graph, feeds)[0].numbers<double>();
  }
  void expect_on_all_devices(Value y) {
    graph.set_outputs({y});
    expect_agreement_everywhere(graph, feeds);
  }
  std::vector<double> fed(const char* name) { return feeds.at(name).numbers<double>(); }
};

void expect_near(const std::vector<double>& a, const std::vector<double>& b, double bound = 1e-12) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], bound) << i;
}

// [fft-helpers-exact]: the true convolution for every norm and length.
TEST(BackendSpectrum, ConvolutionIsTheConvolution) {
  for (const FftNorm norm : Norms) {
    for (const std::int64_t n_fft : {0, 3, 11, 16, 23}) {
      Built b;
      const Value y = fft_conv1d(b.input("a", f64({7})), b.input("b", f64({5})), n_fft, norm);
      const auto p = b.fed("a");
      const auto q = b.fed("b");
      std::vector<double> expected(11);
      for (std::size_t i = 0; i < 7; ++i) {
        for (std::size_t j = 0; j < 5; ++j) expected[i + j] += p[i] * q[j];
      }
      expect_near(b.values(y), expected);
    }
  }
  Built b;
  const Value x = b.input("x", f32({3, 40}));
  b.expect_on_all_devices(fft_conv1d(x, b.input("k", f32({9}))));
}

TEST(BackendSpectrum, FrequenciesAndShifts) {
  EXPECT_EQ(fftfreq(4), (std::vector<double>{0, 0.25, -0.5, -0.25}));
  EXPECT_EQ(fftfreq(5, 10), (std::vector<double>{0, 2, 4, -4, -2}));
  EXPECT_EQ(rfftfreq(4), (std::vector<double>{0, 0.25, 0.5}));
  EXPECT_EQ(rfftfreq(5, 5), (std::vector<double>{0, 1, 2}));
  for (const std::int64_t n : {1, 4, 5}) {
    Built b;
    const Value x = b.input("x", f64({n, 3}));
    const Value f = fftshift(fftfreq(b.graph, n, DType::F64));
    const std::vector<double> ordered = b.values(f);
    EXPECT_TRUE(std::is_sorted(ordered.begin(), ordered.end()));
    EXPECT_EQ(b.values(ifftshift(fftshift(x))), b.fed("x"));
    EXPECT_EQ(b.values(ifftshift(fftshift(x, {0}), {0})), b.fed("x"));
  }
}

// [fft-helpers-exact]: divided by the length of the transform; the power of the signal is kept.
TEST(BackendSpectrum, DensityKeepsThePower) {
  for (const std::int64_t n : {8, 9}) {
    Built b;
    const Value x = b.input("x", f64({2, n}));
    const double rate = 100;
    const Value p = psd_real(x, {.one_sided = true, .sample_rate = rate});
    const Value power = sum(p, {1}) * (rate / static_cast<double>(n));
    expect_near(b.values(power - mean(x * x, {1})), {0, 0});
    const auto [re, im] = fft_real(x);
    const Value both = psd(re, im, n, {.window_power = 2.0});
    expect_near(b.values(sum(both, {1}) * (2.0 / static_cast<double>(n)) - sum(x * x, {1})),
                {0, 0});
  }
}

TEST(BackendSpectrum, PartsOfASpectrum) {
  Built b;
  const Value x = b.input("x", f64({2, 6}));
  const auto [re, im] = fft_real(x);
  const auto [half_re, half_im] = split_spectrum(rfft(x));
  const auto first = [](Value v) { return narrow(v, {.axis = 1, .start = 0, .len = 4}); };
  expect_near(b.values(first(re) - half_re), std::vector<double>(8));
  expect_near(b.values(first(im) - half_im), std::vector<double>(8));
  expect_near(b.values(ifft_spectrum(re, im, FftNorm::Forward)), b.fed("x"));
  expect_near(b.values(irfft(half_re, half_im, 6, FftNorm::Forward)), b.fed("x"));
  EXPECT_EQ(pad_last_axis_to_pow2(x).dims(), (Dims{2, 8}));
  EXPECT_EQ(next_pow2(8), 8);
  EXPECT_EQ(next_fast_length(11), 12);
  EXPECT_EQ(next_fast_length(97), 98);
}

TEST(BackendSpectrum, SeveralAxes) {
  for (const FftNorm norm : Norms) {
    Built b;
    const Value z = b.input("z", Type{DType::C128, {3, 4, 5}});
    const FftNorm back = norm == FftNorm::Backward ? FftNorm::Forward : norm;
    const Value again = ifftn(fftn(z, {-1, 0, 2}, false, norm), {0, 2}, back);
    const Value gap = again - z;
    expect_near(b.values(cast_to(sum(gap * conjugate(gap)), DType::F64)), {0});
    EXPECT_EQ(fftn(z, {}).id(), z.id());
  }
  Built b;
  const Value z = b.input("z", Type{DType::C64, {6, 10, 7}});
  b.expect_on_all_devices(fftn(z, {0, 1, 2}));
  EXPECT_THROW((void)fftn(b.input("x", f32({4, 4})), {0, 1}), UserError);
}

struct Framing {
  std::int64_t samples;
  std::int64_t frame_len;
  std::int64_t hop;
  Window window;
  bool centre;
};

// [fft-helpers-exact]: istft gives back what stft was given, wherever a window is not 0.
TEST(BackendSpectrum, InverseOfSpectraOverTime) {
  const Framing framings[] = {{64, 16, 4, Window::Hann, true},
                              {60, 15, 5, Window::Hamming, true},
                              {48, 16, 8, Window::Rectangular, false},
                              {50, 8, 3, Window::Hamming, false},
                              {40, 8, 8, Window::Rectangular, false}};
  for (const Framing& f : framings) {
    for (const FftNorm norm : Norms) {
      Built b;
      const Value x = b.input("x", f64({2, f.samples}));
      StftOptions options{.frame_len = f.frame_len, .hop = f.hop, .centre = f.centre, .norm = norm};
      options.window = window_of(b.graph, f.window, f.frame_len, DType::F64);
      const Value y = istft(stft(x, options), options);
      const std::int64_t covered = std::min(f.samples, y.dims()[1].value());
      const auto cut = [&](Value v) { return narrow(v, {.axis = 1, .start = 0, .len = covered}); };
      const std::vector<double> gap = b.values(cut(y) - cut(x));
      expect_near(gap, std::vector<double>(gap.size()));
    }
  }
}

// One view, one product and one transform, however many frames there are.
TEST(BackendSpectrum, SpectraOverTimeAreFewOps) {
  const auto nodes = [](std::int64_t samples) {
    Built b;
    const Value x = b.input("x", f32({samples}));
    const Value w = window_of(b.graph, Window::Hann, 32, DType::F32);
    b.graph.set_outputs({stft(x, {.frame_len = 32, .hop = 8, .window = w, .centre = true})});
    return b.graph.size();
  };
  EXPECT_EQ(nodes(100), nodes(10000));
}

TEST(BackendSpectrum, SpectraOverTimeOnAllDevices) {
  Built b;
  const Value x = b.input("x", f32({3, 200}));
  const Value w = window_of(b.graph, Window::Hann, 32, DType::F32);
  const StftOptions options{.frame_len = 32, .hop = 8, .window = w, .centre = true};
  const Value z = stft(x, options);
  b.expect_on_all_devices(istft(z, options));
  const Value loss = sum(psd(z, 32, {.one_sided = true}));
  b.graph.set_outputs({loss});
  const Graph gradient = grad(b.graph, {"x"}, {.external_seed = true}).graph;
  Feeds feeds = b.feeds;
  feeds.emplace("d_output", Tensor::splat(f32({}), 1.0));
  expect_agreement_everywhere(gradient, feeds);
}

TEST(BackendSpectrum, Refusals) {
  Built b;
  const Value x = b.input("x", f32({10}));
  const Value w = b.input("w", f32({4}));
  EXPECT_THROW((void)stft(x, {.frame_len = 0, .hop = 1}), UserError);
  EXPECT_THROW((void)stft(x, {.frame_len = 8, .hop = 2, .window = w}), UserError);
  EXPECT_THROW((void)stft(x, {.frame_len = 24, .hop = 2, .centre = true}), UserError);
  EXPECT_THROW((void)istft(rfft(x), {.frame_len = 10, .hop = 2}), UserError);
  EXPECT_THROW((void)fftshift(x, {3}), UserError);
  EXPECT_THROW((void)psd_real(b.input("s", f32({}))), UserError);
  EXPECT_THROW((void)next_pow2(std::int64_t{1} << 60), UserError);
}

}  // namespace
}  // namespace ricci::testing::spectrum_builders_test
