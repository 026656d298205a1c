// Products with weights in few bits, and products of codes, on every device: sizes that are no
// multiple of anything, few rows and many.
#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/build/quant.h"
#include "ricci/quant/scheme.h"
#include "ricci/runtime/compiled_graph.h"

#include "backend/agreement.h"
#include "support/compare.h"
#include "support/every_device.h"

namespace ricci::testing::packed_product_test {
namespace {

// Bytes of blocks with ordinary scales.
Tensor packed(quant::Format format, std::int64_t k, std::int64_t n) {
  std::vector<float> numbers;
  for (std::int64_t i = 0; i < k * n; ++i) {
    numbers.push_back(static_cast<float>(std::sin(0.7 * static_cast<double>(i))));
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(quant::packed_bytes(format, k * n)));
  quant::encode(format, numbers, bytes);
  std::vector<double> values;
  for (const std::byte b : bytes) values.push_back(std::to_integer<std::uint8_t>(b));
  return Tensor::from_numbers<double>(u8({Dim(std::ssize(bytes))}), values);
}

TEST(BackendPackedProduct, BlockFormatsAgree) {
  for (const quant::FormatInfo& f : quant::all_formats()) {
    if (f.block_length == 1) continue;
    const std::int64_t k = 3 * f.block_length;
    const std::int64_t n = 29;
    const Tensor w = packed(f.format, k, n);
    for (const std::int64_t rows : {1, 6, 13}) {
      for (const bool transposed : {false, true}) {
        SCOPED_TRACE(fmt::format("{} rows {} transposed {}", f.name, rows, transposed));
        Graph g("packed");
        const Type x = f32({rows, transposed ? n : k});
        g.set_outputs({dequant_matmul(g.input("x", x), g.param("w", w.type()),
                                      {.scheme = std::string(f.name), .transpose = transposed})});
        expect_agreement_everywhere(g, {{"x", random_tensor(1, x)}, {"w", w}});
      }
    }
  }
}

TEST(BackendPackedProduct, SchemesWithPartsAgree) {
  constexpr std::int64_t K = 37;
  constexpr std::int64_t N = 75;
  for (const std::string name : {"int8_block_8", "int8_block_asym_8", "int4_block_8"}) {
    const bool nibbles = name.starts_with("int4");
    const Type codes = nibbles ? u8({(K * N + 1) / 2}) : i8({K, N});
    const Type blocks = f32({5, N});
    for (const std::int64_t rows : {1, 5, 11}) {
      for (const bool transposed : {false, true}) {
        SCOPED_TRACE(fmt::format("{} rows {} transposed {}", name, rows, transposed));
        Graph g("packed");
        const Type x = f32({rows, transposed ? N : K});
        op::DequantMatmul op{.scheme = name, .transpose = transposed};
        if (transposed) op.depth = K;
        g.set_outputs({dequant_matmul(g.input("x", x), g.param("w", codes), g.param("s", blocks),
                                      g.param("z", blocks), op)});
        expect_agreement_everywhere(g, {{"x", random_tensor(1, x)},
                                        {"w", random_tensor(2, codes, nibbles ? 0 : -128, 127)},
                                        {"s", random_tensor(3, blocks, 0.1, 0.5)},
                                        {"z", random_tensor(4, blocks, -3, 3)}});
      }
    }
  }
}

TEST(BackendPackedProduct, ExpertsAgree) {
  const Tensor w = packed(quant::Format::Q4K, 512, 7 * 4);
  Graph g("experts");
  const Value x = g.input("x", f32({23, 512}));
  const Value i = g.input("i", i32({23, 2}));
  g.set_outputs({dequant_grouped_matmul(x, g.param("w", w.type()), i, {.scheme = "q4_k", .n = 7})});
  expect_agreement_everywhere(g, {{"x", random_tensor(1, f32({23, 512}))},
                                  {"i", random_tensor(2, i32({23, 2}), 0, 4)},
                                  {"w", w}});
}

// Where there is no expert every index is out of range, and nothing is read.
TEST(BackendPackedProduct, WithoutExpertsNoIndexIsGood) {
  for (const std::int64_t rows : {0, 17}) {
    Graph g("experts");
    const Value x = g.input("x", f64({rows, 32}));
    const Value i = g.input("i", i32({rows}));
    g.set_outputs(
        {dequant_grouped_matmul(x, g.param("w", u8({0})), i, {.scheme = "q8_0", .n = 4})});
    const Feeds feeds = {{"x", Tensor::zeros(x.type())},
                         {"i", Tensor::zeros(i.type())},
                         {"w", Tensor::zeros(u8({0}))}};
    EXPECT_EQ(std::holds_alternative<ErrorCode>(reference_outcome(g, feeds)), rows > 0);
    expect_agreement_everywhere(g, feeds);
  }
}

// Experts with few rows and with many, more depth than is decoded at once, strips that are not
// full.
TEST(BackendPackedProduct, ExpertsOfManyBlocksAgreeOnAnyThreads) {
  const Tensor w = packed(quant::Format::Q4K, 1536, 53 * 5);
  Graph g("experts");
  const Value x = g.input("x", f32({37, 1536}));
  const Value i = g.input("i", i32({37}));
  g.set_outputs(
      {dequant_grouped_matmul(x, g.param("w", w.type()), i, {.scheme = "q4_k", .n = 53})});
  std::vector<double> picked(37, 3);  // expert 1 has no rows, 0 two, 2 nine, 4 one
  for (const std::size_t row : {5, 30}) picked[row] = 0;
  for (std::size_t row = 7; row < 25; row += 2) picked[row] = 2;
  picked[36] = 4;
  const Feeds feeds = {{"x", random_tensor(1, x.type())},
                       {"i", Tensor::from_numbers<double>(i.type(), picked)},
                       {"w", w}};
  expect_agreement_everywhere(g, feeds);
  if (!has_device("cpu")) return;
  const Tensor one = compile(g, Device::cpu(1)).run(feeds)[0];
  for (const int threads : {2, 3, 8}) {
    EXPECT_TRUE(compile(g, Device::cpu(threads)).run(feeds)[0].identical(one)) << threads;
  }
}

// Rounded to 8 bits: the same integers whether they are multiplied as such or as floats.
// So many rows that the weight is decoded more than once, and numbers of them that fill no vector.
TEST(BackendPackedProduct, ManyRowsAgreeOnAnyThreads) {
  for (const DType dtype : {DType::F32, DType::F64}) {
    for (const auto& [rows, n] :
         std::vector<std::pair<std::int64_t, std::int64_t>>{{9, 64}, {70, 131}, {541, 67}}) {
      SCOPED_TRACE(fmt::format("{} rows {} n {}", name(dtype), rows, n));
      const Tensor w = packed(quant::Format::Q4K, 768, n);
      Graph g("packed");
      const Type x{dtype, {rows, 768}};
      g.set_outputs({dequant_matmul(g.input("x", x), g.param("w", w.type()), {.scheme = "q4_k"})});
      const Feeds feeds = {{"x", random_tensor(1, x)}, {"w", w}};
      expect_agreement_everywhere(g, feeds);
      if (!has_device("cpu")) continue;
      const Tensor one = compile(g, Device::cpu(1)).run(feeds)[0];
      for (const int threads : {2, 3, 8}) {
        EXPECT_TRUE(compile(g, Device::cpu(threads)).run(feeds)[0].identical(one)) << threads;
      }
    }
  }
}

TEST(BackendPackedProduct, ActivationsInInt8Agree) {
  for (const quant::FormatInfo& f : quant::all_formats()) {
    if (f.block_length == 1) continue;
    const std::int64_t k = 2 * std::max<std::int64_t>(f.block_length, 64);
    const std::int64_t n = 35;
    const Tensor w = packed(f.format, k, n);
    for (const std::int64_t rows : {1, 3, 8, 11}) {
      SCOPED_TRACE(fmt::format("{} rows {}", f.name, rows));
      Graph g("packed");
      const Type x = f32({rows, k});
      g.set_outputs({dequant_matmul(g.input("x", x), g.param("w", w.type()),
                                    {.scheme = std::string(f.name), .int8_activations = true})});
      expect_agreement_everywhere(g, {{"x", random_tensor(1, x)}, {"w", w}});
    }
  }
}

// Quotients by the step of a block that f32 and f64 put on different sides of the middle between
// two codes: all devices take the one of f32.
TEST(BackendPackedProduct, ActivationsBetweenCodesAgree) {
  const float step = 1.0F / 127;
  std::vector<double> numbers{1};
  for (int code = 0; code < 127; ++code) {
    const float middle = (static_cast<float>(code) + 0.5F) * step;
    for (const float v : {std::nextafter(middle, 0.0F), middle, std::nextafter(middle, 1.0F)}) {
      const double exact = static_cast<double>(v) / (1.0 / 127);
      if (std::nearbyint(exact) == std::nearbyint(static_cast<double>(v / step))) continue;
      if (numbers.size() % 32 == 0) numbers.push_back(1);
      numbers.push_back(static_cast<double>(v));
    }
  }
  ASSERT_GT(numbers.size(), 32U);
  constexpr std::int64_t Depth = 256;
  numbers.resize(Depth, 0);
  const Tensor w = packed(quant::Format::Q4K, Depth, 5);
  for (const std::int64_t rows : {1, 11}) {
    Graph g("packed");
    const Type x = f32({rows, Depth});
    g.set_outputs({dequant_matmul(g.input("x", x), g.param("w", w.type()),
                                  {.scheme = "q4_k", .int8_activations = true})});
    std::vector<double> all;
    for (std::int64_t r = 0; r < rows; ++r) all.insert(all.end(), numbers.begin(), numbers.end());
    expect_agreement_everywhere(g, {{"x", Tensor::from_numbers<double>(x, all)}, {"w", w}});
  }
}

TEST(BackendPackedProduct, ActivationsThatAreNotFiniteHaveNoCodes) {
  const Tensor w = packed(quant::Format::Q4K, 256, 5);
  Graph g("packed");
  const Type x = f32({1, 256});
  g.set_outputs({dequant_matmul(g.input("x", x), g.param("w", w.type()),
                                {.scheme = "q4_k", .int8_activations = true})});
  std::vector<double> numbers(256, 1.0);
  numbers[200] = std::nan("");
  expect_agreement_everywhere(g, {{"x", Tensor::from_numbers<double>(x, numbers)}, {"w", w}});
  expect_agreement_everywhere(g, {{"x", Tensor::splat(x, 0.0)}, {"w", w}});
}

// [gguf-more-types] [moe-schemes] Every format, written out.
TEST(BackendPackedProduct, StacksOfWeightsAreWrittenOut) {
  for (const quant::FormatInfo& f : quant::all_formats()) {
    if (f.block_length == 1) continue;
    SCOPED_TRACE(f.name);
    const std::int64_t k = 2 * f.block_length;
    const Tensor w = packed(f.format, k, 3 * 21);
    Graph g("stack");
    g.set_outputs({dequant_moe_weights(g.param("w", w.type()),
                                       {.scheme = std::string(f.name), .k = k, .n = 21})});
    expect_agreement_everywhere(g, {{"w", w}});
  }
}

TEST(BackendIntegerProduct, BatchesAgreeToTheBit) {
  for (const std::int64_t rows : {1, 4, 5, 100}) {
    for (const std::int64_t columns : {1, 64, 1100}) {
      SCOPED_TRACE(fmt::format("{} by {}", rows, columns));
      Graph g("codes");
      const Type x = i8({2, 3, rows, 45});
      const Type w = i8({2, 3, 45, columns});
      g.set_outputs(
          {q_matmul(g.input("x", x), g.param("w", w), {.x_zp = -3, .w_zp = {9}, .mult = {0.002}}),
           q_matmul(g.input("u", u8({rows, 45})), g.param("v", i8({45, columns})),
                    {.x_zp = 200, .to = DType::I32})});
      expect_agreement_everywhere(g, {{"x", random_tensor(1, x, -128, 127)},
                                      {"w", random_tensor(2, w, -128, 127)},
                                      {"u", random_tensor(3, u8({rows, 45}), 0, 255)},
                                      {"v", random_tensor(4, i8({45, columns}), -128, 127)}});
    }
  }
}

// Sums at the ends of what 8 bits can say, longer than 32 bits hold.
TEST(BackendIntegerProduct, LargestCodesAgreeToTheBit) {
  constexpr std::int64_t Depth = 40000;
  for (const std::int64_t rows : {1, 9}) {
    for (const std::int64_t code : {-128, 127}) {
      Graph g("codes");
      const Type x = u8({rows, Depth});
      const Type w = i8({Depth, 3});
      g.set_outputs({q_matmul(g.input("x", x), g.param("w", w), {.mult = {1e-7}})});
      expect_agreement_everywhere(
          g, {{"x", Tensor::splat(x, std::int64_t{255})}, {"w", Tensor::splat(w, code)}});
    }
  }
}

TEST(BackendIntegerProduct, CodesAgreeToTheBit) {
  for (const DType dtype : {DType::I8, DType::U8}) {
    for (const std::int64_t rows : {1, 7, 101}) {
      for (const std::int64_t depth : {1, 30, 259}) {
        SCOPED_TRACE(fmt::format("{} {} {}", name(dtype), rows, depth));
        Graph g("codes");
        const Type x{dtype, {rows, depth}};
        g.set_outputs(
            {q_matmul(g.input("x", x), g.param("w", i8({depth, 67})), g.param("b", i32({67})),
                      {.x_zp = 17, .w_zp = {-5}, .out_zp = 3, .mult = {0.0037}})});
        expect_agreement_everywhere(g,
                                    {{"x", random_tensor(1, x, dtype == DType::I8 ? -128 : 0, 127)},
                                     {"w", random_tensor(2, i8({depth, 67}), -128, 127)},
                                     {"b", random_tensor(3, i32({67}), -5000, 5000)}});
      }
    }
  }
}

TEST(BackendIntegerProduct, ConvolutionsOfCodesAgreeToTheBit) {
  Graph g("codes");
  const Type x = u8({2, 6, 13, 11});
  const Type w = i8({10, 3, 3, 2});
  std::vector<Real> factors;
  for (int i = 1; i <= 10; ++i) factors.emplace_back(0.0005 * i);
  g.set_outputs({q_conv2d(g.input("x", x), g.param("w", w), g.param("b", i32({10})),
                          {.stride = {2, 1},
                           .padding = {1, 2},
                           .dilation = {1, 2},
                           .groups = 2,
                           .x_zp = 100,
                           .w_zp = {3},
                           .mult = factors})});
  expect_agreement_everywhere(g, {{"x", random_tensor(1, x, 0, 255)},
                                  {"w", random_tensor(2, w, -128, 127)},
                                  {"b", random_tensor(3, i32({10}), -5000, 5000)}});
}

// A chain that is trained: forward and gradient on every device.
TEST(BackendIntegerProduct, QuantisedTrainingStepAgrees) {
  Graph g("qat");
  const Value x = g.input("x", f32({5, 33}));
  const Value w = g.param("w", f32({33, 9}));
  const Value s = g.param("s", f32({9}));
  const Value y = matmul(fake_quantize(x, {.bits = 8, .ste = SteKind::ClippedIdentity}),
                         fake_quantize_lsq(w, s, {.bits = 4, .axis = 1}));
  g.set_outputs({sum(y * y)});
  expect_agreement_everywhere(g, {{"x", random_tensor(1, f32({5, 33}))},
                                  {"w", random_tensor(2, f32({33, 9}))},
                                  {"s", random_tensor(3, f32({9}), 0.2, 0.4)}});
}

}  // namespace
}  // namespace ricci::testing::packed_product_test
