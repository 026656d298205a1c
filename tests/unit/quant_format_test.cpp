// Block formats: the table, sizes, refusals, layouts, and floats of few bits.
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "ricci/quant/format.h"
#include "ricci/quant/tiny_float.h"
#include "ricci/support/error.h"

#include "quant/codec.h"
#include "support/file_faults.h"

namespace ricci::quant::quant_format_test {
namespace {

using testing::fault_of;

std::vector<std::byte> random_bytes(std::size_t count, unsigned seed) {
  std::mt19937 rng(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& b : bytes) b = static_cast<std::byte>(rng());
  return bytes;
}

TEST(QuantFormat, TheTableIsWhole) {
  std::set<std::string_view> names;
  std::set<std::uint32_t> types;
  for (const FormatInfo& f : all_formats()) {
    EXPECT_TRUE(names.insert(f.name).second) << f.name;
    EXPECT_EQ(format_from_name(f.name), f.format);
    EXPECT_EQ(&info(f.format), &f);
    if (!f.gguf_type) continue;
    EXPECT_TRUE(types.insert(*f.gguf_type).second) << f.name;
    EXPECT_EQ(format_from_gguf_type(*f.gguf_type), f.format);
  }
  EXPECT_EQ(format_from_name("q4_x"), std::nullopt);
  EXPECT_EQ(format_from_name(""), std::nullopt);
  EXPECT_EQ(format_from_gguf_type(0), std::nullopt);  // f32
  EXPECT_EQ(format_from_gguf_type(16), std::nullopt);
}

TEST(QuantFormat, SizesAreWholeBlocks) {
  EXPECT_EQ(packed_bytes(Format::Q4K, 512), 288);
  EXPECT_EQ(packed_bytes(Format::Fp8E4m3, 7), 7);
  for (const FormatInfo& f : all_formats()) EXPECT_EQ(packed_bytes(f.format, 0), 0);
  try {
    (void)packed_bytes(Format::Q4K, 300);
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ErrorCode::Shape);
    EXPECT_EQ(e.diagnostic().message,
              "300 elements are no whole number of blocks of 256, as format q4_k has");
    EXPECT_EQ(e.diagnostic().help, "pad them to a multiple of 256, or choose another format");
  }
  EXPECT_EQ(fault_of([] { (void)packed_bytes(Format::Q4_0, -32); }), "shape");
  constexpr std::int64_t Most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(fault_of([] { (void)packed_bytes(Format::Q8_0, Most - 31); }), "shape");
  EXPECT_EQ(packed_bytes(Format::Fp8E5m2, Most), Most);
}

TEST(QuantFormat, WrongSizesAreRefusedAndNothingIsFine) {
  std::vector<float> values(32);
  std::vector<std::byte> bytes(18);
  EXPECT_EQ(fault_of([&] { decode(Format::Q4_0, bytes, std::span(values).first(31)); }), "shape");
  EXPECT_EQ(fault_of([&] { decode(Format::Q4_1, bytes, values); }), "shape");
  EXPECT_EQ(fault_of([&] { encode(Format::Q4_1, values, bytes); }), "shape");
  EXPECT_EQ(fault_of([&] { encode(Format::Q4_0, std::span(values).first(1), bytes); }), "shape");
  EXPECT_EQ(fault_of([&] { encode(Format::Q4_0, values, bytes, std::span(values).first(8)); }),
            "shape");
  for (const FormatInfo& f : all_formats()) {
    decode(f.format, {}, {});
    encode(f.format, {}, {});
  }
}

TEST(QuantFormat, ValuesTheFormatLacksAreRefused) {
  for (const FormatInfo& f : all_formats()) {
    std::vector<float> values(static_cast<std::size_t>(f.block_length), 1.0F);
    std::vector<std::byte> bytes(static_cast<std::size_t>(f.block_bytes));
    const bool fp8 = f.format == Format::Fp8E4m3 || f.format == Format::Fp8E5m2;
    for (const float odd :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      values.back() = odd;
      EXPECT_EQ(fault_of([&] { encode(f.format, values, bytes); }), fp8 ? "" : "attr") << f.name;
    }
    values.back() = 1;
    std::vector<float> importance = values;
    for (const float odd : {-1.0F, std::numeric_limits<float>::infinity()}) {
      importance.back() = odd;
      EXPECT_EQ(fault_of([&] { encode(f.format, values, bytes, importance); }), "attr") << f.name;
    }
  }
}

// Whatever the bytes are, fields hold all of them.
template <class Unpack, class Pack>
void expect_nothing_lost(std::size_t size, Unpack unpack, Pack pack) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    const std::vector<std::byte> bytes = random_bytes(size, seed);
    std::vector<std::byte> again(size);
    pack(unpack(bytes.data()), again.data());
    ASSERT_EQ(again, bytes) << "seed " << seed;
  }
}

TEST(QuantLayout, NothingIsLostBetweenBytesAndFields) {
  for (const auto& [layout, size] : {std::pair{LayoutQ4_0, 18U},
                                     {LayoutQ4_1, 20U},
                                     {LayoutQ5_0, 22U},
                                     {LayoutQ5_1, 24U},
                                     {LayoutQ8_0, 34U},
                                     {LayoutQ8_1, 36U}}) {
    const PlainLayout& plain = layout;
    expect_nothing_lost(
        size, [&](const std::byte* b) { return unpack_plain(b, plain); },
        [&](const PlainBlock& f, std::byte* b) { pack_plain(f, plain, b); });
  }
  expect_nothing_lost(84, unpack_q2_k, pack_q2_k);
  expect_nothing_lost(110, unpack_q3_k, pack_q3_k);
  expect_nothing_lost(144, unpack_q4_k, pack_q4_k);
  expect_nothing_lost(176, unpack_q5_k, pack_q5_k);
  expect_nothing_lost(210, unpack_q6_k, pack_q6_k);
  expect_nothing_lost(292, unpack_q8_k, pack_q8_k);
  expect_nothing_lost(17, unpack_fp4<Mxfp4Fields>, pack_fp4<Mxfp4Fields>);
  expect_nothing_lost(36, unpack_fp4<Nvfp4Fields>, pack_fp4<Nvfp4Fields>);
}

struct TinyFloat {
  const char* name;
  unsigned codes;
  float (*value)(std::uint8_t);
  std::uint8_t (*code)(float);
};
const TinyFloat TinyFloats[] = {{"fp4", 16, fp4_value, to_fp4},
                                {"fp8_e4m3", 256, fp8_e4m3_value, to_fp8_e4m3},
                                {"fp8_e5m2", 256, fp8_e5m2_value, to_fp8_e5m2}};

TEST(QuantTinyFloat, EveryCodeSurvives) {
  for (const TinyFloat& t : TinyFloats) {
    for (unsigned c = 0; c < t.codes; ++c) {
      const float v = t.value(static_cast<std::uint8_t>(c));
      if (!std::isnan(v)) {
        EXPECT_EQ(t.code(v), c) << t.name << " " << c;
      }
    }
  }
  EXPECT_TRUE(std::isnan(fp8_e4m3_value(to_fp8_e4m3(NAN))));
  EXPECT_TRUE(std::isnan(fp8_e5m2_value(to_fp8_e5m2(NAN))));
  EXPECT_EQ(to_fp4(NAN), 0);
}

// Between neighbours the nearer wins, and the middle goes to the even code.
TEST(QuantTinyFloat, RoundsToNearestEven) {
  for (const TinyFloat& t : TinyFloats) {
    for (unsigned c = 0; c + 1 < t.codes / 2; ++c) {
      const float a = t.value(static_cast<std::uint8_t>(c));
      const float b = t.value(static_cast<std::uint8_t>(c + 1));
      if (!std::isfinite(b)) continue;
      const float middle = (a + b) / 2;
      const unsigned even = c % 2 == 0 ? c : c + 1;
      EXPECT_EQ(t.code(middle), even) << t.name << " " << c;
      EXPECT_EQ(t.code(std::nextafter(middle, a)), c) << t.name << " " << c;
      EXPECT_EQ(t.code(std::nextafter(middle, b)), c + 1) << t.name << " " << c;
      EXPECT_EQ(t.code(-middle), even | t.codes / 2) << t.name << " " << c;
    }
  }
}

TEST(QuantTinyFloat, WhatIsTooLargeIsTheLargest) {
  EXPECT_EQ(fp8_e4m3_value(to_fp8_e4m3(1e9F)), 448.0F);
  EXPECT_EQ(fp8_e4m3_value(to_fp8_e4m3(-INFINITY)), -448.0F);
  EXPECT_EQ(fp8_e5m2_value(to_fp8_e5m2(1e9F)), 57344.0F);
  EXPECT_EQ(fp8_e5m2_value(to_fp8_e5m2(-INFINITY)), -INFINITY);
  EXPECT_EQ(fp4_value(to_fp4(INFINITY)), 6.0F);
  EXPECT_EQ(e8m0_value(127), 1.0F);
  EXPECT_EQ(e8m0_value(0), std::ldexp(1.0F, -127));
  EXPECT_TRUE(std::isnan(e8m0_value(255)));
}

// [gguf-more-types] A block and its values as the Python package of the GGUF project (0.19) decodes
// it: which nibble is which element is nowhere written down.
TEST(QuantFormat, ElementsOfNvfp4AreInTheOrderOfFiles) {
  std::vector<std::byte> block = {std::byte{0x38}, std::byte{0x40}, std::byte{0x48},
                                  std::byte{0x01}};
  for (unsigned i = 0; i < 32; ++i) block.push_back(static_cast<std::byte>(7 * i));
  const std::vector<float> expected = {
      0.0F,         6.0F,           -4.0F,         3.0F,          -2.0F,          1.5F,
      -1.0F,        0.5F,           0.0F,          0.0F,          0.0F,           0.5F,
      0.5F,         1.0F,           1.0F,          1.5F,          0.0F,           -12.0F,
      8.0F,         -6.0F,          4.0F,          -3.0F,         2.0F,           -1.0F,
      3.0F,         3.0F,           4.0F,          4.0F,          6.0F,           6.0F,
      8.0F,         8.0F,           0.0F,          24.0F,         -16.0F,         12.0F,
      -8.0F,        6.0F,           -4.0F,         2.0F,          24.0F,          24.0F,
      24.0F,        0.0F,           0.0F,          -2.0F,         -2.0F,          -4.0F,
      0.0F,         -0.01171875F,   0.0078125F,    -0.005859375F, 0.00390625F,    -0.0029296875F,
      0.001953125F, -0.0009765625F, -0.001953125F, -0.001953125F, -0.0029296875F, -0.0029296875F,
      -0.00390625F, -0.00390625F,   -0.005859375F, -0.005859375F};
  std::vector<float> values(64);
  decode(Format::Nvfp4, block, values);
  EXPECT_EQ(values, expected);
}

}  // namespace
}  // namespace ricci::quant::quant_format_test
