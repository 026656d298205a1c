// The block formats against the GGUF project's own Python package: bytes it wrote and values it
// read; see make_gguf_package_values.py.
#include <bit>
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "ricci/io/npy.h"
#include "ricci/quant/format.h"

#include "support/published_encoders.h"
#include "test_paths.h"

namespace ricci::testing::reference_gguf_package_test {
namespace {

using quant::Format;

const std::map<std::string, Tensor>& arrays() {
  static const auto all = [] {
    std::map<std::string, Tensor> out;
    for (auto& [name, t] :
         io::read_npz(RICCI_SOURCE_DIR "/tests/reference/quant/gguf_package.npz")) {
      out.emplace(name, t);
    }
    return out;
  }();
  return all;
}

double rms(std::span<const float> x, std::span<const float> y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += std::pow(double{x[i]} - double{y[i]}, 2);
  return std::sqrt(sum / static_cast<double>(x.size()));
}

class ReferenceGgufPackage : public ::testing::TestWithParam<Format> {};

// [gguf-more-types]
TEST_P(ReferenceGgufPackage, ReadsBytesAlike) {
  const std::string name(quant::name(GetParam()));
  ASSERT_TRUE(arrays().contains(name + ".bytes"));
  const Tensor bytes = arrays().at(name + ".bytes").contiguous();
  const auto expected = arrays().at(name + ".values").elements<float>();
  std::vector<float> got(expected.size());
  quant::decode(GetParam(), bytes.bytes(), got);
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(expected[i]) && std::isnan(got[i])) continue;
    ASSERT_NEAR(got[i], expected[i], 1e-6 * std::abs(expected[i])) << "element " << i;
  }
}

// The procedures that ours is measured against are those of the package, and ours is no worse.
TEST_P(ReferenceGgufPackage, WritesNoBetter) {
  const Format format = GetParam();
  const std::string name(quant::name(format));
  if (!arrays().contains(name + ".encoded")) GTEST_SKIP() << "the package does not write it";
  const auto x = arrays().at("x").elements<float>();
  const Tensor theirs = arrays().at(name + ".encoded").contiguous();
  std::vector<float> from_theirs(x.size());
  quant::decode(format, theirs.bytes(), from_theirs);
  std::vector<std::byte> own(theirs.bytes().size());
  quant::encode(format, x, own);
  std::vector<float> from_own(x.size());
  quant::decode(format, own, from_own);
  EXPECT_LE(rms(x, from_own), rms(x, from_theirs));
  std::vector<std::byte> published(own.size());
  published_encode(format, x, published);
  std::vector<float> from_published(x.size());
  quant::decode(format, published, from_published);
  EXPECT_NEAR(rms(x, from_published), rms(x, from_theirs), 2e-3 * rms(x, from_theirs));
}

INSTANTIATE_TEST_SUITE_P(All, ReferenceGgufPackage,
                         ::testing::Values(Format::Q4_0, Format::Q4_1, Format::Q5_0, Format::Q5_1,
                                           Format::Q8_0, Format::Mxfp4, Format::Q2K, Format::Q3K,
                                           Format::Q4K, Format::Q5K, Format::Q6K, Format::Nvfp4),
                         [](const auto& i) { return std::string(quant::name(i.param)); });

}  // namespace
}  // namespace ricci::testing::reference_gguf_package_test
