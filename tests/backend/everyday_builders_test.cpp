// Builders that are compositions: what they compute by hand, the same on every device, fused and op
// by op, and so for their gradients and batches; their derivatives against differences.
#include <cmath>

#include <gtest/gtest.h>

#include "ricci/build/attention.h"
#include "ricci/build/conv.h"
#include "ricci/build/elementwise.h"
#include "ricci/build/image.h"
#include "ricci/build/indexing.h"
#include "ricci/build/loss.h"
#include "ricci/build/norm.h"
#include "ricci/build/recurrent.h"
#include "ricci/build/reduce.h"
#include "ricci/build/shape.h"
#include "ricci/compat/elementwise.h"
#include "ricci/compiler/rewrite/unfuse.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"
#include "ricci/transform/check.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/vmap.h"

#include "backend/agreement.h"
#include "support/compare.h"

namespace ricci::testing::everyday_builders_test {
namespace {

using Numbers = std::vector<double>;

class BackendBuilders : public ::testing::Test {
 protected:
  Value in(const std::string& name, Dims dims, double low = -2, double high = 2) {
    return given(name, f64(dims), random_tensor(feeds_.size() + 1, f64(dims), low, high));
  }
  Value in(const std::string& name, Dims dims, const Numbers& values, DType dtype = DType::F64) {
    const Type type{dtype, std::move(dims)};
    return given(name, type, Tensor::from_numbers<double>(type, values));
  }
  Value integers(const std::string& name, Dims dims, const Numbers& values) {
    return in(name, std::move(dims), values, DType::I64);
  }

  // The outputs by the interpreter.
  std::vector<Tensor> run(std::vector<Value> outputs) {
    graph_.set_outputs(std::move(outputs));
    return interpret(graph_, feeds_);
  }
  void expect(Value v, const Numbers& expected) {
    const Tensor out = run({v})[0];
    EXPECT_TRUE(close(out, Tensor::from_numbers<double>(v.type(), expected))) << print(graph_);
  }

  // Every device computes the same, and the same gradient and batch; derivatives are right.
  void expect_everywhere(Value v, std::vector<std::string> wrt = {"x"}) {
    graph_.set_outputs({v});
    expect_agreement_everywhere(graph_, feeds_);
    expect_batches();
    if (wrt.empty()) return;
    const DerivativeReport report = check_derivatives(graph_, wrt, feeds_, {.order = 2});
    EXPECT_TRUE(report.ok()) << report.to_string() << print(graph_);
    const std::vector<ValueRef> refs(wrt.begin(), wrt.end());
    const Graph gradient = value_and_grad(graph_, refs).graph;
    expect_agreement_everywhere(gradient, feeds_);
  }

 private:
  Value given(const std::string& name, const Type& type, Tensor value) {
    feeds_.emplace(name, std::move(value));
    return graph_.input(name, type);
  }

  // A batch of two equals its examples: the feeds, and the feeds turned over.
  void expect_batches() {
    std::vector<BatchedInput> batched;
    Feeds both;
    Feeds other;
    for (const auto& [name, t] : feeds_) {
      if (!is_float(t.dtype())) {
        both.emplace(name, t);
        other.emplace(name, t);
        continue;
      }
      Numbers numbers = t.numbers<double>();
      Numbers turned(numbers.rbegin(), numbers.rend());
      other.emplace(name, Tensor::from_numbers<double>(t.type(), turned));
      numbers.insert(numbers.end(), turned.begin(), turned.end());
      Dims dims = t.type().dims;
      dims.insert(dims.begin(), Dim(2));
      both.emplace(name, Tensor::from_numbers<double>(t.type().with(dims), numbers));
      batched.emplace_back(name);
    }
    if (batched.empty()) return;
    const Graph batch = vmap(graph_, batched, 2).graph;
    const Tensor out = interpret(batch, both)[0];
    using Complex = std::complex<double>;
    std::vector<Complex> expected = interpret(graph_, feeds_)[0].numbers<Complex>();
    const std::vector<Complex> second = interpret(graph_, other)[0].numbers<Complex>();
    expected.insert(expected.end(), second.begin(), second.end());
    EXPECT_TRUE(close(out, Tensor::from_numbers<Complex>(out.type(), expected))) << print(batch);
    expect_agreement_everywhere(batch, both);
  }

 protected:
  Graph graph_{"g"};
  Feeds feeds_;
};

TEST_F(BackendBuilders, Roll) {
  const Value x = in("x", {2, 5});
  const Value y = in("y", {5}, Numbers{0, 1, 2, 3, 4});
  expect(roll(y, 2), {3, 4, 0, 1, 2});
  expect(roll(y, -7), {2, 3, 4, 0, 1});
  expect_everywhere(roll(x, std::array<std::int64_t, 2>{1, -2}, {0, 1}));
  EXPECT_EQ(roll(x, 10), x);
  EXPECT_THROW(roll(x, 1, 2), UserError);
}

TEST_F(BackendBuilders, Tile) {
  const Value y = in("y", {2}, Numbers{1, 2});
  expect(tile(y, std::array<std::int64_t, 2>{2, 2}), {1, 2, 1, 2, 1, 2, 1, 2});
  expect_everywhere(tile(in("x", {2, 3}), std::array<std::int64_t, 1>{3}));
  EXPECT_THROW(tile(y, std::array<std::int64_t, 1>{-1}), UserError);
}

TEST_F(BackendBuilders, Stack) {
  const Value a = in("a", {2}, Numbers{1, 2});
  const Value b = in("b", {2}, Numbers{3, 4});
  expect(stack(std::array{a, b}), {1, 2, 3, 4});
  expect(stack(std::array{a, b}, -1), {1, 3, 2, 4});
  expect_everywhere(stack(std::array{a, b, a}, 1), {"a", "b"});
  EXPECT_THROW(stack({}), UserError);
  EXPECT_THROW(stack(std::array{a, in("c", {3})}), UserError);
}

TEST_F(BackendBuilders, StridedSlice) {
  const Value y = in("y", {7}, Numbers{0, 1, 2, 3, 4, 5, 6});
  expect(slice(y, {.start = 1, .step = 2}), {1, 3, 5});
  expect(slice(y, {.start = -1, .stop = 0, .step = -2}), {6, 4, 2});
  expect(slice(y, {.step = -3}), {6, 3, 0});
  expect(slice(y, {.start = 2, .stop = -2}), {2, 3, 4});
  expect(slice(y, {.start = 9}), {});
  expect(slice(y, {.start = -9, .stop = 99, .step = 5}), {0, 5});
  expect(slice(y, {.start = 3, .stop = 3, .step = -1}), {});
  const Value x = in("x", {7, 4, 5});
  const std::array<SliceRange, 2> ranges{SliceRange{.axis = 0, .start = 5, .step = -2},
                                         SliceRange{.axis = -1, .start = 1, .step = 3}};
  expect_everywhere(slice(x, ranges));
  EXPECT_THROW(slice(x, {.step = 0}), UserError);
}

TEST_F(BackendBuilders, Triangles) {
  const Value y = in("y", {2, 3}, Numbers{1, 2, 3, 4, 5, 6});
  expect(tril(y), {1, 0, 0, 4, 5, 0});
  expect(tril(y, 1), {1, 2, 0, 4, 5, 6});
  expect(triu(y), {1, 2, 3, 0, 5, 6});
  expect(triu(y, -1), {1, 2, 3, 4, 5, 6});
  expect_everywhere(triu(in("x", {2, 4, 3}), 1));
  EXPECT_THROW(tril(in("v", {3})), UserError);
}

TEST_F(BackendBuilders, PadBy) {
  const Value y = in("y", {3}, Numbers{1, 2, 3});
  const auto around = [&](std::int64_t low, std::int64_t high, PadMode mode) {
    return pad_by(y, std::array{low}, std::array{high}, mode);
  };
  expect(around(2, 1, PadMode::Reflect), {3, 2, 1, 2, 3, 2});
  expect(around(5, 5, PadMode::Reflect), {2, 1, 2, 3, 2, 1, 2, 3, 2, 1, 2, 3, 2});
  expect(around(2, 4, PadMode::Symmetric), {2, 1, 1, 2, 3, 3, 2, 1, 1});
  expect(around(2, 1, PadMode::Edge), {1, 1, 1, 2, 3, 3});
  expect(around(4, 2, PadMode::Wrap), {3, 1, 2, 3, 1, 2, 3, 1, 2});
  expect(around(-1, 2, PadMode::Wrap), {2, 3, 1, 2});
  const Value x = in("x", {3, 4});
  for (const PadMode mode : {PadMode::Reflect, PadMode::Symmetric, PadMode::Edge, PadMode::Wrap}) {
    const std::array<std::int64_t, 2> low{4, 1};
    const std::array<std::int64_t, 2> high{2, -2};
    expect_everywhere(pad_by(x, low, high, mode));
  }
  EXPECT_THROW(around(-2, -2, PadMode::Edge), UserError);
}

// Every pair of amounts against what the names say, one element at a time.
TEST_F(BackendBuilders, PadByAnyAmount) {
  const auto source = [](PadMode mode, std::int64_t i, std::int64_t n) {
    const auto modulo = [](std::int64_t a, std::int64_t m) { return (a % m + m) % m; };
    if (mode == PadMode::Edge) return std::clamp<std::int64_t>(i, 0, n - 1);
    if (mode == PadMode::Wrap) return modulo(i, n);
    const std::int64_t turns = mode == PadMode::Symmetric ? n : std::max<std::int64_t>(n - 1, 1);
    const std::int64_t at = modulo(i, 2 * turns);
    if (mode == PadMode::Symmetric) return at < n ? at : 2 * n - 1 - at;
    return n == 1 ? 0 : (at < n ? at : 2 * (n - 1) - at);
  };
  for (const std::int64_t n : {1, 2, 3}) {
    for (const PadMode mode :
         {PadMode::Reflect, PadMode::Symmetric, PadMode::Edge, PadMode::Wrap}) {
      for (std::int64_t low = -5; low <= 7; ++low) {
        for (std::int64_t high = -5; high <= 7; ++high) {
          if (n + low + high < 0) continue;
          Graph g("pad");
          std::vector<double> numbers;
          for (std::int64_t i = 0; i < n; ++i) numbers.push_back(static_cast<double>(i));
          const Value x = g.constant(Tensor::from_numbers<double>({DType::F32, {n}}, numbers));
          g.set_outputs({pad_by(x, std::array{low}, std::array{high}, mode)});
          std::vector<double> expected;
          for (std::int64_t i = -low; i < n + high; ++i) {
            expected.push_back(static_cast<double>(source(mode, i, n)));
          }
          EXPECT_EQ(interpret(g, {})[0].numbers<double>(), expected)
              << n << ' ' << low << ' ' << high << ' ' << static_cast<int>(mode);
        }
      }
    }
  }
}

// What is written out does not grow with the amount.
TEST_F(BackendBuilders, PadByFarMoreThanThereIs) {
  constexpr std::int64_t Far = std::int64_t{1} << 30;
  for (const PadMode mode : {PadMode::Reflect, PadMode::Symmetric, PadMode::Edge, PadMode::Wrap}) {
    Graph g("pad");
    const Value x = g.input("x", {DType::F32, {2}});
    const Value y = pad_by(x, std::array{Far}, std::array{Far}, mode);
    EXPECT_TRUE(y.dims()[0].is(2 * Far + 2));
    EXPECT_LT(g.size(), 40U);
  }
}

TEST_F(BackendBuilders, Clamp) {
  const Value y = in("y", {4}, Numbers{-3, 0.5, 7, std::nan("")});
  expect(clamp(y, -1, 2), {-1, 0.5, 2, std::nan("")});
  expect_everywhere(clamp(in("x", {5, 3}), -1, 1.5));
}

TEST_F(BackendBuilders, Activations) {
  const Value y = in("y", {4}, Numbers{-1000, -1e-12, 0, 3});
  expect(elu(y, 2), {-2, -2e-12, 0, 3});
  expect(celu(y, 2), {-2, -1e-12, 0, 3});
  const Value x = in("x", {3, 7});
  expect_everywhere(elu(x, 0.7));
  expect_everywhere(celu(x, 0.7));
}

// [CX-03] values, both cotangents, and batches
TEST_F(BackendBuilders, ComplexNormSq) {
  const Type type{DType::C128, {2}};
  const std::vector<std::complex<double>> numbers{{3, 4}, {-1, 2}};
  feeds_.emplace("x", Tensor::from_numbers<std::complex<double>>(type, numbers));
  const Value z = graph_.input("x", type);
  expect(complex_norm_sq(z), {25, 5});
  expect_everywhere(complex_norm_sq(z));
  const Value g = in("g", {2}, Numbers{2, -3});
  const Tensor out = run({complex_norm_sq_backward(z, g)})[0];
  EXPECT_EQ(out.numbers<std::complex<double>>()[1], (std::complex<double>{3, -6}));
  expect_everywhere(complex_norm_sq_backward(z, g), {"x", "g"});
  // ∂L/∂z̄ of the sum of squares is z itself.
  graph_.set_outputs({sum(complex_norm_sq(z))});
  const auto d = interpret(value_and_grad(graph_, {"x"}).graph, feeds_);
  EXPECT_EQ(d[1].numbers<std::complex<double>>(), numbers);
  EXPECT_THROW(complex_norm_sq(g), UserError);
  EXPECT_THROW(complex_norm_sq_backward(z, in("h", {3})), UserError);
}

TEST_F(BackendBuilders, GatherByTuples) {
  const Value y = in("y", {2, 3}, Numbers{1, 2, 3, 4, 5, 6});
  const Value pairs = integers("pairs", {3, 2}, {1, 2, 0, 0, 1, 0});
  expect(gather_nd(y, pairs), {6, 1, 4});
  const Value rows = integers("rows", {2, 1}, {1, 0});
  expect(gather_nd(y, rows), {4, 5, 6, 1, 2, 3});
  const Value x = in("x", {2, 3, 4});
  expect_everywhere(gather_nd(x, pairs));
  // Each index is judged by its own axis, not by the flat place it would give.
  const Value wrong = integers("wrong", {1, 2}, {0, 3});
  EXPECT_THROW(run({gather_nd(y, wrong)}), UserError);
  graph_.set_outputs({gather_nd(y, wrong)});
  expect_agreement_everywhere(graph_, feeds_);
  EXPECT_THROW(gather_nd(y, integers("triples", {1, 3}, {0, 0, 0})), UserError);
}

TEST_F(BackendBuilders, ScatterByTuples) {
  const Value y = in("y", {2, 2}, Numbers{1, 2, 3, 4});
  const Value u = in("u", {3}, Numbers{5, -6, 7});
  const Value pairs = integers("pairs", {3, 2}, {0, 1, 1, 0, 0, 1});
  expect(scatter_nd(ScatterKind::Set, y, u, pairs), {1, 7, -6, 4});
  expect(scatter_nd(ScatterKind::Add, y, u, pairs), {1, 14, -3, 4});
  expect(scatter_nd(ScatterKind::Mul, y, u, pairs), {1, 70, -18, 4});
  expect(scatter_nd(ScatterKind::Max, y, u, pairs), {1, 7, 3, 4});
  expect(scatter_nd(ScatterKind::Min, y, u, pairs), {1, 2, -6, 4});
  const Value x = in("x", {2, 2, 3});
  const Value v = in("v", {3, 3});
  for (const ScatterKind kind :
       {ScatterKind::Add, ScatterKind::Mul, ScatterKind::Max, ScatterKind::Min, ScatterKind::Set}) {
    SCOPED_TRACE(name_of(kind));
    expect_everywhere(scatter_nd(kind, x, v, pairs), {"x", "v"});
  }
}

TEST_F(BackendBuilders, ScatterAlongAnAxis) {
  const Value x = in("x", {2, 3}, Numbers{1, 2, 3, 4, 5, 6});
  const Value u = in("u", {2, 2}, Numbers{10, 20, 30, 40});
  const Value at = integers("at", {2, 2}, {2, 2, 0, 1});
  expect(scatter_along_axis(ScatterKind::Add, x, u, at, 1), {1, 2, 33, 34, 45, 6});
  expect(scatter_along_axis(ScatterKind::Set, x, u, at, 1), {1, 2, 20, 30, 40, 6});
  expect_everywhere(scatter_along_axis(ScatterKind::Mul, x, u, at, -1), {"x", "u"});
}

// Exact where factors are zero: one zero leaves the product of the others, two leave nothing.
TEST_F(BackendBuilders, ScatterByProductsOfZeros) {
  const Value x = in("x", {2}, Numbers{2, 3});
  const Value u = in("u", {5}, Numbers{0, 5, 0, 0, 7});
  const Value at = integers("at", {5}, {0, 0, 1, 1, 1});
  graph_.set_outputs({sum(scatter(x, u, at, {.kind = ScatterKind::Mul}))});
  const auto d = interpret(value_and_grad(graph_, {"x", "u"}).graph, feeds_);
  EXPECT_EQ(d[1].numbers<double>(), (Numbers{0, 0}));
  EXPECT_EQ(d[2].numbers<double>(), (Numbers{10, 0, 0, 0, 0}));
  const DerivativeReport report = check_derivatives(graph_, {"x", "u"}, feeds_, {.order = 2});
  EXPECT_TRUE(report.ok()) << report.to_string();
}

TEST_F(BackendBuilders, OneHot) {
  const Value at = integers("at", {3}, {1, 0, 5});
  const Value hot = one_hot(at, 3, {.dtype = DType::F64});
  expect(hot, {0, 1, 0, 1, 0, 0, 0, 0, 0});
  expect(one_hot(at, 2, {.axis = 0, .dtype = DType::F64}), {0, 1, 0, 1, 0, 0});
  expect_everywhere(matmul(hot, in("x", {3, 4})));
}

// Of indices that cannot count as far as there are classes, too.
TEST_F(BackendBuilders, OneHotOfEveryDtype) {
  constexpr std::int64_t Classes = 2500;
  for (const DType dtype : AllDTypes) {
    if (!is_int(dtype) && !is_float(dtype)) continue;
    const Numbers given = dtype == DType::BF16 ? Numbers{5, 0, 256} : Numbers{5, 0, 127};
    const Value at = in(std::string(name(dtype)), {3}, given, dtype);
    Numbers expected(3 * Classes, 0);
    for (std::size_t i = 0; i < 3; ++i) {
      expected[i * Classes + static_cast<std::size_t>(given[i])] = 1;
    }
    const Value hot = one_hot(at, Classes, {.dtype = DType::F64});
    expect(hot, expected);
    expect_everywhere(sum(hot, {0}), {});
  }
}

TEST_F(BackendBuilders, Histogram) {
  const Value x = in("x", {2, 5}, Numbers{0, 0.1, 0.3, 0.7, 1, -0.1, 1.1, std::nan(""), 0.2, 0.6});
  const Value counts = histogram(x, {.bins = 10});
  EXPECT_EQ(counts.dtype(), DType::I64);
  expect(counts, {1, 1, 1, 1, 0, 0, 1, 1, 0, 1});
  expect_everywhere(counts, {});
  const Value w = in("w", {2, 5});
  expect_everywhere(histogram(x, w, {.bins = 3, .low = -0.5, .high = 0.8}), {"w"});
  EXPECT_THROW(histogram(x, {.bins = 0}), UserError);
  EXPECT_THROW(histogram(x, {.low = 1, .high = 1}), UserError);
}

// An edge belongs to the bin above it, however the quotient is rounded.
TEST_F(BackendBuilders, HistogramOfEdges) {
  Numbers edges;
  for (int i = 0; i <= 49; ++i) edges.push_back(0.1 + i / 49.0 * (2.3 - 0.1));
  edges.back() = 2.3;
  const Value x = in("x", {50}, edges);
  Numbers expected(49, 1);
  expected.back() = 2;
  expect(histogram(x, {.bins = 49, .low = 0.1, .high = 2.3}), expected);
}

TEST_F(BackendBuilders, Im2Col) {
  const Value y = in("y", {1, 1, 2, 3}, Numbers{1, 2, 3, 4, 5, 6});
  expect(im2col(y, {2, 2}), {1, 2, 2, 3, 4, 5, 5, 6});
  const Value x = in("x", {2, 3, 5, 6});
  const WindowOptions options{.stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 2}};
  const Value columns = im2col(x, {3, 2}, options);
  expect_everywhere(columns);
  // A convolution is a product with them.
  const Value w = in("w", {4, 3, 3, 2});
  const Value y1 = conv(x, w, {.stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 2}});
  const Value y2 = reshape_to(matmul(reshape_to(w, {4, 18}), columns), y1.dims());
  const auto out = run({y1, y2});
  EXPECT_TRUE(close(out[0], out[1]));
  EXPECT_EQ(im2col(in("line", {1, 2, 7}), {3}).dims(), (Dims{1, 6, 5}));
  EXPECT_THROW(im2col(x, {9, 9}), UserError);
}

// [CV-04] the transpose of conv, with its derivatives
TEST_F(BackendBuilders, ConvTranspose) {
  const Value y = in("y", {1, 1, 2}, Numbers{1, 2});
  const Value k = in("k", {1, 1, 2}, Numbers{10, 1});
  expect(conv_transpose(y, k, {.stride = {2}}), {10, 1, 20, 2});
  expect(conv_transpose(y, k, {.stride = {2}, .output_padding = {1}}), {10, 1, 20, 2, 0});
  // An output padding as wide as the stride; the kernel's second tap is two away.
  expect(conv_transpose(y, k, {.dilation = {2}, .output_padding = {1}}), {10, 20, 1, 2, 0});
  const Value x = in("x", {2, 4, 3, 2});
  const Value w = in("w", {4, 3, 3, 2});
  expect_everywhere(conv_transpose2d(x, w,
                                     {.stride = {2, 3},
                                      .padding = {1, 0},
                                      .dilation = {1, 2},
                                      .output_padding = {1, 2},
                                      .groups = 2}),
                    {"x", "w"});
  const Value volume = in("volume", {1, 2, 2, 2, 3});
  const Value w3 = in("w3", {2, 3, 2, 1, 2});
  expect_everywhere(conv_transpose(volume, w3, {.stride = {2, 1, 2}}), {"volume", "w3"});
  EXPECT_THROW(conv_transpose(y, k, {.stride = {2}, .output_padding = {2}}), UserError);
  EXPECT_THROW(conv_transpose(y, k, {.padding = {9}}), UserError);
  EXPECT_THROW(conv_transpose2d(y, k), UserError);
}

// [CV-07] [lower-resize-correct]
TEST_F(BackendBuilders, ResizeNearest2x) {
  const Value x = in("x", {1, 2, 2, 3});
  const Value twice = resize_nearest2x(x);
  EXPECT_EQ(twice.dims(), (Dims{1, 2, 4, 6}));
  expect_everywhere(twice);
  expect_everywhere(resize(x, {.sizes = {5, 2}, .mode = ResizeMode::Linear}));
  expect_everywhere(resize(x, {.sizes = {3, 7}, .mode = ResizeMode::Cubic}));
  EXPECT_THROW(resize_nearest2x(in("line", {1, 2, 3})), UserError);
}

// [NM-05]
TEST_F(BackendBuilders, LayerNorm2d) {
  const Value x = in("x", {2, 3, 2, 4});
  const Value gamma = in("gamma", {3});
  const Value beta = in("beta", {3});
  const Value y = layer_norm2d(x, gamma, beta, 0.01);
  expect_everywhere(y, {"x", "gamma", "beta"});
  const auto out = run({y, layer_norm(x, gamma, beta, {.axis = 1, .eps = 0.01})});
  EXPECT_TRUE(same(out[0], out[1]));
  EXPECT_THROW(layer_norm2d(in("line", {2, 3, 4}), gamma, beta), UserError);
}

TEST_F(BackendBuilders, BatchNormInTraining) {
  const Value x = in("x", {4, 2}, Numbers{1, 5, 2, 5, 3, 5, 6, 9});
  const Value gamma = in("gamma", {2}, Numbers{2, 1});
  const Value beta = in("beta", {2}, Numbers{1, 0});
  const Value mean = in("mean", {2}, Numbers{10, 20});
  const Value var = in("var", {2}, Numbers{1, 2});
  const BatchNormResult r = batch_norm_training(x, gamma, beta, mean, var, {.eps = 0.5});
  expect(r.mean, {3, 6});
  expect(r.var, {3.5, 3});
  expect(r.running_mean, {9.3, 18.6});
  expect(r.running_var, {0.9 + 0.1 * 14 / 3, 1.8 + 0.1 * 4});
  expect(slice(r.out, {.axis = 1, .stop = 1}), {-1, 0, 1, 4});
  expect_everywhere(r.out, {"x", "gamma", "beta"});
  graph_.set_outputs({sum(r.running_mean)});
  const auto d = interpret(value_and_grad(graph_, {"x"}, {.zero_missing_wrt = true}).graph, feeds_);
  EXPECT_EQ(d[1].numbers<double>(), Numbers(8, 0.0));
  const Value image = in("image", {2, 3, 2, 2});
  const Value three = in("three", {3}, 0.5, 2);
  const Value out = batch_norm_training(image, three, three, three, three, {.axis = 1}).out;
  expect_everywhere(out, {"image"});
}

TEST_F(BackendBuilders, DenseCrossEntropy) {
  const double inf = std::numeric_limits<double>::infinity();
  const Value z = in("z", {2, 3}, Numbers{1000, 0, -inf, 0, 0, 0});
  const Value p = in("p", {2, 3}, Numbers{1, 0, 0, 0.5, 0.25, 0.25});
  expect(softmax_cross_entropy_dense(z, p), {0, std::log(3.0)});
  const Value x = in("x", {2, 5});
  const Value t = in("t", {2, 5}, 0, 1);
  expect_everywhere(softmax_cross_entropy_dense(x, t), {"x", "t"});
  EXPECT_THROW(softmax_cross_entropy_dense(x, p), UserError);
}

TEST_F(BackendBuilders, AttentionWithValueWidth) {
  const auto plain = [](Value q, Value k, Value v, double scale) {
    const Value scores = matmul(q, transpose_last(k)) * scale;
    return matmul(softmax(scores), v);
  };
  for (const std::int64_t width : {3, 7}) {
    const std::string n = std::to_string(width);
    const Value q = in("q" + n, {2, 3, 4, 5});
    const Value k = in("k" + n, {2, 3, 6, 5});
    const Value v = in("v" + n, {2, 3, 6, width});
    const op::Attention attrs{.num_heads = 3, .head_dim = 5, .layout = AttentionLayout::Bhsd};
    const Value y = attention_with_value_width(q, k, v, attrs, width);
    EXPECT_EQ(y.dims(), (Dims{2, 3, 4, width}));
    const auto out = run({y, plain(q, k, v, 1 / std::sqrt(5.0))});
    EXPECT_TRUE(close(out[0], out[1]));
    expect_everywhere(y, {"q" + n, "k" + n, "v" + n});
  }
  const Value q = in("q", {2, 4, 10});
  const Value k = in("k", {2, 6, 5});
  const Value v = in("v", {2, 6, 3});
  const op::Attention grouped{
      .num_heads = 2, .head_dim = 5, .mask_kind = MaskKind::causal(), .num_kv_heads = 1};
  const Value y = attention_with_value_width(q, k, v, grouped, 3);
  EXPECT_EQ(y.dims(), (Dims{2, 4, 6}));
  expect_everywhere(y, {"q", "k", "v"});
  EXPECT_THROW(attention_with_value_width(q, k, v, grouped, 4), UserError);
}

TEST_F(BackendBuilders, RecurrentLayers) {
  const Value x = in("x", {3, 2, 4}, -1, 1);
  const Value h = in("h", {2, 3}, -1, 1);
  const Value c = in("c", {2, 3}, -1, 1);
  const auto weights = [&](const std::string& name, std::int64_t gates) {
    return std::array{in("wx" + name, {4, gates * 3}, -0.5, 0.5),
                      in("wh" + name, {3, gates * 3}, -0.5, 0.5), in("b" + name, {gates * 3})};
  };
  const auto [wx, wh, b] = weights("", 1);
  const RecurrentResult plain = rnn(x, h, wx, wh, b);
  expect_everywhere(plain.out, {"x", "h", "wx", "wh", "b"});
  // Reversed, a sequence of one step is the same.
  const Value last = slice(x, {.start = 2});
  const auto one = run({rnn(last, h, wx, wh, b).state, rnn(last, h, wx, wh, b, {true}).state});
  EXPECT_TRUE(same(one[0], one[1]));
  const auto [wx3, wh3, b3] = weights("3", 3);
  expect_everywhere(gru(x, h, wx3, wh3, b3, in("bh3", {9})).out, {"x", "h", "wh3", "bh3"});
  const auto [wx4, wh4, b4] = weights("4", 4);
  const LstmResult l = lstm(x, h, c, wx4, wh4, b4);
  EXPECT_EQ(l.out.dims(), (Dims{3, 2, 3}));
  expect_everywhere(l.out, {"x", "h", "c", "wx4", "wh4", "b4"});
  const auto ends = run({l.state, slice(l.out, {.start = 2})});
  EXPECT_EQ(ends[0].numbers<double>(), ends[1].numbers<double>());
  EXPECT_THROW(rnn(h, h, wx, wh, b), UserError);
}

// [transform-region-general] One node, or its steps: the same numbers.
TEST_F(BackendBuilders, TransformRegionsAreDecomposed) {
  const Value x = in("x", {1, 2, 4, 5});
  const Value m = in("m", {2, 1, 1});
  const auto input = [](std::int64_t i) { return RegionOperand::input(i); };
  const auto step = [](std::int64_t i) { return RegionOperand::step(i); };
  const Value y = transform_region(
      {x, m},
      {{TransformStep{Op(op::Reverse{{3}}), {input(0)}},
        TransformStep{Op(op::Resize{.sizes = {3, 3}, .mode = ResizeMode::Linear}), {step(0)}},
        TransformStep{Op(op::Binary{BinaryKind::Sub}), {step(1), input(1)}}}});
  expect_everywhere(y, {"x", "m"});
  const PassResult apart = decompose_fusion_regions(graph_);
  EXPECT_TRUE(apart.changed);
  for (const Node& node : apart.graph.nodes()) EXPECT_FALSE(node.op.is<op::TransformRegion>());
  EXPECT_TRUE(close(interpret(apart.graph, feeds_)[0], interpret(graph_, feeds_)[0]));
}

// Names of the specification build what their builders build.
TEST_F(BackendBuilders, AreKnownToTheParser) {
  const Graph g = parse_graph("graph @g {\n"
                              "  %x = input \"x\" : f32[1, 4, 2, 3]\n"
                              "  %w = input \"w\" : f32[4, 2, 2, 2]\n"
                              "  %g = input \"g\" : f32[4]\n"
                              "  %z = input \"z\" : c64[3]\n"
                              "  %r = input \"r\" : f32[3]\n"
                              "  %a = resize_nearest2x %x\n"
                              "  %b = conv_transpose2d %x, %w {stride = [2, 2], "
                              "output_padding = [1, 0], kernel_size = [2, 2]}\n"
                              "  %c = layer_norm2d %x, %g, %g {eps = 0.1}\n"
                              "  %d = complex_norm_sq %z\n"
                              "  %e = complex_norm_sq_backward %z, %r\n"
                              "  return %a, %b, %c, %d, %e\n"
                              "}\n");
  EXPECT_EQ(g.type(g.outputs()[0]), f32({1, 4, 4, 6}));
  EXPECT_EQ(g.type(g.outputs()[1]), f32({1, 2, 5, 6}));
  EXPECT_EQ(g.type(g.outputs()[3]), f32({3}));
  EXPECT_EQ(parse_graph(print(g)), g);
  for (const char* bad : {"%y = conv_transpose2d %x, %w {kernel_size = [1, 1]}",
                          "%y = conv_transpose2d %x, %w {wide = 1}",
                          "%y = conv_transpose2d %x, %w {groups = half}"}) {
    EXPECT_THROW((void)parse_graph(std::string("graph @g {\n"
                                               "  %x = input \"x\" : f32[1, 4, 2, 3]\n"
                                               "  %w = input \"w\" : f32[4, 2, 2, 2]\n  ") +
                                   bad + "\n  return %y\n}\n"),
                 UserError);
  }
}

}  // namespace
}  // namespace ricci::testing::everyday_builders_test
