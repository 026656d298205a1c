// Further spellings of calls. Values are NumPy's, or PyTorch's where it alone has the name.
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "ricci/array.h"
#include "ricci/support/error.h"

namespace ricci::spellings_test {
namespace {

using Numbers = std::vector<double>;

TEST(ArraySpellings, AnAxisByItsName) {
  const Array x = array({{1.0, 2.0}, {3.0, 4.0}});
  EXPECT_EQ(concatenate({x, x}, {.axis = 1}).shape(), (Dims{2, 4}));
  EXPECT_EQ(concat({x, x}, {.axis = 0}).shape(), (Dims{4, 2}));
  EXPECT_EQ(stack({x, x}, {.axis = 2}).shape(), (Dims{2, 2, 2}));
  EXPECT_TRUE(array_equal(softmax(x, {.axis = 0}), softmax(x, 0)));
  EXPECT_TRUE(array_equal(cumsum(x, {.axis = 0}), cumsum(x, 0)));
  EXPECT_EQ(expand_dims(x, {.axis = 1}).shape(), (Dims{2, 1, 2}));
  EXPECT_EQ(split(x, 2, {.axis = 1})[1].to_vector(), (Numbers{2, 4}));
}

TEST(ArraySpellings, Elements) {
  EXPECT_EQ(mod(array({-7, 7}), 3).to_vector(), (Numbers{2, 1}));
  const auto [q, r] = divmod(array({-7, 7}), 3);
  EXPECT_EQ(q.to_vector(), (Numbers{-3, 2}));
  EXPECT_EQ(r.to_vector(), (Numbers{2, 1}));
  EXPECT_EQ((array({1, 2}) << 3).to_vector(), (Numbers{8, 16}));
  EXPECT_EQ((array({9, 16}) >> 2).to_vector(), (Numbers{2, 4}));
  EXPECT_EQ(left_shift(array({1, 2}), 3).to_vector(), (Numbers{8, 16}));
  EXPECT_EQ(invert(array({0, 5})).to_vector(), (Numbers{-1, -6}));
  EXPECT_EQ(round(array({1.256, -1.254}, float64), 2).to_vector(), (Numbers{1.26, -1.25}));
  EXPECT_EQ(round(array({1251.0, -149.0}), -2).to_vector(), (Numbers{1300, -100}));
  EXPECT_EQ(fix(array({-1.5, 1.5})).to_vector(), (Numbers{-1, 1}));
  EXPECT_TRUE(allclose(celu(array({-1.0, 2.0}), 2.0), array({-0.7869387, 2.0}), 1e-5));
  EXPECT_EQ(grad([](Array v) { return sum(celu(v)); })(array({100.0, 2.0})).to_vector(),
            (Numbers{1, 1}));
  EXPECT_EQ(clip(array({-1.0, 2.0}), none, 1.0).to_vector(), (Numbers{-1, 1}));
  EXPECT_EQ(clip(array({-1.0, 2.0}), 0.0, none).to_vector(), (Numbers{0, 2}));
}

TEST(ArraySpellings, Shapes) {
  const Array x = reshape(arange(6.0), {2, 3});
  EXPECT_EQ(expand_dims(x, {0, 2}).shape(), (Dims{1, 2, 1, 3}));
  EXPECT_EQ(expand_dims(x, {-1, 0}).shape(), (Dims{1, 2, 3, 1}));
  EXPECT_THROW((void)expand_dims(x, {0, -4}), UserError);
  EXPECT_EQ(reshape(x, -1).shape(), (Dims{6}));
  EXPECT_EQ(pad(x, 1).shape(), (Dims{4, 5}));
  EXPECT_EQ(pad(x, 1)(1, slice(1, 4)).to_vector(), (Numbers{0, 1, 2}));
  EXPECT_EQ(pad(x, {1, 2}).shape(), (Dims{5, 6}));
  EXPECT_EQ(pad(x, {{0, 0}, {1, 0}}, 9.0)[0].to_vector(), (Numbers{9, 0, 1, 2}));
  EXPECT_EQ(pad(x[0], {{1, 0}}).shape(), (Dims{4}));
  EXPECT_EQ(tile(x[0], 2).to_vector(), (Numbers{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(roll(x, {1, 1}, {0, 1}).to_vector(), (Numbers{5, 3, 4, 2, 0, 1}));
  const Array deep = zeros({2, 3, 4, 5});
  EXPECT_EQ(moveaxis(deep, {0, 1}, {-1, 0}).shape(), (Dims{3, 4, 5, 2}));
  EXPECT_EQ(moveaxis(deep, {3, 0}, {0, 2}).shape(), (Dims{5, 3, 2, 4}));
  EXPECT_THROW((void)moveaxis(deep, {0, 0}, {1, 2}), UserError);
  EXPECT_THROW((void)moveaxis(deep, {0, 1}, {1, 1}), UserError);
  EXPECT_EQ(hsplit(x, 3)[2].to_vector(), (Numbers{2, 5}));
  EXPECT_EQ(vsplit(x, 2)[1].shape(), (Dims{1, 3}));
  EXPECT_EQ(unstack(x)[1].to_vector(), (Numbers{3, 4, 5}));
  EXPECT_EQ(take(x, {0, 2}, 1).to_vector(), (Numbers{0, 2, 3, 5}));
  EXPECT_EQ(where(x > 3)[1].to_vector(), (Numbers{1, 2}));
}

TEST(ArraySpellings, OverAxesAndProducts) {
  const Array x = array({{1.0, 2.0, 4.0}, {3.0, 4.0, 8.0}});
  EXPECT_EQ(x.std().item(), stddev(x).item());
  EXPECT_EQ(x.std(0).to_vector(), (Numbers{1, 1, 2}));
  EXPECT_EQ(x.var({0, 1}).item(), var(x).item());
  EXPECT_EQ(x.var(0, {.ddof = 1}).to_vector(), (Numbers{2, 2, 8}));
  EXPECT_EQ(x.sum(0, {.keepdims = true}).shape(), (Dims{1, 3}));
  EXPECT_EQ(average(x).item(), mean(x).item());
  // Options alone are none of the axes; some compilers would take the one number for one.
  EXPECT_EQ(sum(x, {.keepdims = true}).shape(), (Dims{1, 1}));
  EXPECT_EQ(sum(x, {.axis = 1, .keepdims = true}).shape(), (Dims{2, 1}));
  EXPECT_EQ(mean(x, {.axis = {0, 1}}).shape(), (Dims{}));
  EXPECT_EQ(sum(x, {}).item(), 22);
  EXPECT_EQ(sum(x, {1}).to_vector(), (Numbers{7, 15}));
  EXPECT_EQ(var(x, {.ddof = 1}).item(), var(x, {}, false, 1).item());
  EXPECT_EQ(var(x, {.axis = 0, .ddof = 1}).to_vector(), (Numbers{2, 2, 8}));
  EXPECT_EQ(norm(x, {.axis = 0, .keepdims = true}).shape(), (Dims{1, 3}));
  EXPECT_EQ(nansum(x, {.keepdims = true}).shape(), (Dims{1, 1}));
  EXPECT_EQ(max(x, {.axis = 0}).to_vector(), (Numbers{3, 4, 8}));
  EXPECT_EQ(max(x, 0, {.keepdims = true}).shape(), (Dims{1, 3}));
  EXPECT_EQ(min(x, {0, 1}).item(), 1);
  EXPECT_EQ(argmax(x, 0, {.keepdims = true}).shape(), (Dims{1, 3}));
  EXPECT_EQ(argmax(x, {.axis = 0}).to_vector(), (Numbers{1, 1, 1}));
  EXPECT_EQ(quantile(array({0.0, 1.0, 2.0}), {0.25, 0.75}).to_vector(), (Numbers{0.5, 1.5}));
  EXPECT_EQ(digitize(array({0.5, 1.0, 9.0}), array({0.0, 1.0, 2.0})).to_vector(),
            (Numbers{1, 2, 3}));
  const Array a = reshape(arange(24.0), {2, 3, 4});
  const Array b = reshape(arange(12.0), {4, 3});
  EXPECT_TRUE(array_equal(tensordot(a, b, {{1, 2}, {1, 0}}), einsum("ijk,kj->i", a, b)));
  EXPECT_TRUE(array_equal(tensordot(a, b, {{2}, {0}}), einsum("ijk,kl->ijl", a, b)));
  EXPECT_EQ(linalg::matrix_rank(array({{1.0, 2.0}, {2.0, 4.0}})).item(), 1);
  EXPECT_TRUE(allclose(linalg::eigvalsh(array({{2.0, 0.0}, {0.0, 1.0}})), array({1.0, 2.0})));
  EXPECT_TRUE(allclose(linalg::svdvals(array({{3.0, 0.0}, {0.0, -4.0}})), array({4.0, 3.0})));
  const Array picture = reshape(arange(16.0), {1, 1, 4, 4});
  EXPECT_TRUE(array_equal(max_pool2d(picture, 2, 2), max_pool2d(picture, 2)));
  EXPECT_TRUE(array_equal(avg_pool2d(picture, 3, 1, 1),
                          avg_pool2d(picture, 3, {.stride = 1, .padding = 1})));
}

TEST(ArraySpellings, SmoothedLabels) {
  // torch.nn.functional.cross_entropy(x, y, label_smoothing=0.1)
  const Array x = array({{1.0, 2.0, 0.5}, {0.0, -1.0, 3.0}}, float64);
  const Array y = array({1, 0});
  const Array target = 0.9 * one_hot(y, 3, float64) + 0.1 / 3;
  EXPECT_TRUE(allclose(cross_entropy(x, y, {.label_smoothing = 0.1}), cross_entropy(x, target)));
  EXPECT_EQ(cross_entropy(x, y, {.label_smoothing = 0}).item(), cross_entropy(x, y).item());
  EXPECT_THROW((void)cross_entropy(x, y, {.label_smoothing = 2}), UserError);
}

TEST(ArraySpellings, Methods) {
  const Array x = array({{1.0, 4.0}, {9.0, 16.0}});
  EXPECT_EQ(x.sqrt().to_vector(), (Numbers{1, 2, 3, 4}));
  EXPECT_EQ((-x).abs().to_vector(), x.to_vector());
  EXPECT_EQ(x.pow(2)[0].to_vector(), (Numbers{1, 16}));
  EXPECT_EQ(x.matmul(x).to_vector(), matmul(x, x).to_vector());
  EXPECT_EQ(x.mT().to_vector(), (Numbers{1, 9, 4, 16}));
  EXPECT_EQ(x.permute({1, 0}).to_vector(), (Numbers{1, 9, 4, 16}));
  EXPECT_EQ(x.swapaxes(0, 1).to_vector(), (Numbers{1, 9, 4, 16}));
  EXPECT_EQ(x.view({4}).shape(), (Dims{4}));
  EXPECT_EQ(x.unsqueeze(-1).shape(), (Dims{2, 2, 1}));
  EXPECT_EQ(x.unsqueeze(0).squeeze(0).shape(), (Dims{2, 2}));
  EXPECT_EQ(x.diagonal().to_vector(), (Numbers{1, 16}));
  EXPECT_EQ(x.trace().item(), 17);
  EXPECT_EQ((-x).sort(0).to_vector(), (Numbers{-9, -16, -1, -4}));
  EXPECT_EQ((-x).argsort(0).to_vector(), (Numbers{1, 1, 0, 0}));
  EXPECT_EQ(x.take(array({1}), 1).to_vector(), (Numbers{4, 16}));
  EXPECT_EQ(x.repeat(2, 0).shape(), (Dims{4, 2}));
  EXPECT_EQ(x[0].broadcast_to({3, 2}).shape(), (Dims{3, 2}));
  EXPECT_TRUE(array_equal(x.softmax(0), softmax(x, 0)));
  EXPECT_TRUE(allclose(x.norm(), sqrt(sum(x * x))));
  EXPECT_EQ(x.to(int32).dtype(), DType::I32);
  EXPECT_EQ(grad([](Array v) { return (v * v.detach()).sum(); })(x[0]).to_vector(),
            (Numbers{1, 4}));
}

TEST(ArraySpellings, WhatMakesArrays) {
  EXPECT_EQ(zeros(3).shape(), (Dims{3}));
  EXPECT_EQ(ones(3, {.dtype = float64}).dtype(), DType::F64);
  EXPECT_EQ(identity(2).to_vector(), (Numbers{1, 0, 0, 1}));
  EXPECT_TRUE(allclose(logspace(0, 2, 3), array({1.0, 10.0, 100.0})));
  EXPECT_EQ(randn(2, 3).shape(), (Dims{2, 3}));
  EXPECT_EQ(rand(2).shape(), (Dims{2}));
  EXPECT_EQ(randint(0, 1, {3}).to_vector(), (Numbers{0, 0, 0}));
  EXPECT_EQ(random::normal(Key(1)).shape(), (Dims{}));
  EXPECT_EQ(random::uniform(Key(1)).item(), uniform(Key(1), {}).item());
  EXPECT_EQ(random::choice(Key(1), 1).item(), 0);
  EXPECT_EQ(sort(random::shuffle(Key(1), arange(5))).to_vector(), (Numbers{0, 1, 2, 3, 4}));
}

// jax.lax.switch(i, functions, *operands)
TEST(ArrayBranches, SwitchHandsArgumentsOn) {
  const auto twice = [](const Array& x, const Array& y) { return 2.0 * x + y; };
  const auto less = [](const Array& x, const Array& y) { return x - y; };
  const auto product = [](const Array& x, const Array& y) { return x * y; };
  const Array x = array({1.0, 3.0});
  const Array y = array({10.0, 20.0});
  const std::vector<std::function<Array(Array, Array)>> functions = {twice, less, product};
  for (int i = -1; i < 4; ++i) {
    const Array expected = i <= 0 ? twice(x, y) : i == 1 ? less(x, y) : product(x, y);
    EXPECT_TRUE(array_equal(switch_(i, twice, less, product, x, y), expected)) << i;
    EXPECT_TRUE(array_equal(switch_(i, std::tuple(twice, less, product), x, y), expected)) << i;
    EXPECT_TRUE(array_equal(switch_(i, functions, x, y), expected)) << i;
    EXPECT_TRUE(
        array_equal(jit([&](Array k) { return switch_(k, functions, x, y); })(i), expected));
  }
  // Functions of any argument, structs that can be called, numbers as arguments.
  struct Scale {
    Array by;
    Array operator()(const Array& v) const { return by * v; }
  };
  const auto generic = [](const auto& v) { return v + 1.0; };
  const Array out = vmap([&](Array i) { return switch_(i, generic, Scale{3.0}, x); })(arange(3));
  EXPECT_EQ(out.to_vector(), (Numbers{2, 4, 3, 9, 3, 9}));
  EXPECT_EQ(switch_(1, [](Array v) { return v; }, [](Array v) { return v * v; }, 3.0).item(), 9);
  const auto slope = grad([&](Array v) { return sum(switch_(array(2), functions, v, y)); })(x);
  EXPECT_EQ(slope.to_vector(), (Numbers{10, 20}));
  EXPECT_THROW((void)switch_(0, std::vector<std::function<Array(Array)>>{}, x), UserError);
}

// A number that a function is called with stays one inside of branches and loops.
TEST(ArrayBranches, CaptureNumbersThatAreTraced) {
  const auto scaled = [](const Array& x, const Array& k) {
    const Array y = cond(sum(x) > 0, [&] { return x * k; }, [&] { return x - k; });
    return while_loop(
               Array(0.0), [](const Array& i) { return i < 2; },
               [&](const Array& i) { return i + k; }) +
           y;
  };
  const auto f = jit(scaled);
  EXPECT_EQ(f(array({1.0, 2.0}), 3).to_vector(), (Numbers{6, 9}));
  EXPECT_EQ(f(array({-1.0, -2.0}), 3).to_vector(), (Numbers{-1, -2}));
  const auto half = jit([](const Array& x, const Array& k) {
    return cond(sum(x) > 0, [&] { return x * k; }, [&] { return x; });
  });
  EXPECT_EQ(half(array({1.0, 2.0}), 0.5).to_vector(), (Numbers{0.5, 1}));
  EXPECT_EQ(half(array({1.0, 2.0}, float64), 0.1).to_vector(), (Numbers{0.1, 0.2}));
}

}  // namespace
}  // namespace ricci::spellings_test
