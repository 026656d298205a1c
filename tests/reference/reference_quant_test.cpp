// Bytes of every block format and weight scheme, and the values they stand for as a script computes
// them from the formats' descriptions; see make_quant_values.py. Bit for bit, but that a NaN is
// any.
#include <bit>
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "ricci/io/npy.h"
#include "ricci/quant/scheme.h"

#include "test_paths.h"

namespace ricci::testing::reference_quant_test {
namespace {

using quant::Format;
using quant::Scheme;

std::map<std::string, Tensor> arrays_of(const std::string& file) {
  std::map<std::string, Tensor> arrays;
  const std::string folder = RICCI_SOURCE_DIR "/tests/reference/quant/";
  for (auto& [name, tensor] : io::read_npz(folder + file)) arrays.emplace(name, tensor);
  return arrays;
}

void expect_same_bits(std::span<const float> got, const std::vector<float>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(expected[i]) && std::isnan(got[i])) continue;
    ASSERT_EQ(std::bit_cast<std::uint32_t>(got[i]), std::bit_cast<std::uint32_t>(expected[i]))
        << "element " << i << ": " << got[i] << " instead of " << expected[i];
  }
}

std::string named(const ::testing::TestParamInfo<Format>& i) {
  return std::string(quant::name(i.param));
}
std::vector<Format> formats() {
  std::vector<Format> out;
  for (const quant::FormatInfo& f : quant::all_formats()) out.push_back(f.format);
  return out;
}

// [gguf-q2k-q3k-layout] [gguf-q6k-signed] [fp8-e4m3-finite]
class ReferenceBlocks : public ::testing::TestWithParam<Format> {};

TEST_P(ReferenceBlocks, DecodeToTheSameBits) {
  const std::map<std::string, Tensor> arrays = arrays_of("blocks.npz");
  const std::string name(quant::name(GetParam()));
  const Tensor& bytes = arrays.at(name + ".bytes");
  const Tensor& values = arrays.at(name + ".values");
  const quant::FormatInfo& f = quant::info(GetParam());
  ASSERT_EQ(bytes.dims()[1], f.block_bytes);
  ASSERT_EQ(values.dims()[1], f.block_length);
  ASSERT_GE(bytes.dims()[0], 10);
  std::vector<float> got(static_cast<std::size_t>(values.numel()));
  quant::decode(GetParam(), bytes.bytes(), got);
  expect_same_bits(got, values.elements<float>());
}

INSTANTIATE_TEST_SUITE_P(All, ReferenceBlocks, ::testing::ValuesIn(formats()), named);

// [int4-signed]
TEST(ReferenceSchemes, DecodeToTheSameBits) {
  const std::map<std::string, Tensor> arrays = arrays_of("schemes.npz");
  for (const char* name : {"int8_block_8", "int8_block_asym_16", "int4_block_32", "fp8_e4m3",
                           "fp8_e5m2", "nvfp4_block"}) {
    SCOPED_TRACE(name);
    const Scheme scheme = *quant::scheme_from_name(name);
    const auto part = [&](const char* suffix) { return arrays.at(std::string(name) + suffix); };
    const Tensor codes = part(".codes");
    const Tensor values = part(".values");
    quant::MatrixParts parts;
    std::vector<float> scales;
    std::vector<float> zero_points;
    Tensor fp8_scales;
    parts.codes = codes.bytes();
    if (scheme.scale_is_fp8()) {
      fp8_scales = part(".scales");
      parts.fp8_scales = fp8_scales.bytes();
      parts.global = static_cast<float>(part(".global").item());
    } else {
      scales = part(".scales").elements<float>();
      parts.scales = scales;
    }
    if (scheme.has_zero_point()) {
      zero_points = part(".zero_points").elements<float>();
      parts.zero_points = zero_points;
    }
    std::vector<float> got(static_cast<std::size_t>(values.numel()));
    quant::decode_matrix(scheme, values.dims()[0], values.dims()[1], parts, got);
    expect_same_bits(got, values.elements<float>());
  }
}

}  // namespace
}  // namespace ricci::testing::reference_quant_test
