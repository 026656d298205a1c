#include "ricci/array.h"

#include <sstream>

#include <gtest/gtest.h>

#include "ricci/support/error.h"

#include "array/node.h"
#include "support/scratch_folder.h"

namespace ricci::array_test {
namespace {

using Numbers = std::vector<double>;

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

TEST(ArrayValues, ArithmeticIsComputedWhenLookedAt) {
  const Array x = array({{1.0, 2.0}, {3.0, 4.0}});
  const Array y = (x + 1) * x - x / 2.0;
  EXPECT_EQ(y.to_vector(), (Numbers{1.5, 5, 10.5, 18}));
  EXPECT_EQ(y.type(), f32({2, 2}));
  EXPECT_EQ((-x)[1].to_vector(), (Numbers{-3, -4}));
  EXPECT_EQ(sum(x).item(), 10);
  EXPECT_EQ(matmul(x, x).to_vector(), (Numbers{7, 10, 15, 22}));
}

TEST(ArrayValues, AssignmentOperatorsMakeNewValues) {
  Array x = array({1.0, 2.0});
  const Array before = x;
  x += 1;
  x *= 3.0;
  x -= before;
  x /= 2;
  EXPECT_EQ(x.to_vector(), (Numbers{2.5, 3.5}));
  EXPECT_EQ(before.to_vector(), (Numbers{1, 2}));
}

TEST(ArrayValues, ComparisonsAreElementWise) {
  const Array x = array({1, 2, 3});
  EXPECT_EQ((x == 2).to_vector(), (Numbers{0, 1, 0}));
  EXPECT_EQ((x != 2).to_vector(), (Numbers{1, 0, 1}));
  EXPECT_EQ((x < 2 || x >= 3).to_vector(), (Numbers{1, 0, 1}));
  EXPECT_EQ((!(x > 1) && true).to_vector(), (Numbers{1, 0, 0}));
  EXPECT_EQ((x % 2).to_vector(), (Numbers{1, 0, 1}));
  EXPECT_EQ((x & 1).to_vector(), (Numbers{1, 0, 1}));
  EXPECT_EQ((x == 2).dtype(), DType::Bool);
  if (x[0] == 1) {
    SUCCEED();
  } else {
    FAIL() << "one element is a condition";
  }
}

TEST(ArrayValues, ALoopThatNeverLooksIsComputedNowAndThen) {
  Array x = zeros({3});
  for (int i = 0; i < 2000; ++i) x = x + 1;
  EXPECT_EQ(x.to_vector(), (Numbers{2000, 2000, 2000}));
}

TEST(ArrayValues, LongChainsDieWithoutRecursion) {
  const Graph g = trace(
      [](Array x) {
        for (int i = 0; i < 50'000; ++i) x = x + 1;
        return x;
      },
      zeros({1}));
  EXPECT_GE(g.size(), 50'000U);
}

TEST(ArrayValues, WhatIsHeldIsNotComputedAgain) {
  const Array x = array({1.0, 2.0});
  const Array h = exp(x);
  const Array y = h * 2;
  EXPECT_FALSE(h.node()->is_ready());
  (void)y.tensor();
  EXPECT_TRUE(h.node()->is_ready());  // nobody has looked at it
  EXPECT_FLOAT_EQ(static_cast<float>(h[0].item()), std::exp(1.0F));
}

TEST(ArrayDTypes, NumbersTakeTheDTypeOfWhatTheyMeet) {
  const Array d = array({1.0, 2.0}, {.dtype = DType::F64});
  EXPECT_EQ((d * 0.1).dtype(), DType::F64);
  EXPECT_EQ((d * 0.1)[0].item(), 0.1);  // the double, not the float next to it
  EXPECT_EQ((0.5 * array({1, 2}, {.dtype = DType::F16})).dtype(), DType::F16);
  EXPECT_EQ((array({1, 2}) * 3).dtype(), DType::I32);
  EXPECT_EQ((array({true, false}) * 2.5).dtype(), DType::F32);
  EXPECT_EQ(Array(2.0).dtype(), DType::F32);
  EXPECT_EQ(Array(2).dtype(), DType::I32);
  EXPECT_EQ(Array(std::int64_t{1} << 40).dtype(), DType::I64);
  EXPECT_EQ((Array(1) + Array(2.5)).item(), 3.5);
  EXPECT_EQ(Array(0.1).item(), 0.1);
}

TEST(ArrayDTypes, MixturesThatLoseAreErrorsThatSayHowToCast) {  // [FE-5c]
  const Array f = array({1.0, 2.0});
  const Array d = cast(f, DType::F64);
  const Array i = array({1, 2});
  const std::string mixed = message_of([&] { (void)(f + d); });
  EXPECT_NE(mixed.find("'add' of f32[2] and f64[2]"), std::string::npos) << mixed;
  EXPECT_NE(mixed.find("cast(x, DType::F64)"), std::string::npos) << mixed;
  EXPECT_NE(message_of([&] { (void)(f * i); }).find("'mul' of f32[2] and i32[2]"),
            std::string::npos);
  EXPECT_NE(message_of([&] { (void)(i * 2.5); }).find("dtype.mixed"), std::string::npos);
  EXPECT_NE(message_of([&] { (void)(cast(i, DType::U8) + 300); }).find("300 does not fit into u8"),
            std::string::npos);
  EXPECT_EQ((d + i).dtype(), DType::F64);  // every i32 is an f64
  EXPECT_EQ((cast(i, DType::I64) + i).dtype(), DType::I64);
  EXPECT_EQ((f + cast(i, DType::I8)).dtype(), DType::F32);
  EXPECT_EQ(where(f > 1, f, 1.0).dtype(), DType::F32);
}

TEST(ArrayErrors, SayWhatAndWhere) {
  const Array x = zeros({2, 3});
  const std::string shape = message_of([&] { (void)(x + zeros({4})); });
  EXPECT_NE(shape.find("shape.binary_c2"), std::string::npos) << shape;
  EXPECT_NE(shape.find("array_test.cpp"), std::string::npos) << shape;
  EXPECT_NE(message_of([&] { (void)matmul(x, x); }).find("shape.matmul_c2"), std::string::npos);
  EXPECT_NE(message_of([&] { (void)x.item(); }).find("item() wants one element"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              if (x) FAIL();
            }).find("any(x), all(x)"),
            std::string::npos);
  EXPECT_NE(message_of([&] { (void)(Array() + x); }).find("without a value"), std::string::npos);
  EXPECT_NE(message_of([&] { (void)x[2]; }).find("index 2 of an axis of size 2"),
            std::string::npos);
  EXPECT_NE(message_of([&] { (void)x(0, 0, 0); }).find("3 indices for f32[2, 3]"),
            std::string::npos);
  EXPECT_NE(message_of([&] { (void)x.data<double>(); }).find("the elements are f32, not f64"),
            std::string::npos);
  EXPECT_NE(message_of([&] { (void)array({{1, 2}, {3}}); }).find("a row has 1 entries"),
            std::string::npos);
  EXPECT_NE(message_of([&] { (void)squeeze(x, 0); }).find("which is not 1"), std::string::npos);
  EXPECT_NE(message_of([&] { (void)split(x, 2, 1); }).find("into 2 parts"), std::string::npos);
  EXPECT_NE(message_of([&] { (void)einsum("ij,jk->iz", {x, x}); }).find("no operand has 'z'"),
            std::string::npos);
}

TEST(ArrayIndexing, IsNumPys) {  // [FE-3e]
  const Array x = reshape(arange(24), {2, 3, 4});
  EXPECT_EQ(x[1][2][-1].item(), 23);
  EXPECT_EQ(x(1, 2).to_vector(), (Numbers{20, 21, 22, 23}));
  EXPECT_EQ(x(0, slice(1, {}), slice(0, 4, 2)).to_vector(), (Numbers{4, 6, 8, 10}));
  EXPECT_EQ(x(ellipsis, -1).shape(), (Dims{2, 3}));
  EXPECT_EQ(x(ellipsis, -1).to_vector(), (Numbers{3, 7, 11, 15, 19, 23}));
  EXPECT_EQ(x(slice(), newaxis, 0).shape(), (Dims{2, 1, 4}));
  EXPECT_EQ(x[slice({}, {}, -1)](0, 0, 0).item(), 12);
  EXPECT_EQ(x(0, array({2, 0})).shape(), (Dims{2, 4}));
  EXPECT_EQ(x(0, array({2, 0}), 1).to_vector(), (Numbers{9, 1}));
  EXPECT_EQ(x[slice(-1, {})].shape(), (Dims{1, 3, 4}));
  EXPECT_EQ(x[array({{1, 0}})].shape(), (Dims{1, 2, 3, 4}));
}

// Expected texts are what NumPy 2 prints.
TEST(ArrayPrinting, IsNumPys) {
  EXPECT_EQ(array({1.0, 2.5, -3.0}).str(), "[ 1.   2.5 -3. ]");
  EXPECT_EQ(array({{1.0, 2.0}, {3.0, 4.0}}).str(), "[[1. 2.]\n [3. 4.]]");
  EXPECT_EQ(array({1, 10, -100}).str(), "[   1   10 -100]");
  EXPECT_EQ(array({true, false}).str(), "[ True False]");
  EXPECT_EQ(array({0.1, 0.25, 1e-3}).str(), "[0.1   0.25  0.001]");
  EXPECT_EQ(array({1e-5, 1.0}).str(), "[1.e-05 1.e+00]");
  EXPECT_EQ(array({1e10, 1.0}).str(), "[1.e+10 1.e+00]");
  EXPECT_EQ(array({1.5}).str(), "[1.5]");
  EXPECT_EQ(Array(3.0).str(), "3.0");
  EXPECT_EQ(array({std::numeric_limits<double>::quiet_NaN(), 1.0,
                   -std::numeric_limits<double>::infinity()})
                .str(),
            "[ nan   1. -inf]");
  EXPECT_EQ(zeros({2, 2, 2}).str(), "[[[0. 0.]\n  [0. 0.]]\n\n [[0. 0.]\n  [0. 0.]]]");
  EXPECT_EQ(arange(2000).str(), "[   0    1    2 ... 1997 1998 1999]");
  EXPECT_EQ(zeros({0}).str(), "[]");
  EXPECT_EQ((array({1.0, 3.0}) / 3.0).str(), "[0.33333334 1.        ]");
  EXPECT_EQ((array({1.0, 3.0}, {.dtype = DType::F64}) / 3.0).str(), "[0.33333333 1.        ]");
  std::ostringstream out;
  out << array({1, 2});
  EXPECT_EQ(out.str(), "[1 2]");
}

TEST(ArrayCreation, Makes) {
  EXPECT_EQ(eye(2).to_vector(), (Numbers{1, 0, 0, 1}));
  EXPECT_EQ(eye(2, 3).shape(), (Dims{2, 3}));
  EXPECT_EQ(arange(3).to_vector(), (Numbers{0, 1, 2}));
  EXPECT_EQ(arange(1, 2, 0.5).to_vector(), (Numbers{1, 1.5}));
  EXPECT_EQ(linspace(0, 1, 3).to_vector(), (Numbers{0, 0.5, 1}));
  EXPECT_EQ(full({2}, 7).dtype(), DType::I32);
  EXPECT_EQ(full({2}, 2.5).to_vector(), (Numbers{2.5, 2.5}));
  EXPECT_EQ(array(std::vector<float>{1, 2, 3, 4}, {2, 2}).type(), f32({2, 2}));
  EXPECT_EQ(array(std::vector<double>{1, 2}).dtype(), DType::F64);
  EXPECT_EQ(ones_like(array({1, 2})).to_vector(), (Numbers{1, 1}));
  const std::vector<Array> grid = meshgrid({arange(2), arange(3)});
  EXPECT_EQ(grid[1].to_vector(), (Numbers{0, 1, 2, 0, 1, 2}));
  const std::span<const float> elements = [] {
    static const Array kept = array({1.0, 2.0});
    return kept.data<float>();
  }();
  EXPECT_EQ(elements[1], 2.0F);
}

TEST(ArrayRandom, KeysSayWhichNumbers) {
  const Key key(3);
  EXPECT_EQ(uniform(key, {4}).to_vector(), uniform(key, {4}).to_vector());
  EXPECT_NE(uniform(key, {4}).to_vector(), uniform(Key(4), {4}).to_vector());
  const auto [a, b] = split<2>(key);
  EXPECT_NE(uniform(a, {4}).to_vector(), uniform(b, {4}).to_vector());
  EXPECT_NE(uniform(key.fold_in(1), {4}).to_vector(), uniform(key.fold_in(2), {4}).to_vector());
  manual_seed(5);
  const auto first = normal({4}).to_vector();
  EXPECT_NE(first, normal({4}).to_vector());
  manual_seed(5);
  EXPECT_EQ(first, normal({4}).to_vector());
  const auto dice = randint(key, {1000}, 1, 7).to_vector();
  EXPECT_EQ(*std::ranges::min_element(dice), 1);
  EXPECT_EQ(*std::ranges::max_element(dice), 6);
  EXPECT_NEAR(mean(bernoulli(key, 0.25, {4000})).item(), 0.25, 0.03);
}

TEST(ArrayRandom, NeverTheSameSilentlyInsideJit) {
  const auto f = jit([](Array x) { return x + uniform({3}); });
  const Array x = zeros({3});
  const auto one = f(x).to_vector();
  EXPECT_NE(one, f(x).to_vector());
  EXPECT_EQ(f.compiled(), 1U);
  manual_seed(1);
  const auto seeded = f(x).to_vector();
  manual_seed(1);
  EXPECT_EQ(seeded, f(x).to_vector());
  const std::string loop =
      message_of([&] { (void)scan(x, 3, [](Array c) { return c + uniform({3}); }); });
  EXPECT_NE(loop.find("drawn from inside 'scan'"), std::string::npos) << loop;
  const std::string map =
      message_of([&] { (void)vmap([](Array r) { return r + uniform({}); })(x); });
  EXPECT_NE(map.find("drawn from inside 'vmap'"), std::string::npos) << map;
  // A key that is carried draws anew every step.
  const auto walk = scan(std::pair{Key(1), Array(zeros({}))}, 3, [](std::pair<Key, Array> s) {
    const auto [next, use] = split<2>(s.first);
    const Array y = uniform(use, {});
    return carry_and(std::pair{next, s.second + y}, y);
  });
  const auto ys = walk.ys.to_vector();
  EXPECT_NE(ys[0], ys[1]);
  EXPECT_NE(ys[1], ys[2]);
}

TEST(ArrayFiles, NpyAndNpz) {
  const testing::ScratchFolder folder;
  const Array x = array({{1.0, 2.0}, {3.0, 4.0}});
  save_npy(folder.file("x.npy"), x);
  EXPECT_EQ(load_npy(folder.file("x.npy")).to_vector(), x.to_vector());
  save_npz(folder.file("x.npz"), {{"a", x}, {"b", x + 1}});
  EXPECT_EQ(load_npz(folder.file("x.npz")).at("b").to_vector(), (Numbers{2, 3, 4, 5}));
}

}  // namespace
}  // namespace ricci::array_test
