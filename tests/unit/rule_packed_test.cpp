// Products with weights in few bits: what their gradients are made of, and what is built on them.
#include <cmath>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/build/quant.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/verify.h"
#include "ricci/quant/scheme.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/jvp.h"

#include "support/compare.h"

namespace ricci::testing::rule_packed_test {
namespace {

std::vector<float> waves(std::int64_t count) {
  std::vector<float> out;
  for (std::int64_t i = 0; i < count; ++i) {
    out.push_back(static_cast<float>(std::sin(0.37 * static_cast<double>(i))));
  }
  return out;
}

// A weight [k, n] as its operands and as the numbers it stands for.
struct Weight {
  std::vector<std::pair<std::string, Tensor>> parts;
  Tensor decoded;
};

Tensor bytes_tensor(Type type, const std::vector<std::byte>& bytes) {
  std::vector<double> numbers;
  for (const std::byte b : bytes) {
    numbers.push_back(type.dtype == DType::I8 ? std::to_integer<std::int8_t>(b)
                                              : std::to_integer<std::uint8_t>(b));
  }
  return Tensor::from_numbers<double>(type, numbers);
}
Tensor floats_tensor(Dims dims, const std::vector<float>& v) {
  return Tensor::from_numbers<double>(f32(std::move(dims)),
                                      std::vector<double>(v.begin(), v.end()));
}

Weight make_weight(const std::string& name, std::int64_t k, std::int64_t n) {
  const quant::Scheme s = quant::scheme_from_name(name).value();
  const quant::Matrix m = quant::encode_matrix(s, k, n, waves(k * n));
  std::vector<float> decoded(static_cast<std::size_t>(k * n));
  quant::decode_matrix(s, k, n, m.parts(), decoded);
  const bool is_int8 = name.starts_with("int8");
  const Type codes = is_int8 ? i8({k, n}) : u8({Dim(std::ssize(m.codes))});
  Weight out{{{"w", bytes_tensor(codes, m.codes)}}, floats_tensor({k, n}, decoded)};
  const Dims blocks{s.group() == 0 ? 1 : (k + s.group() - 1) / s.group(), n};
  if (!m.scales.empty()) out.parts.emplace_back("scale", floats_tensor(blocks, m.scales));
  if (!m.zero_points.empty()) out.parts.emplace_back("zero", floats_tensor(blocks, m.zero_points));
  return out;
}

// Adds the parts to a graph, and to what it is fed.
std::vector<Value> params_of(Graph& g, const Weight& w, Feeds& feeds) {
  std::vector<Value> out;
  for (const auto& [name, tensor] : w.parts) {
    out.push_back(g.param(name, tensor.type()));
    feeds[name] = tensor;
  }
  return out;
}

// [dequant-vjp] dx needs no [k, n] of floats, and is dy·Ŵᵀ.
TEST(RulePacked, GradientOfRowsDecodesNothing) {
  constexpr std::int64_t K = 512;
  constexpr std::int64_t N = 6;
  for (const std::string name :
       {"q4_k", "q6_k", "q4_0", "mxfp4", "int8_block_64", "int4_block_32"}) {
    const Weight w = make_weight(name, K, N);
    Graph g("packed");
    Feeds feeds{{"x", random_tensor(1, f32({3, K}))}};
    const Value x = g.input("x", f32({3, K}));
    g.set_outputs({dequant_matmul(x, params_of(g, w, feeds), {.scheme = name})});
    const Transformed t = grad(g, {"x"}, {.external_seed = true});
    verify(t.graph);
    for (const Node& node : t.graph.nodes()) {
      for (const Type& type : node.types) {
        EXPECT_FALSE(is_float(type.dtype) && type.numel() == K * N) << name;
      }
    }
    feeds["d_output"] = random_tensor(2, f32({3, N}));
    const Tensor dx = interpret(t.graph, feeds)[0];
    Graph plain("plain");
    plain.set_outputs(
        {matmul(plain.input("dy", f32({3, N})), transpose_last(plain.input("w", f32({K, N}))))});
    const Tensor expected = interpret(plain, {{"dy", feeds["d_output"]}, {"w", w.decoded}})[0];
    EXPECT_TRUE(close(dx, expected)) << name;
  }
}

// [dequant-vjp] dq = dŴ·scale, dscale = Σ_block dŴ·(q - zero), dzero = -Σ_block dŴ·scale
TEST(RulePacked, PartsOfAWeightHaveTheirGradients) {
  constexpr std::int64_t K = 5;
  constexpr std::int64_t N = 3;
  constexpr std::int64_t Block = 2;
  const Weight w = make_weight("int8_block_asym_2", K, N);
  Graph g("packed");
  Feeds feeds{{"x", random_tensor(1, f32({2, K}))}};
  const Value x = g.input("x", f32({2, K}));
  g.set_outputs({dequant_matmul(x, params_of(g, w, feeds), {.scheme = "int8_block_asym_2"})});
  const Transformed t = grad(g, {"w", "scale", "zero"}, {.external_seed = true});
  feeds["d_output"] = random_tensor(2, f32({2, N}));
  const auto out = interpret(t.graph, feeds);
  const auto at = [](const Tensor& m, std::int64_t row, std::int64_t column) {
    return m.numbers<double>()[static_cast<std::size_t>(row * m.dims()[1] + column)];
  };
  std::vector<double> by_code;
  std::vector<double> by_scale(9);
  std::vector<double> by_zero(9);
  for (std::int64_t p = 0; p < K; ++p) {
    for (std::int64_t j = 0; j < N; ++j) {
      double d = 0;
      for (std::int64_t m = 0; m < 2; ++m) d += at(feeds["x"], m, p) * at(feeds["d_output"], m, j);
      const double scale = at(feeds["scale"], p / Block, j);
      const auto block = static_cast<std::size_t>(p / Block * N + j);
      by_code.push_back(d * scale);
      by_scale[block] += d * (at(feeds["w"], p, j) - at(feeds["zero"], p / Block, j));
      by_zero[block] -= d * scale;
    }
  }
  EXPECT_TRUE(close(out[0], Tensor::from_numbers<double>(f32({K, N}), by_code)));
  EXPECT_TRUE(close(out[1], Tensor::from_numbers<double>(f32({3, N}), by_scale)));
  EXPECT_TRUE(close(out[2], Tensor::from_numbers<double>(f32({3, N}), by_zero)));
}

// A sum of what f32 rounds away.
TEST(RulePacked, PartsHaveGradientsAndTangentsInF64) {
  const Weight w = make_weight("int8_block_2", 2, 1);
  Graph g("packed");
  Feeds feeds{{"x", Tensor::from_numbers<double>(
                        f64({2, 2}), std::vector<double>{1e9 + 1, 1e9 + 1, -1e9, -1e9})}};
  const Value x = g.input("x", f64({2, 2}));
  g.set_outputs({dequant_matmul(x, params_of(g, w, feeds), {.scheme = "int8_block_2"})});
  Feeds pulled = feeds;
  pulled["d_output"] = Tensor::splat(f64({2, 1}), 1.0);
  const auto codes = feeds["w"].numbers<double>();
  const Transformed reverse = grad(g, {"scale"}, {.external_seed = true});
  const Tensor by_scale = interpret(reverse.graph, pulled)[0];
  EXPECT_TRUE(close(by_scale, Tensor::splat(f32({1, 1}), codes[0] + codes[1])));
  feeds["tangent_scale"] = Tensor::splat(f32({1, 1}), 1.0);
  const Tensor moved = interpret(jvp(g, {"scale"}).graph, feeds)[1];
  const double each = codes[0] + codes[1];
  EXPECT_TRUE(close(
      moved,
      Tensor::from_numbers<double>(f64({2, 1}), std::vector<double>{each * (1e9 + 1), each * -1e9}),
      {1e-12, 0}));
}

// [moe-schemes] the stack written out and multiplied is the product on the stack, and its gradient.
TEST(RulePacked, GroupedProductsAreThoseOfTheDecodedStack) {
  constexpr std::int64_t K = 64;
  constexpr std::int64_t N = 5;
  const Weight w = make_weight("q8_0", K, N * 3);  // as three matrices of N rows each
  Feeds feeds{
      {"x", random_tensor(1, f32({4, K}))},
      {"i", Tensor::from_numbers<double>(i32({4, 2}), std::vector<double>{0, 2, 1, 1, 2, 0, 2, 1})},
      {"w", w.parts[0].second}};
  const auto build = [&](bool packed) {
    Graph g("moe");
    const Value x = g.input("x", f32({4, K}));
    const Value i = g.input("i", i32({4, 2}));
    const Value codes = g.param("w", w.parts[0].second.type());
    const Value stack = dequant_moe_weights(codes, {.scheme = "q8_0", .k = K, .n = N});
    g.set_outputs({packed ? dequant_grouped_matmul(x, codes, i, {.scheme = "q8_0", .n = N})
                          : grouped_matmul(x, stack, i)});
    return g;
  };
  EXPECT_TRUE(close(interpret(build(true), feeds)[0], interpret(build(false), feeds)[0]));
  Feeds with_seed = feeds;
  with_seed["d_output"] = random_tensor(3, f32({4, 2, N}));
  EXPECT_TRUE(
      close(interpret(grad(build(true), {"x"}, {.external_seed = true}).graph, with_seed)[0],
            interpret(grad(build(false), {"x"}, {.external_seed = true}).graph, with_seed)[0]));
}

// [lora-quant-base] a correction of a weight in few bits, and one chosen for each row
TEST(RulePacked, LowRankCorrections) {
  constexpr std::int64_t K = 32;
  constexpr std::int64_t N = 4;
  const Weight w = make_weight("q8_0", K, N);
  Graph g("lora");
  Feeds feeds{{"x", random_tensor(1, f32({3, K}))},
              {"a", random_tensor(2, f32({2, K, 2}))},
              {"b", random_tensor(3, f32({2, 2, N}))},
              {"p", Tensor::from_numbers<double>(i32({3}), std::vector<double>{1, 0, 1})},
              {"dense", w.decoded}};
  const Value x = g.input("x", f32({3, K}));
  const Value a = g.param("a", f32({2, K, 2}));
  const Value b = g.param("b", f32({2, 2, N}));
  const Value p = g.input("p", i32({3}));
  const std::vector<Value> parts = params_of(g, w, feeds);
  const auto matrix = [](Value v, std::int64_t i) {
    return reshape_to(narrow(v, {.axis = 0, .start = i, .len = 1}), {v.dims()[1], v.dims()[2]});
  };
  const Value one =
      lora_dequant_matmul(x, parts, matrix(a, 0), matrix(b, 0), 0.5, {.scheme = "q8_0"});
  const Value base = matmul(x, g.param("dense", f32({K, N})));
  const Value expected = base + matmul(matmul(x, matrix(a, 0)), matrix(b, 0)) * 0.5;
  const Value each = lora_selected(x, base, a, b, p, 0.5);
  const Value other = base + matmul(matmul(x, matrix(a, 1)), matrix(b, 1)) * 0.5;
  g.set_outputs({one, expected, each, other});
  const auto out = interpret(g, feeds);
  EXPECT_TRUE(close(out[0], out[1]));
  EXPECT_TRUE(close(out[2].narrowed(0, 1, 1), out[1].narrowed(0, 1, 1)));
  EXPECT_TRUE(close(out[2].narrowed(0, 0, 1), out[3].narrowed(0, 0, 1)));
  EXPECT_TRUE(close(out[2].narrowed(0, 2, 1), out[3].narrowed(0, 2, 1)));
}

// [dequant-outputs] rounding x to 8 bits costs no more than half a step a number.
TEST(RulePacked, RoundedActivationsStayNear) {
  constexpr std::int64_t K = 96;
  const Weight w = make_weight("q8_0", K, 2);
  const Feeds numbers{{"x", random_tensor(1, f32({1, K}))}, {"w", w.parts[0].second}};
  const auto run = [&](bool rounded) {
    Graph g("packed");
    const Value x = g.input("x", f32({1, K}));
    g.set_outputs({dequant_matmul(x, g.param("w", w.parts[0].second.type()),
                                  {.scheme = "q8_0", .int8_activations = rounded})});
    return interpret(g, numbers)[0].numbers<double>();
  };
  const auto exact = run(false);
  const auto near = run(true);
  const auto decoded = w.decoded.numbers<double>();
  for (std::size_t j = 0; j < 2; ++j) {
    double bound = 1e-5;
    for (std::size_t p = 0; p < K; ++p) bound += std::fabs(decoded[p * 2 + j]) * 2.0 / 127 / 2;
    EXPECT_LE(std::fabs(exact[j] - near[j]), bound);
    EXPECT_NE(exact[j], near[j]);
  }
}

}  // namespace
}  // namespace ricci::testing::rule_packed_test
