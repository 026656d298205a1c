#include <cmath>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "ricci/support/error.h"
#include "ricci/type/tensor.h"

#include "support/sanitized.h"

namespace ricci::type_tensor_test {
namespace {

template <class F>
ErrorCode code_of(F&& f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.code();
  }
  return ErrorCode::Internal;
}

Tensor counting(StaticDims dims) {
  std::int64_t count = 1;
  for (const std::int64_t d : dims) count *= d;
  std::vector<float> v(static_cast<std::size_t>(count));
  std::iota(v.begin(), v.end(), 0.0F);
  return Tensor::of<float>(std::move(dims), std::span<const float>(v));
}

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> out;
  for (const int v : values) out.push_back(static_cast<std::byte>(v));
  return out;
}

TEST(Tensor, StartsAsAScalarZero) {
  const Tensor t;
  EXPECT_EQ(t.type(), f32());
  EXPECT_EQ(t.item(), 0);
}

TEST(Tensor, TransposedViewsShareElements) {
  const Tensor t = counting({2, 3});
  const Tensor v = t.transposed(std::vector<std::int64_t>{1, 0});
  EXPECT_EQ(v.dims(), (StaticDims{3, 2}));
  EXPECT_EQ(v.data(), t.data());
  EXPECT_FALSE(v.is_contiguous());
  EXPECT_EQ(v.numbers<double>(), (std::vector<double>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(v.contiguous().elements<float>(), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_TRUE(v.contiguous().identical(v));
}

TEST(Tensor, NarrowedViewsStartWithinTheirParent) {
  const Tensor t = counting({3, 4});
  EXPECT_EQ(t.narrowed(1, 1, 2).numbers<double>(), (std::vector<double>{1, 2, 5, 6, 9, 10}));
  EXPECT_EQ(t.narrowed(0, 2, 1).numbers<double>(), (std::vector<double>{8, 9, 10, 11}));
  EXPECT_EQ(t.narrowed(0, 3, 0).numel(), 0);
  EXPECT_THROW((void)t.narrowed(0, 2, 2), UserError);
}

TEST(Tensor, BroadcastAndReshapeCombine) {
  const Tensor row = counting({3});
  const Tensor wide = row.broadcast_to({2, 3});
  EXPECT_EQ(wide.strides(), (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(wide.numbers<double>(), (std::vector<double>{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(wide.reshaped({6}).numbers<double>(), (std::vector<double>{0, 1, 2, 0, 1, 2}));
  EXPECT_THROW((void)row.broadcast_to({4}), UserError);
  EXPECT_THROW((void)row.reshaped({2}), UserError);
}

TEST(Tensor, ASplatStoresOneElement) {
  const Tensor s = Tensor::splat(f32({1000000, 1000000}), 0.5);
  EXPECT_TRUE(s.is_splat());
  EXPECT_EQ(s.numel(), 1000000000000);
  EXPECT_TRUE(s.reshaped({1000000000000}).is_splat());
  EXPECT_TRUE(s.canonical().is_splat());
  EXPECT_TRUE(s.identical(Tensor::splat(f32({1000000, 1000000}), 0.5)));
}

TEST(Tensor, SplatsAndDenseTensorsAreOneValue) {
  const Tensor splat = Tensor::splat(f32({2, 2}), 3.0);
  const Tensor dense = Tensor::of<float>({2, 2}, {3, 3, 3, 3});
  EXPECT_FALSE(dense.is_splat());
  EXPECT_TRUE(dense.canonical().is_splat());
  EXPECT_TRUE(splat.identical(dense));
  EXPECT_EQ(splat.hash(), dense.hash());
  const Tensor other = Tensor::of<float>({2, 2}, {3, 3, 3, 4});
  EXPECT_FALSE(splat.identical(other));
  EXPECT_NE(splat.hash(), other.hash());
  EXPECT_FALSE(splat.identical(splat.reshaped({4})));
}

TEST(Tensor, IdentityIsOfBits) {
  const Tensor zero = Tensor::of<float>({1}, {0.0F});
  const Tensor minus_zero = Tensor::of<float>({1}, {-0.0F});
  const Tensor nan = Tensor::of<float>({1}, {std::nanf("")});
  EXPECT_FALSE(zero.identical(minus_zero));
  EXPECT_TRUE(nan.identical(Tensor::of<float>({1}, {std::nanf("")})));
  EXPECT_FALSE(zero.identical(Tensor::splat(f64({1}), 0.0)));
}

TEST(Tensor, HashDoesNotDependOnLayout) {
  const Tensor t = counting({2, 3});
  const std::vector<std::int64_t> swap = {1, 0};
  const Tensor strided = t.transposed(swap).contiguous().transposed(swap);
  EXPECT_FALSE(strided.is_contiguous());
  EXPECT_TRUE(strided.identical(t));
  EXPECT_EQ(strided.hash(), t.hash());
}

TEST(Tensor, EmptyTensorsHaveNoElements) {
  const Tensor t = Tensor::zeros(f32({2, 0, 3}));
  EXPECT_EQ(t.numel(), 0);
  EXPECT_TRUE(t.numbers<double>().empty());
  EXPECT_TRUE(t.identical(Tensor::splat(f32({2, 0, 3}), 7.0)));
  EXPECT_EQ(t.hash(), Tensor::splat(f32({2, 0, 3}), 7.0).hash());
  EXPECT_EQ(t.to_string(), "f32[2, 0, 3] [[], []]");
}

TEST(Tensor, BytesMustBeExactlyAsMany) {
  const std::vector<std::byte> seven(7);
  EXPECT_EQ(code_of([&] { (void)Tensor::from_bytes(f32({2}), seven); }), ErrorCode::Shape);
  EXPECT_EQ(code_of([&] { (void)Tensor::from_bytes(f32(), seven); }), ErrorCode::Shape);
  const std::vector<std::byte> eight(8);
  EXPECT_TRUE(Tensor::from_bytes(f32({2}), eight).identical(Tensor::zeros(f32({2}))));
  const std::vector<double> three(3);
  EXPECT_EQ(code_of([&] { (void)Tensor::from_numbers<double>(f32({2}), three); }),
            ErrorCode::Shape);
}

TEST(Tensor, SizesAreChecked) {
  EXPECT_EQ(code_of([] { (void)Tensor::zeros(f32({-1})); }), ErrorCode::Shape);
  EXPECT_EQ(code_of([] { (void)Tensor::zeros(f32({Dim::symbol("n")})); }),
            ErrorCode::NeedsStaticDim);
  constexpr std::int64_t Huge = std::int64_t{1} << 62;
  EXPECT_EQ(code_of([] { (void)Tensor::zeros(f32({Huge})); }), ErrorCode::Shape);
  EXPECT_EQ(code_of([] { (void)Tensor::from_bytes(f32({Huge, 4}), {}); }), ErrorCode::Shape);
}

TEST(Tensor, TooMuchMemoryIsReported) {
  if (testing::SpaceIsTaken)
    GTEST_SKIP() << "sanitizers end the program instead of refusing memory";
  constexpr std::int64_t Huge = std::int64_t{1} << 56;
  EXPECT_EQ(code_of([] { (void)Tensor::zeros(f32({Huge})); }), ErrorCode::OutOfMemory);
}

TEST(Tensor, BorrowedElementsOutliveTheirCreator) {
  auto owner = std::make_shared<std::vector<float>>(std::vector<float>{1, 2, 3, 4, 5, 6});
  const std::weak_ptr<std::vector<float>> watch = owner;
  {
    Tensor view;
    {
      const float* first = owner->data();
      const Tensor t = Tensor::borrow(f32({2, 3}), first, {3, 1}, std::move(owner));
      view = t.narrowed(1, 1, 1);
    }
    EXPECT_FALSE(watch.expired());
    EXPECT_EQ(view.numbers<double>(), (std::vector<double>{2, 5}));
  }
  EXPECT_TRUE(watch.expired());
}

TEST(Tensor, BorrowedStridesMayRunBackwards) {
  auto owner = std::make_shared<std::vector<float>>(std::vector<float>{1, 2, 3});
  const float* last = owner->data() + 2;
  const Tensor t = Tensor::borrow(f32({3}), last, {-1}, owner);
  EXPECT_EQ(t.numbers<double>(), (std::vector<double>{3, 2, 1}));
  EXPECT_FALSE(t.is_contiguous());
  EXPECT_EQ(code_of([&] { (void)Tensor::borrow(f32({3}), last, {}, owner); }), ErrorCode::Shape);
}

TEST(Tensor, SharedTensorsCannotBeWritten) {
  Tensor t = counting({2});
  const Tensor alias = t;
  EXPECT_THROW((void)t.mutable_data(), UserError);
  EXPECT_EQ(alias.numel(), 2);
}

// Any byte but 0 is true, and means the same as 1.
TEST(Tensor, OddBoolBytesAreTrue) {
  const Tensor odd = Tensor::from_bytes(boolean({3}), bytes_of({0, 2, 255}));
  const Tensor plain = Tensor::of<bool>({3}, {false, true, true});
  EXPECT_EQ(odd.numbers<std::int64_t>(), (std::vector<std::int64_t>{0, 1, 1}));
  EXPECT_EQ(odd.elements<bool>(), (std::vector<bool>{false, true, true}));
  EXPECT_TRUE(odd.identical(plain));
  EXPECT_EQ(odd.hash(), plain.hash());
  const Tensor all = Tensor::from_bytes(boolean({2}), bytes_of({2, 255}));
  EXPECT_TRUE(all.canonical().is_splat());
  EXPECT_TRUE(all.identical(Tensor::splat(boolean({2}), 1)));
}

TEST(Tensor, NumbersConvertAsCastDoes) {
  const Tensor t = Tensor::of<double>({5}, {300, -300, std::nan(""), 1.9, -1.9});
  const std::vector<double> v = t.numbers<double>();
  EXPECT_EQ(Tensor::from_numbers<double>({DType::I8, {5}}, v).elements<std::int8_t>(),
            (std::vector<std::int8_t>{127, -128, 0, 1, -1}));
  EXPECT_EQ(Tensor::from_numbers<double>({DType::U8, {5}}, v).elements<std::uint8_t>(),
            (std::vector<std::uint8_t>{255, 0, 0, 1, 0}));
  EXPECT_EQ(Tensor::from_numbers<double>(boolean({5}), v).elements<bool>(),
            (std::vector<bool>{true, true, true, true, true}));
  // Integers wrap.
  const std::vector<std::int64_t> big = {257, -1};
  EXPECT_EQ(Tensor::from_numbers<std::int64_t>({DType::U8, {2}}, big).elements<std::uint8_t>(),
            (std::vector<std::uint8_t>{1, 255}));
}

TEST(Tensor, ElementsAndItemsAreChecked) {
  const Tensor t = counting({2});
  EXPECT_EQ(code_of([&] { (void)t.elements<double>(); }), ErrorCode::DType);
  EXPECT_EQ(code_of([&] { (void)t.item(); }), ErrorCode::Shape);
  EXPECT_THROW((void)t.broadcast_to({2, 2}).bytes(), UserError);
}

TEST(Tensor, PrintsItsEndsWhenLong) {
  EXPECT_EQ(counting({3}).to_string(), "f32[3] [0.0, 1.0, 2.0]");
  EXPECT_EQ(counting({20}).to_string(), "f32[20] [0.0, 1.0, 2.0, …, 17.0, 18.0, 19.0]");
  EXPECT_EQ(Tensor::splat(boolean({2}), 1).to_string(), "bool[2] [true, true]");
  EXPECT_EQ(counting({2, 2}).to_string(), "f32[2, 2] [[0.0, 1.0], [2.0, 3.0]]");
  EXPECT_EQ(Tensor::splat(f64(), 2.5).to_string(), "f64[] 2.5");
}

}  // namespace
}  // namespace ricci::type_tensor_test
