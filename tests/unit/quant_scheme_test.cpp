// Weight schemes: names, sizes, refusals, and how near encoded matrices come.
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "ricci/quant/scheme.h"
#include "ricci/quant/tiny_float.h"
#include "ricci/support/error.h"

#include "support/file_faults.h"

namespace ricci::quant::quant_scheme_test {
namespace {

using testing::fault_of;

constexpr const char* Names[] = {"int8_block_32", "int8_block_asym_16", "int4_block_32", "fp8_e4m3",
                                 "fp8_e5m2",      "nvfp4_block",        "q4_k",          "q8_0",
                                 "mxfp4"};

std::vector<float> random_weights(std::int64_t count, unsigned seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal(0, 0.05F);
  std::vector<float> w(static_cast<std::size_t>(count));
  for (float& v : w) v = normal(rng);
  return w;
}

std::vector<float> again(const Scheme& s, std::int64_t k, std::int64_t n,
                         const std::vector<float>& w) {
  std::vector<float> out(w.size());
  decode_matrix(s, k, n, encode_matrix(s, k, n, w).parts(), out);
  return out;
}

double rms(const std::vector<float>& x, const std::vector<float>& y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    sum += (static_cast<double>(x[i]) - y[i]) * (static_cast<double>(x[i]) - y[i]);
  }
  return std::sqrt(sum / static_cast<double>(x.size()));
}

TEST(QuantScheme, NamesAreReadBack) {
  for (const char* text : Names) {
    const auto scheme = scheme_from_name(text);
    ASSERT_TRUE(scheme) << text;
    EXPECT_EQ(to_string(*scheme), text);
  }
  for (const FormatInfo& f : all_formats()) EXPECT_TRUE(scheme_from_name(f.name)) << f.name;
  for (const char* text : {"", "int8_block", "int8_block_", "int8_block_0", "int8_block_-1",
                           "int8_block_032", "int8_block_3x", "int8_block_99999999999999999999",
                           "int4_block32", "fp8_e4m3_8", "nvfp4_block_16", "q9_k"}) {
    EXPECT_FALSE(scheme_from_name(text)) << text;
  }
}

TEST(QuantScheme, SaysWhatItHas) {
  const Scheme asymmetric = *scheme_from_name("int8_block_asym_16");
  EXPECT_TRUE(asymmetric.has_zero_point());
  EXPECT_EQ(asymmetric.group(), 16);
  EXPECT_FALSE(scheme_from_name("int8_block_16")->has_zero_point());
  EXPECT_TRUE(scheme_from_name("int4_block_16")->has_zero_point());
  EXPECT_TRUE(scheme_from_name("nvfp4_block")->scale_is_fp8());
  EXPECT_EQ(scheme_from_name("nvfp4_block")->group(), 16);
  EXPECT_FALSE(scheme_from_name("q4_k")->has_scale());
  for (const auto& [text, tenths] : {std::pair{"q4_k", 45},
                                     {"q5_k", 55},
                                     {"q6_k", 66},
                                     {"q8_k", 91},
                                     {"q2_k", 26},
                                     {"q3_k", 34},
                                     {"q4_0", 45},
                                     {"q8_0", 85},
                                     {"fp8_e5m2", 80},
                                     {"nvfp4_block", 40}}) {
    EXPECT_EQ(scheme_from_name(text)->tenths_of_bits(), tenths) << text;
  }
}

TEST(QuantScheme, SizesAreChecked) {
  const MatrixSizes odd = sizes_of(*scheme_from_name("int4_block_32"), 33, 3);
  EXPECT_EQ(odd.code_bytes, 50);
  EXPECT_EQ(odd.scales, 6);
  EXPECT_EQ(odd.zero_points, 6);
  EXPECT_EQ(sizes_of(*scheme_from_name("nvfp4_block"), 17, 3).scales, 6);
  EXPECT_EQ(sizes_of(*scheme_from_name("fp8_e4m3"), 17, 3).scales, 3);
  EXPECT_EQ(sizes_of(*scheme_from_name("q4_k"), 512, 3).code_bytes, 3 * 2 * 144);
  constexpr std::int64_t Large = std::int64_t{1} << 40;
  for (const char* text : Names) {
    const Scheme s = *scheme_from_name(text);
    EXPECT_EQ(sizes_of(s, 0, 5).code_bytes, 0) << text;
    EXPECT_EQ(sizes_of(s, 512, 0).code_bytes, 0) << text;
    EXPECT_EQ(fault_of([&] { (void)sizes_of(s, -256, 2); }), "shape") << text;
    EXPECT_EQ(fault_of([&] { (void)sizes_of(s, 2, -1); }), "shape") << text;
    EXPECT_EQ(fault_of([&] { (void)sizes_of(s, Large, Large); }), "shape") << text;
  }
  EXPECT_EQ(fault_of([] { (void)sizes_of(*scheme_from_name("q4_k"), 300, 1); }), "shape");
  EXPECT_EQ(fault_of([] { (void)sizes_of({SchemeKind::Int8Block, 0}, 8, 1); }), "attr");
  EXPECT_EQ(fault_of([] { (void)sizes_of({SchemeKind::Int4Block, -4}, 8, 1); }), "attr");
}

TEST(QuantScheme, PartsOfOtherSizesAreRefused) {
  for (const char* text : Names) {
    const Scheme s = *scheme_from_name(text);
    const std::vector<float> w = random_weights(256 * 2, 1);
    const Matrix good = encode_matrix(s, 256, 2, w);
    std::vector<float> out(w.size());
    decode_matrix(s, 256, 2, good.parts(), out);
    const auto refused = [&](auto change) {
      Matrix m = good;
      change(m);
      return fault_of([&] { decode_matrix(s, 256, 2, m.parts(), out); }) == "shape";
    };
    EXPECT_TRUE(refused([](Matrix& m) { m.codes.pop_back(); })) << text;
    EXPECT_TRUE(refused([](Matrix& m) { m.scales.push_back(1); })) << text;
    EXPECT_TRUE(refused([](Matrix& m) { m.fp8_scales.emplace_back(); })) << text;
    EXPECT_TRUE(refused([](Matrix& m) { m.zero_points.push_back(0); })) << text;
    EXPECT_EQ(fault_of([&] { decode_matrix(s, 256, 2, good.parts(), std::span(out).first(9)); }),
              "shape");
    EXPECT_EQ(fault_of([&] { (void)encode_matrix(s, 256, 3, w); }), "shape");
    std::vector<float> bad = w;
    bad[7] = NAN;
    EXPECT_EQ(fault_of([&] { (void)encode_matrix(s, 256, 2, bad); }), "attr");
    bad[7] = -1;
    EXPECT_EQ(fault_of([&] { (void)encode_matrix(s, 256, 2, w, bad); }), "attr");
  }
}

TEST(QuantScheme, ScalesOfFp8MayBeLeftOut) {
  const Scheme s = *scheme_from_name("fp8_e4m3");
  const std::vector<std::byte> codes = {std::byte{0x38}, std::byte{0xC0}};
  std::vector<float> out(2);
  decode_matrix(s, 2, 1, {.codes = codes}, out);
  EXPECT_EQ(out, (std::vector<float>{1, -2}));
}

// Codes and scales as plain rounding has them: scales that cover the largest magnitude.
std::vector<float> covered(const Scheme& s, std::int64_t k, std::int64_t n,
                           const std::vector<float>& w) {
  std::vector<float> out(w.size());
  const std::int64_t group = s.group() == 0 ? k : s.group();
  float global = 0;
  for (const float v : w) global = std::max(global, std::fabs(v) / (6 * 448));
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t first = 0; first < k; first += group) {
      const std::int64_t last = std::min(first + group, k);
      float least = INFINITY;
      float most = -INFINITY;
      for (std::int64_t p = first; p < last; ++p) {
        least = std::min(least, w[static_cast<std::size_t>(p * n + j)]);
        most = std::max(most, w[static_cast<std::size_t>(p * n + j)]);
      }
      const float large = std::max(-least, most);
      for (std::int64_t p = first; p < last; ++p) {
        const auto e = static_cast<std::size_t>(p * n + j);
        const float range = most - least;
        const float fp4_scale = fp8_e4m3_value(to_fp8_e4m3(large / 6 / global)) * global;
        switch (s.kind) {
          case SchemeKind::Int8Block:
            out[e] = std::nearbyint(w[e] / (large / 127)) * (large / 127);
            break;
          case SchemeKind::Int8BlockAsym:
            out[e] = std::nearbyint((w[e] - least) / (range / 255)) * (range / 255) + least;
            break;
          case SchemeKind::Int4Block:
            out[e] = std::nearbyint((w[e] - least) / (range / 15)) * (range / 15) + least;
            break;
          case SchemeKind::Fp8E4m3:
            out[e] = fp8_e4m3_value(to_fp8_e4m3(w[e] / (large / 448))) * (large / 448);
            break;
          case SchemeKind::Fp8E5m2:
            out[e] = fp8_e5m2_value(to_fp8_e5m2(w[e] / (large / 57344))) * (large / 57344);
            break;
          default: out[e] = fp4_value(to_fp4(w[e] / fp4_scale)) * fp4_scale; break;
        }
      }
    }
  }
  return out;
}

TEST(QuantScheme, EncodersAreNoWorseThanCoveringScales) {
  for (const char* text : {"int8_block_32", "int8_block_asym_16", "int4_block_32", "fp8_e4m3",
                           "fp8_e5m2", "nvfp4_block"}) {
    const Scheme s = *scheme_from_name(text);
    for (const auto& [k, n] : {std::pair<std::int64_t, std::int64_t>{256, 8}, {100, 7}}) {
      const std::vector<float> w = random_weights(k * n, 9);
      const double ours = rms(w, again(s, k, n, w));
      const double theirs = rms(w, covered(s, k, n, w));
      EXPECT_LE(ours, theirs) << text << " of " << k << " by " << n;
      EXPECT_GT(ours, 0) << text;
    }
  }
}

TEST(QuantScheme, PackedRowsAreTheColumnsOfTheMatrix) {
  const Scheme s = *scheme_from_name("q8_0");
  const std::vector<float> w = random_weights(64 * 3, 4);
  const Matrix m = encode_matrix(s, 64, 3, w);
  std::vector<float> row(64);
  std::vector<float> all(w.size());
  decode_matrix(s, 64, 3, m.parts(), all);
  for (std::size_t j = 0; j < 3; ++j) {
    decode(Format::Q8_0, std::span(m.codes).subspan(j * 68, 68), row);
    for (std::size_t p = 0; p < 64; ++p) EXPECT_EQ(all[p * 3 + j], row[p]);
  }
}

TEST(QuantScheme, OddMatricesSurvive) {
  for (const char* text : Names) {
    const Scheme s = *scheme_from_name(text);
    const std::int64_t k = s.is_packed() ? 256 : 19;
    for (const std::int64_t n : {0, 1, 3}) {
      const auto count = static_cast<std::size_t>(k * n);
      for (const float c : {0.0F, 1.0F, -3.0F}) {
        const std::vector<float> w(count, c);
        for (const float y : again(s, k, n, w)) EXPECT_NEAR(y, c, 0.02F * std::fabs(c)) << text;
      }
      for (const float c : {1e30F, -1e-30F, std::numeric_limits<float>::denorm_min()}) {
        std::vector<float> w(count, 0.0F);
        for (std::size_t i = 0; i < count; i += 5) w[i] = c;
        for (const float y : again(s, k, n, w)) EXPECT_TRUE(std::isfinite(y)) << text;
      }
    }
    EXPECT_TRUE(again(s, 0, 4, {}).empty());
  }
}

}  // namespace
}  // namespace ricci::quant::quant_scheme_test
