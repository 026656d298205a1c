// Small floats are rounded once, when a result is complete, and sums start from zero: however a
// program is computed, it has the reference's bits where those are exact.
#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"
#include "ricci/runtime/compiled_graph.h"

namespace ricci::testing::rounding_test {
namespace {

Tensor filled(const Type& type, double (*element)(std::size_t)) {
  std::vector<double> numbers(static_cast<std::size_t>(*type.numel()));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = element(i);
  return Tensor::from_numbers<double>(type, numbers);
}

// Zeros of either sign are told apart.
void expect_same(const Graph& graph, const Feeds& feeds) {
  const std::vector<Tensor> expected = interpret(graph, feeds);
  for (const bool fuse : {false, true}) {
    const std::vector<Tensor> actual =
        compile(graph, Device::standard(), {.fuse = fuse}).run(feeds);
    for (std::size_t k = 0; k < expected.size(); ++k) {
      const auto want = expected[k].numbers<double>();
      const auto got = actual[k].numbers<double>();
      for (std::size_t i = 0; i < want.size(); ++i) {
        ASSERT_TRUE(got[i] == want[i] && std::signbit(got[i]) == std::signbit(want[i]))
            << "output " << k << ", element " << i << ": " << got[i] << ", not " << want[i]
            << (fuse ? " [fused]" : " [op by op]");
      }
    }
  }
}

TEST(Rounding, SumsBeyondARowAreRoundedOnce) {
  for (const DType dtype : {DType::F16, DType::BF16}) {
    Graph g("sums");
    const Value x = g.input("x", {dtype, {64, 3, 2000}});
    const Value odd = g.input("odd", {dtype, {7, 2, 257}});
    g.set_outputs({sum(x, {0, 2}), sum(x), sum(odd, {0, 2})});
    // Rows that alone are more than f16 can hold, and as much again with the other sign.
    const auto large = [](std::size_t i) { return i / 6000 < 32 ? 64.0 : -64.0; };
    const auto halves = [](std::size_t i) { return i % 3 == 0 ? 1.0 : 0.0625; };
    expect_same(g, {{"x", filled(x.type(), large)}, {"odd", filled(odd.type(), halves)}});
  }
}

// Every window has the same maximum, and 256 is as far as bf16 can count.
TEST(Rounding, GradientsOfMaximaAreRoundedOnce) {
  for (const DType dtype : {DType::F16, DType::BF16}) {
    Graph g("peak");
    const Value x = g.input("x", {dtype, {1, 1, 63, 63}});
    const Value dy = g.input("dy", {dtype, {1, 1, 32, 32}});
    const std::vector<Value> operands = {x, dy};
    g.set_outputs(g.add_node(Op(op::MaxPool2dBackward{.kernel_size = {32, 32}}), operands));
    const auto peak = [](std::size_t i) { return i == 1984 ? 1.0 : 0.0; };
    const auto ones = [](std::size_t) { return 1.0; };
    expect_same(g, {{"x", filled(x.type(), peak)}, {"dy", filled(dy.type(), ones)}});
  }
}

TEST(Rounding, NumbersOfASequenceAreRoundedInLoopsToo) {
  for (const DType dtype : {DType::F16, DType::BF16}) {
    const std::string text = fmt::format(R"(
graph @count {{
  %h0 = input "h0" : {0}[40]
  %last = scan %h0 {{length = 3}} body {{
    %h = input "h" : {0}[40]
    %i = iota {{shape = [2340], dtype = {0}}}
    %n = narrow %i {{axis = 0, start = 2300, len = 40}}
    %next = sub %n, %h
    return %next
  }}
  return %last
}}
)",
                                         name(dtype));
    const Graph g = parse_graph(text);
    const auto zero = [](std::size_t) { return 0.0; };
    expect_same(g, {{"h0", filled({dtype, {40}}, zero)}});
  }
}

TEST(Rounding, SumsStartFromZero) {
  const Graph alone = parse_graph(R"(
graph @alone {
  %x = input "x" : f32[3, 1]
  %s = reduce %x {op = sum, axes = [1]}
  %all = reduce %x {op = sum, axes = [0, 1]}
  return %s, %all
}
)");
  const Graph loop = parse_graph(R"(
graph @loop {
  %h0 = input "h0" : f32[4]
  %x = input "x" : f32[4]
  %w = input "w" : f32[4, 4]
  %last, %all, %products = scan %h0, %x, %w {length = 3, num_bcast = 2} body {
    %h = input "h" : f32[4]
    %x = input "x" : f32[4]
    %w = input "w" : f32[4, 4]
    %s = reduce %x {op = sum, axes = [0], keep_dim = true}
    %next = expand %s {target_shape = [4]}
    %row = reshape %x {new_shape = [1, 4]}
    %m = matmul %row, %w
    return %next, %next, %m
  }
  return %last, %all, %products
}
)");
  const auto minus_zero = [](std::size_t) { return -0.0; };
  const auto ones = [](std::size_t) { return 1.0; };
  expect_same(alone, {{"x", filled(f32({3, 1}), minus_zero)}});
  expect_same(loop, {{"h0", filled(f32({4}), ones)},
                     {"x", filled(f32({4}), minus_zero)},
                     {"w", filled(f32({4, 4}), ones)}});
}

}  // namespace
}  // namespace ricci::testing::rounding_test
