// einsum as NumPy has it.
#include <gtest/gtest.h>

#include "ricci/array.h"
#include "ricci/support/error.h"

namespace ricci::products_test {
namespace {

using Numbers = std::vector<double>;

TEST(ArrayEinsum, OperandsMeetInOneDType) {
  // Bools, then a dtype that only the last operand has.
  const Array mask = array({true, false});
  const Array small = array({1, 2}, {.dtype = DType::I8});
  const Array x = array({1.5, 2.5});
  const Array y = einsum("i,i,i->i", {mask, small, x});
  EXPECT_EQ(y.dtype(), DType::F32);
  EXPECT_EQ(y.to_vector(), (Numbers{1.5, 0}));
  EXPECT_EQ(einsum("i,i,i->", {mask, small, x}).item(), 1.5);
}

TEST(ArrayEinsum, RepeatedLettersAreDiagonals) {
  const Array a = array({{1.0, 2.0}, {3.0, 4.0}});
  EXPECT_EQ(einsum("ii->i", {a}).to_vector(), (Numbers{1, 4}));
  EXPECT_EQ(einsum("ii", {a}).item(), 5);
  EXPECT_EQ(einsum("ii,ij->j", {a, a}).to_vector(), (Numbers{13, 18}));
  const Array cube = reshape(arange(8, {.dtype = DType::F32}), {2, 2, 2});
  EXPECT_EQ(einsum("iji->j", {cube}).to_vector(), (Numbers{5, 9}));
  EXPECT_EQ(einsum("iii->i", {cube}).to_vector(), (Numbers{0, 7}));
  EXPECT_EQ(grad([](const Array& x) { return einsum("ii", {x}); })(a).to_vector(),
            (Numbers{1, 0, 0, 1}));
  EXPECT_THROW((void)einsum("ii->i", {ones({2, 3})}), UserError);
}

TEST(ArrayEinsum, EllipsesAreTheAxesNobodyNames) {
  const Array x = reshape(arange(12, {.dtype = DType::F32}), {2, 2, 3});
  const Array w = array({{1.0, 0.0}, {0.0, 1.0}, {1.0, 1.0}});
  EXPECT_TRUE(array_equal(einsum("...i,ij->...j", {x, w}), matmul(x, w)));
  EXPECT_TRUE(array_equal(einsum("...i->...", {x}), sum(x, -1)));
  EXPECT_TRUE(array_equal(einsum("i...", {x}), einsum("i...->...i", {x})));
  // Fewer axes on one side are the last ones, sizes of 1 are spread.
  EXPECT_TRUE(array_equal(einsum("...i,...i->...", {x, ones({2, 3})}), sum(x, -1)));
  EXPECT_TRUE(array_equal(einsum("...i,...i->...i", {x, ones({2, 1, 3})}), x));
  EXPECT_EQ(einsum("...,...->...", {array({1.0, 2.0}), Array(3.0)}).to_vector(), (Numbers{3, 6}));
  EXPECT_THROW((void)einsum("..i->i", {ones({2})}), UserError);
  EXPECT_THROW((void)einsum("...i,...i->i", {ones({2, 3}), ones({4, 3})}), UserError);
  EXPECT_THROW((void)einsum("i...->i", {ones({2, 3})}), UserError);
  EXPECT_THROW((void)einsum("ij->ii", {ones({2, 3})}), UserError);
}

}  // namespace
}  // namespace ricci::products_test
