// Functions under the names that users of NumPy, JAX and PyTorch try first. Values are those that
// these libraries give.
#include <cmath>
#include <limits>
#include <sstream>

#include <gtest/gtest.h>

#include "ricci/array.h"
#include "ricci/support/error.h"

namespace ricci::names_test {
namespace {

using Numbers = std::vector<double>;

void expect_near(const Array& actual, const Numbers& expected, double tolerance = 1e-5) {
  const Numbers found = actual.to_vector();
  ASSERT_EQ(found.size(), expected.size()) << actual;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] == expected[i]) continue;  // infinities too
    EXPECT_NEAR(found[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << actual;
  }
}

constexpr double Inf = std::numeric_limits<double>::infinity();
const double Nan = std::nan("");

TEST(ArrayNames, OtherNames) {
  const Array x = array({{1.0, -2.0}, {3.0, 4.0}});
  EXPECT_TRUE(array_equal(absolute(x), abs(x)));
  EXPECT_TRUE(array_equal(multiply(x, x), x * x));
  EXPECT_TRUE(array_equal(subtract(x, 1.0), x - 1.0));
  EXPECT_TRUE(array_equal(divide(x, 2.0), x / 2.0));
  EXPECT_TRUE(array_equal(greater(x, 0.0), x > 0.0));
  EXPECT_TRUE(array_equal(less_equal(x, 1.0), x <= 1.0));
  EXPECT_TRUE(array_equal(cat({x, x}, 1), concat({x, x}, 1)));
  EXPECT_TRUE(array_equal(permute(x, {1, 0}), transpose(x)));
  EXPECT_TRUE(array_equal(view(x, {4}), ravel(x)));
  EXPECT_TRUE(array_equal(clamp(x, -1.0, 1.0), clip(x, -1.0, 1.0)));
  EXPECT_TRUE(array_equal(mm(x, x), matmul(x, x)));
  EXPECT_TRUE(array_equal(mv(x, x[0]), matvec(x, x[0])));
  EXPECT_EQ(grad([](const Array& v) { return sum(v * detach(v)); })(x[0]).to_vector(),
            (Numbers{1, -2}));
  EXPECT_TRUE(array_equal(x.sum(0), sum(x, 0)));
  EXPECT_TRUE(array_equal(x.max(1), amax(x, 1)));
  EXPECT_EQ(x.mean().item(), 1.5);
  EXPECT_EQ(x.T().reshape({4}).to_vector(), (Numbers{1, 3, -2, 4}));
  EXPECT_EQ(x.argmax().to_vector(), (Numbers{0, 1}));
  EXPECT_EQ(x.astype(int32).dtype(), DType::I32);
  EXPECT_EQ(zeros({2}, {.dtype = float64}).dtype(), DType::F64);
}

// What somebody types who has JAX or NumPy in their fingers.
TEST(ArrayNames, TypedFirst) {  // [FE-3a] [FE-6a]
  const Array x = array({{1.0, -2.0}, {3.0, 4.0}});
  // A dtype in the place of options; `{}` is still none.
  EXPECT_EQ(zeros({3}, float64).dtype(), DType::F64);
  EXPECT_EQ(ones({3}, {}).dtype(), DType::F32);
  EXPECT_EQ(full({3}, 2.0, float64).dtype(), DType::F64);
  EXPECT_EQ(array({1, 2, 3}, float32).dtype(), DType::F32);
  EXPECT_EQ(arange(3, float32).to_vector(), (Numbers{0, 1, 2}));
  EXPECT_EQ(arange(3.0, 6.0).dtype(), DType::F32);
  EXPECT_EQ(arange(3.0, 6.0).to_vector(), (Numbers{3, 4, 5}));
  EXPECT_EQ(arange(2.0).dtype(), DType::F32);
  EXPECT_EQ(arange(3, 6).dtype(), DType::I32);
  EXPECT_EQ(arange(0, 6, 2, {.dtype = float64}).dtype(), DType::F64);
  EXPECT_EQ(arange(1, 3, float64).to_vector(), (Numbers{1, 2}));
  EXPECT_EQ(random::normal(Key(0), {3}, float64).dtype(), DType::F64);
  EXPECT_TRUE(array_equal(random::uniform(Key(0), {3}, float64),
                          uniform(Key(0), {3}, 0, 1, {.dtype = float64})));
  // Sizes where numbers go.
  int rows = 0;
  for (int i = 0; i < x.dim(0); ++i) ++rows;
  EXPECT_EQ(rows, 2);
  EXPECT_TRUE(x.dim(1) >= 2 && 3 > x.dim(1));
  EXPECT_THROW((void)(Dim("n") < 3), UserError);
  const std::int64_t columns = x.size(-1);
  EXPECT_EQ(columns, 2);
  EXPECT_EQ(arange(x.dim(0)).to_vector(), (Numbers{0, 1}));
  // Methods.
  EXPECT_TRUE(array_equal(x.transpose({1, 0}), transpose(x)));
  EXPECT_EQ(x.sum({0, 1}).item(), 6);
  EXPECT_EQ(x.mean({0}, true).shape(), (Dims{1, 2}));
  EXPECT_EQ(x.max({0, 1}).item(), 4);
  EXPECT_EQ(x.min({1}).to_vector(), (Numbers{-2, 3}));
  EXPECT_EQ(x.prod().item(), -24);
  EXPECT_EQ(x.var().item(), var(x).item());
  EXPECT_EQ(x.var(0).to_vector(), (Numbers{1, 9}));
  EXPECT_TRUE((x > 0).any());
  EXPECT_FALSE((x > 0).all());
  EXPECT_TRUE(array_equal(x.transpose(1, 0), transpose(x)));
  EXPECT_EQ(x.reshape(-1, 1).shape(), (Dims{4, 1}));
  EXPECT_EQ(x.ravel().dot(x.ravel()).item(), 30);
  EXPECT_EQ(x.reshape(1, 4).squeeze().clip(0, 3).to_vector(), (Numbers{1, 0, 3, 3}));
  EXPECT_EQ(x.cumsum(0).to_vector(), (Numbers{1, -2, 4, 2}));
  EXPECT_TRUE(array_equal(+x, x));
  EXPECT_EQ(ones_like(x, float64).dtype(), DType::F64);
  EXPECT_EQ(linspace(0, 1, 3, float64).dtype(), DType::F64);
  EXPECT_EQ(eye(2, float64).dtype(), DType::F64);
  // Options by name.
  EXPECT_EQ(norm(x, 0, {.keepdims = true}).shape(), (Dims{1, 2}));
  EXPECT_EQ(sum(x, 0, {.keepdims = true}).shape(), (Dims{1, 2}));
  EXPECT_EQ(amax(x, {0, 1}, {.keepdims = true}).shape(), (Dims{1, 1}));
  EXPECT_EQ(var(x, 0, {.ddof = 1}).to_vector(), (Numbers{2, 18}));
  EXPECT_EQ(vmap([](Array row) { return row; }, {.out_axes = 1})(x).to_vector(),
            transpose(x).to_vector());
  EXPECT_EQ(x[slice(1, none)].shape(), (Dims{1, 2}));
  EXPECT_EQ(x(slice(none, none, -1), 0).to_vector(), (Numbers{3, 1}));
  const auto [largest, where_they_are] = top_k(x, 1);
  EXPECT_EQ(largest.to_vector(), (Numbers{1, 4}));
  EXPECT_EQ(where_they_are.to_vector(), (Numbers{0, 1}));
  const auto [next, drawn] = split(Key(0));
  EXPECT_TRUE(array_equal(next.words(), split(Key(0), 2)[0].words()));
  EXPECT_TRUE(array_equal(drawn.words(), split(Key(0), 2)[1].words()));
  // Host buffers.
  EXPECT_EQ((x + Tensor::splat(f32({2}), 1)).sum().item(), 10);
  std::ostringstream out;
  out << Tensor::of<float>({2}, {1, 2});
  EXPECT_EQ(out.str(), "[1. 2.]");
}

TEST(ArrayNames, ElementByElement) {
  EXPECT_EQ(floor_divide(array({7.0, -7.0}), 2.0).to_vector(), (Numbers{3, -4}));
  EXPECT_EQ(floor_divide(array({7, -7}), 2).to_vector(), (Numbers{3, -4}));
  EXPECT_EQ(floor_divide(array({7, -7, 6, 0, -1}), -2).to_vector(), (Numbers{-4, 3, -3, 0, 0}));
  EXPECT_EQ(floor_divide(array({7, 4}, {.dtype = uint8}), 2).to_vector(), (Numbers{3, 2}));
  try {
    (void)floor_divide(array({4}), array({0})).tensor();
    ADD_FAILURE() << "4 // 0 is refused";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("integer division by zero"), std::string::npos)
        << e.what();
  }
  EXPECT_EQ(remainder(array({7, -7, 6}), array({3, 3, -4})).to_vector(), (Numbers{1, 2, -2}));
  EXPECT_EQ(remainder(array({7.5, -7.5}), 2.0).to_vector(), (Numbers{1.5, 0.5}));
  expect_near(log10(array({1.0, 1000.0})), {0, 3});
  expect_near(logaddexp(array({0.0, 1000.0, -Inf}), array({0.0, 1000.0, -Inf})),
              {std::log(2.0), 1000 + std::log(2.0), -Inf}, 1e-4);
  expect_near(leaky_relu(array({-1.0, 2.0})), {-0.01, 2});
  expect_near(relu6(array({-1.0, 2.0, 9.0})), {0, 2, 6});
  expect_near(lerp(array({0.0}), array({10.0}), 0.25), {2.5});
  EXPECT_EQ(nan_to_num(array({Nan, 1.0})).to_vector(), (Numbers{0, 1}));
  EXPECT_TRUE(std::isfinite(nan_to_num(array({Inf})).item()));
  EXPECT_EQ(isclose(array({1.0, 1.1, Inf, Nan}), array({1.000001, 1.0, Inf, Nan})).to_vector(),
            (Numbers{1, 0, 1, 0}));
  EXPECT_FALSE(allclose(array({1.0}), array({1.1})));
  EXPECT_EQ(masked_fill(array({1.0, 2.0}), array({true, false}), -Inf).to_vector(),
            (Numbers{-Inf, 2}));
}

TEST(ArrayNames, OverAxes) {
  const Array x = array({{3.0, 1.0}, {2.0, 5.0}});
  expect_near(average(x, array({1.0, 3.0}), 0), {2.25, 4});
  EXPECT_EQ(count_nonzero(array({0.0, 2.0, -1.0})).item(), 2);
  EXPECT_EQ(ptp(x, 1).to_vector(), (Numbers{2, 3}));
  EXPECT_EQ(nansum(array({1.0, Nan, 2.0})).item(), 3);
  EXPECT_EQ(nanmean(array({1.0, Nan, 3.0})).item(), 2);
  EXPECT_EQ(percentile(array({1.0, 2.0, 3.0, 4.0, 5.0}), 25).item(), 2);
  EXPECT_EQ(cummax(array({1.0, 3.0, 2.0})).to_vector(), (Numbers{1, 3, 3}));
  EXPECT_EQ(cummin(array({3.0, 1.0, 2.0})).to_vector(), (Numbers{3, 1, 1}));
  EXPECT_EQ(diff(array({1.0, 4.0, 9.0, 16.0})).to_vector(), (Numbers{3, 5, 7}));
  EXPECT_EQ(diff(array({1.0, 4.0, 9.0, 16.0}), 2).to_vector(), (Numbers{2, 2}));
}

TEST(ArrayNames, ShapesAndPlaces) {  // [FE-9]
  const Array x = reshape(arange(6), {2, 3});
  EXPECT_EQ(vstack({arange(3), arange(3)}).shape(), (Dims{2, 3}));
  EXPECT_EQ(hstack({arange(3), arange(2)}).shape(), (Dims{5}));
  EXPECT_EQ(chunk(arange(5), 2).size(), 2U);
  EXPECT_EQ(chunk(arange(5), 2)[1].to_vector(), (Numbers{3, 4}));
  EXPECT_EQ(split(arange(6), std::vector<std::int64_t>{2, 3})[2].to_vector(), (Numbers{3, 4, 5}));
  EXPECT_EQ(unbind(x, 1)[2].to_vector(), (Numbers{2, 5}));
  EXPECT_EQ(fliplr(x).to_vector(), (Numbers{2, 1, 0, 5, 4, 3}));
  EXPECT_EQ(flipud(x).to_vector(), (Numbers{3, 4, 5, 0, 1, 2}));
  EXPECT_EQ(rot90(x).to_vector(), (Numbers{2, 5, 1, 4, 0, 3}));
  EXPECT_EQ(rot90(x, 3).to_vector(), (Numbers{3, 0, 4, 1, 5, 2}));
  EXPECT_EQ(diag(array({1.0, 2.0})).to_vector(), (Numbers{1, 0, 0, 2}));
  EXPECT_EQ(diag(array({1.0, 2.0}), 1).to_vector(), (Numbers{0, 1, 0, 0, 0, 2, 0, 0, 0}));
  EXPECT_EQ(diag(array({5.0}), -1).to_vector(), (Numbers{0, 0, 5, 0}));
  EXPECT_EQ(diagonal(x).to_vector(), (Numbers{0, 4}));
  EXPECT_EQ(diagonal(x, 1).to_vector(), (Numbers{1, 5}));
  EXPECT_EQ(diagonal(x, -1).to_vector(), (Numbers{3}));
  EXPECT_EQ(dynamic_slice(x, {1, 1}, {1, 2}).to_vector(), (Numbers{4, 5}));
  EXPECT_EQ(dynamic_slice(x, {9, 9}, {1, 2}).to_vector(), (Numbers{4, 5}));
  EXPECT_EQ(dynamic_update_slice(x, array({{9}}), {1, 2}).to_vector(), (Numbers{0, 1, 2, 3, 4, 9}));
  const auto where_set = nonzero(array({{0.0, 3.0}, {4.0, 0.0}}));
  EXPECT_EQ(where_set[0].to_vector(), (Numbers{0, 1}));
  EXPECT_EQ(where_set[1].to_vector(), (Numbers{1, 0}));
  const auto padded = jit([](const Array& v) { return nonzero(v, 3, -1); })(array({0.0, 5.0}));
  EXPECT_EQ(padded[0].to_vector(), (Numbers{1, -1, -1}));
  EXPECT_EQ(bincount(array({0, 2, 2}), 4).to_vector(), (Numbers{1, 0, 2, 0}));
  EXPECT_EQ(searchsorted(array({1.0, 2.0, 3.0}), array({2.0, 0.0, 9.0})).to_vector(),
            (Numbers{1, 0, 3}));
  EXPECT_EQ(searchsorted(array({1.0, 2.0, 3.0}), array({2.0}), true).to_vector(), (Numbers{2}));
  expect_near(interp(array({0.0, 1.5, 9.0}), array({1.0, 2.0, 4.0}), array({10.0, 20.0, 0.0})),
              {10, 15, 0});
}

TEST(ArrayNames, ProductsAndMatrices) {
  const Array a = array({{2.0, 1.0}, {1.0, 3.0}});
  expect_near(inner(a[0], a[1]), {5});
  expect_near(inner(a, a), {5, 5, 5, 10});
  expect_near(vdot(a, a), {15});
  expect_near(tensordot(a, a, 1), {5, 5, 5, 10});
  expect_near(tensordot(a, a), {15});
  expect_near(kron(array({1.0, 2.0}), array({3.0, 4.0})), {3, 4, 6, 8});
  EXPECT_EQ(kron(a, eye(2)).shape(), (Dims{4, 4}));
  expect_near(cross(array({1.0, 0.0, 0.0}), array({0.0, 1.0, 0.0})), {0, 0, 1});
  expect_near(linalg::matrix_power(a, 2), {5, 5, 5, 10});
  expect_near(linalg::solve(a, array({3.0, 4.0})), {1, 1});
  expect_near(linalg::lstsq(a, array({3.0, 4.0})), {1, 1}, 1e-4);
  const auto [sign_of, log_of] = linalg::slogdet(a);
  EXPECT_EQ(sign_of.item(), 1);
  EXPECT_NEAR(log_of.item(), std::log(5.0), 1e-5);
}

TEST(ArrayNames, LossesAndLayers) {
  const Array a = array({1.0, 4.0});
  const Array b = array({2.0, 2.0});
  EXPECT_EQ(mse_loss(a, b).item(), 2.5);
  EXPECT_EQ(l1_loss(a, b).item(), 1.5);
  EXPECT_EQ(huber_loss(a, b).item(), 1.0);
  const Array logits = array({{1.0, 2.0, 3.0}, {3.0, 1.0, 0.0}});
  const Array y = array({2, 0});
  expect_near(nll_loss(log_softmax(logits), y), {cross_entropy(logits, y).item()});
  const Array t = array({1.0, 0.0});
  const Array z = array({0.3, -1.2});
  expect_near(binary_cross_entropy(sigmoid(z), t), {binary_cross_entropy_with_logits(z, t).item()});
  EXPECT_TRUE(std::isfinite(binary_cross_entropy(array({0.0, 1.0}), t).item()));
  expect_near(kl_div(log(array({{0.5, 0.5}})), array({{1.0, 0.0}})), {std::log(2.0)});
  expect_near(cosine_similarity(array({1.0, 0.0}), array({1.0, 1.0})), {std::sqrt(0.5)});
  expect_near(normalize(array({3.0, 4.0})), {0.6, 0.8});
  expect_near(layer_norm(array({{1.0, 3.0}})), {-1, 1}, 1e-4);
  expect_near(glu(array({2.0, 0.0})), {1});
  EXPECT_EQ(embedding(array({1, 1}), array({{1.0}, {2.0}})).to_vector(), (Numbers{2, 2}));
  expect_near(conv1d(array({{{1.0, 2.0, 3.0}}}), array({{{1.0, 1.0}}})), {3, 5});
  EXPECT_EQ(conv_transpose2d(ones({1, 1, 2, 2}), ones({1, 1, 2, 2}), {.stride = 2}).shape(),
            (Dims{1, 1, 4, 4}));
  expect_near(adaptive_avg_pool2d(reshape(arange(4, {.dtype = float32}), {1, 1, 2, 2}), 1), {1.5});
  const Array q = normal(Key(1), {1, 2, 3, 4});
  const Array p = softmax(matmul(q, swapaxes(q, -1, -2)) / 2.0);
  EXPECT_TRUE(allclose(scaled_dot_product_attention(q, q, q), matmul(p, q), 1e-4, 1e-5));
  EXPECT_FALSE(allclose(scaled_dot_product_attention(q, q, q, {.causal = true}), matmul(p, q)));
}

TEST(ArrayNames, RandomNumbers) {
  const Key key = random::key(3);
  const Array x = random::truncated_normal(key, {2000});
  EXPECT_LE(max(abs(x)).item(), 2);
  EXPECT_NEAR(mean(x).item(), 0, 0.1);
  EXPECT_NEAR(stddev(x).item(), 0.8796, 0.05);
  EXPECT_NEAR(mean(random::exponential(key, {4000})).item(), 1, 0.1);
  EXPECT_NEAR(mean(random::gumbel(key, {4000})).item(), 0.5772, 0.1);
  const Array classes = random::categorical(key, broadcast_to(log(array({0.2, 0.8})), {4000, 2}));
  EXPECT_NEAR(mean(classes).item(), 0.8, 0.05);
  EXPECT_EQ(sort(random::permutation(key, 5)).to_vector(), (Numbers{0, 1, 2, 3, 4}));
  EXPECT_EQ(sum(random::permutation(key, arange(5))).item(), 10);
  EXPECT_EQ(randn({2, 3}).shape(), (Dims{2, 3}));
  EXPECT_FALSE(array_equal(rand({4}), rand({4})));
  const auto [a, b] = split<2>(random::fold_in(key, 7));
  EXPECT_FALSE(array_equal(normal(a, {4}), normal(b, {4})));
}

}  // namespace
}  // namespace ricci::names_test
