// Indexing as NumPy has it: arrays against each other, masks, places that are written.
#include <gtest/gtest.h>

#include "ricci/array.h"
#include "ricci/support/error.h"

namespace ricci::index_test {
namespace {

using Numbers = std::vector<double>;

std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

Array cube() { return reshape(arange(24), {2, 3, 4}); }

TEST(ArrayIndexing, ArraysGoTogether) {
  const Array x = reshape(arange(12), {3, 4});
  // A label of every row.
  EXPECT_EQ(x(arange(3), array({1, 0, 3})).to_vector(), (Numbers{1, 4, 11}));
  EXPECT_EQ(x(array({0, 2}), array({-1, -2})).to_vector(), (Numbers{3, 10}));
  EXPECT_EQ(x(array({{0}, {2}}), array({1, 3})).to_vector(), (Numbers{1, 3, 9, 11}));
  // Values of numpy: arange(24).reshape(2, 3, 4)[...]
  const Array c = cube();
  EXPECT_EQ(c(array({0, 1}), slice(), array({1, 2})).shape(), (Dims{2, 3}));
  EXPECT_EQ(c(array({0, 1}), slice(), array({1, 2})).to_vector(), (Numbers{1, 5, 9, 14, 18, 22}));
  EXPECT_EQ(c(slice(), array({0, 2}), array({1, 3})).shape(), (Dims{2, 2}));
  EXPECT_EQ(c(slice(), array({0, 2}), array({1, 3})).to_vector(), (Numbers{1, 11, 13, 23}));
  EXPECT_EQ(c(0, slice(), array({1, 2})).shape(), (Dims{2, 3}));
  EXPECT_EQ(c(0, slice(), array({1, 2})).to_vector(), (Numbers{1, 5, 9, 2, 6, 10}));
  EXPECT_EQ(c(1, array({0, 2})).to_vector(), (Numbers{12, 13, 14, 15, 20, 21, 22, 23}));
  EXPECT_EQ(c(slice(), newaxis, array({0, 1}), array({0, 1})).shape(), (Dims{2, 1, 2}));
}

TEST(ArrayIndexing, CountsFromTheEndAndRefusesWhatIsOutside) {
  const Array x = array({10.0, 20.0, 30.0});
  EXPECT_EQ(x[array({-1, 0})].to_vector(), (Numbers{30, 10}));
  EXPECT_NE(refusal([&] { (void)x[array({3})].eval(); }), "no error");
  const Array m = reshape(arange(12), {3, 4});
  // Inside all of it, but outside of its axis.
  EXPECT_NE(refusal([&] { (void)m(array({0}), array({5})).eval(); }), "no error");
  EXPECT_NE(refusal([&] { (void)m(array({0.0}), 0); }).find("indices are integers"),
            std::string::npos);
}

TEST(ArrayIndexing, Masks) {
  const Array x = array({{1.0, -2.0}, {-3.0, 4.0}});
  EXPECT_EQ(x[x > 0.0].to_vector(), (Numbers{1, 4}));
  EXPECT_EQ(x[array({false, true})].to_vector(), (Numbers{-3, 4}));
  EXPECT_EQ(x(slice(), array({true, false})).to_vector(), (Numbers{1, -3}));
  EXPECT_EQ(x[x > 100.0].shape(), (Dims{0}));
  const std::string traced =
      refusal([&] { (void)jit([](const Array& a) { return sum(a[a > 0.0]); })(x); });
  EXPECT_NE(traced.find("how many are true is not known"), std::string::npos) << traced;
  EXPECT_NE(traced.find("where(mask, x, 0.0)"), std::string::npos) << traced;
  // A mask that is known is an index inside of a trace too.
  const Array known = array({{true, false}, {false, true}});
  EXPECT_EQ(jit([&](const Array& a) { return sum(a[known]); })(x).item(), 5);
  EXPECT_NE(refusal([&] { (void)x[array({true, false, true})]; }).find("a mask"),
            std::string::npos);
}

TEST(ArrayIndexing, PlacesAreWritten) {
  const Array x = zeros({2, 3});
  EXPECT_EQ(x.at(0).set(5.0).to_vector(), (Numbers{5, 5, 5, 0, 0, 0}));
  EXPECT_EQ(x.at(1, slice(1, {})).set(array({7.0, 8.0})).to_vector(), (Numbers{0, 0, 0, 0, 7, 8}));
  EXPECT_EQ(x.at(ellipsis, -1).add(2.0).to_vector(), (Numbers{0, 0, 2, 0, 0, 2}));
  EXPECT_EQ(x.at(slice(), slice({}, {}, 2)).set(1.0).to_vector(), (Numbers{1, 0, 1, 1, 0, 1}));
  EXPECT_EQ(x.at(array({0, 0, 1})).add(1.0).to_vector(), (Numbers{2, 2, 2, 1, 1, 1}));
  EXPECT_EQ(x.at(array({0, 1}), array({2, 0})).set(array({3.0, 4.0})).to_vector(),
            (Numbers{0, 0, 3, 4, 0, 0}));
  EXPECT_EQ((x + 2.0).at(0).multiply(3.0).to_vector(), (Numbers{6, 6, 6, 2, 2, 2}));
  EXPECT_EQ((x + 2.0).at(0, 0).max(5.0).to_vector(), (Numbers{5, 2, 2, 2, 2, 2}));
  EXPECT_EQ((x + 2.0).at(0, 0).min(1.0).to_vector(), (Numbers{1, 2, 2, 2, 2, 2}));
  EXPECT_EQ(x.to_vector(), (Numbers{0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(x.at(0, 1).get().item(), 0);
}

TEST(ArrayIndexing, MasksAreWrittenInTheDTypeOfTheArray) {
  const Array x = array({1, 2, 3});
  const Array mask = array({true, false, true});
  const std::string help = "cast it to the dtype";
  const Array half = cast(Array(0.5), DType::F64);
  EXPECT_NE(refusal([&] { (void)x.at(mask).set(half); }).find(help), std::string::npos);
  EXPECT_NE(refusal([&] { (void)x.at(mask).add(half); }).find(help), std::string::npos);
  EXPECT_NE(refusal([&] { (void)x.at(mask).multiply(half); }).find(help), std::string::npos);
  const Array flags = array({true, true, false});
  EXPECT_NE(refusal([&] { (void)flags.at(mask).set(array(2)); }).find(help), std::string::npos);
  EXPECT_EQ(x.at(mask).set(7).dtype(), DType::I32);
  EXPECT_EQ(x.at(mask).add(2).to_vector(), (Numbers{3, 2, 5}));
}

TEST(ArrayIndexing, NamedFunctionsCountFromTheEndToo) {
  const Array x = array({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}});
  EXPECT_EQ(take(x, array({-1})).to_vector(), (Numbers{4, 5, 6}));
  EXPECT_EQ(take(x, array({-1, 0}), -1).to_vector(), (Numbers{3, 1, 6, 4}));
  EXPECT_EQ(take(x, -1).to_vector(), (Numbers{4, 5, 6}));
  EXPECT_EQ(index_select(x, 1, array({-2})).to_vector(), (Numbers{2, 5}));
  EXPECT_EQ(embedding(array({-1}), x).to_vector(), (Numbers{4, 5, 6}));
  EXPECT_EQ(take_along_axis(x, array({{-1}, {0}})).to_vector(), (Numbers{3, 4}));
  EXPECT_NE(refusal([&] { (void)take(x, array({2})).eval(); }), "no error");
  EXPECT_NE(refusal([&] { (void)take(x, array({-3})).eval(); }), "no error");
  EXPECT_NE(refusal([&] { (void)take(x, array({0.0})); }).find("indices are integers"),
            std::string::npos);
}

TEST(ArrayIndexing, WritingIsDifferentiatedBatchedAndCompiled) {
  const auto f = [](const Array& x, const Array& v) { return sum(square(x.at(1).set(v))); };
  const Array x = array({1.0, 2.0, 3.0});
  const auto [dx, dv] = grad<0, 1>(f)(x, array(5.0));
  EXPECT_EQ(dx.to_vector(), (Numbers{2, 0, 6}));
  EXPECT_EQ(dv.item(), 10);
  const auto clear = jit([](const Array& a) { return a.at(a < 0.0).set(0.0); });
  EXPECT_EQ(clear(array({-1.0, 2.0})).to_vector(), (Numbers{0, 2}));
  EXPECT_EQ(vmap([](const Array& a) { return a.at(0).add(1.0); })(zeros({2, 2})).to_vector(),
            (Numbers{1, 0, 1, 0}));
  EXPECT_NE(refusal([&] { (void)x.at(0).set(array({1, 2})[0]); }).find("cast it to the dtype"),
            std::string::npos);
}

}  // namespace
}  // namespace ricci::index_test
