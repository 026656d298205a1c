#include <limits>

#include <gtest/gtest.h>

#include "ricci/support/error.h"
#include "ricci/type/dim.h"
#include "ricci/type/type.h"

namespace ricci::type_dim_test {
namespace {

const std::int64_t Most = std::numeric_limits<std::int64_t>::max();
const std::int64_t Least = std::numeric_limits<std::int64_t>::min();

Dim n() { return Dim::symbol("n"); }
Dim m() { return Dim::symbol("m"); }

template <class F>
ErrorCode code_of(F&& f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.code();
  }
  return ErrorCode::Internal;
}

TEST(Dim, EqualPolynomialsAreEqual) {
  EXPECT_EQ(n() * m(), m() * n());
  EXPECT_EQ((n() + 1) * (n() - 1), n() * n() - 1);
  EXPECT_EQ(n() + n(), 2 * n());
  EXPECT_EQ((n() + m()) * (n() + m()), n() * n() + 2 * n() * m() + m() * m());
  EXPECT_EQ((n() * m()).hash(), (m() * n()).hash());
  EXPECT_NE(n(), m());
  EXPECT_NE(n(), n() + 1);
}

TEST(Dim, CancelledSymbolsLeaveANumber) {
  const Dim d = n() + 3 - n();
  EXPECT_TRUE(d.is_static());
  EXPECT_EQ(d.value(), 3);
  EXPECT_EQ(d, Dim(3));
  EXPECT_TRUE((n() * 0).is(0));
}

TEST(Dim, PrintsHigherDegreesFirst) {
  EXPECT_EQ(Dim(7).to_string(), "7");
  EXPECT_EQ(Dim(-7).to_string(), "-7");
  EXPECT_EQ(Dim(0).to_string(), "0");
  EXPECT_EQ((n() - 3).to_string(), "n - 3");
  EXPECT_EQ((3 - n()).to_string(), "-n + 3");
  EXPECT_EQ((1 + m() + n() * m() * 2).to_string(), "2*m*n + m + 1");
  EXPECT_EQ((n() * n()).to_string(), "n*n");
  EXPECT_EQ(Dim(Least).to_string(), "-9223372036854775808");
}

TEST(Dim, KnowsABareSymbol) {
  EXPECT_EQ(n().as_symbol(), "n");
  EXPECT_EQ((n() * 2).as_symbol(), std::nullopt);
  EXPECT_EQ((n() + 1).as_symbol(), std::nullopt);
  EXPECT_EQ((n() * m()).as_symbol(), std::nullopt);
  EXPECT_EQ(Dim(4).as_symbol(), std::nullopt);
  std::set<std::string> symbols;
  (n() * m() + 1).collect_symbols(symbols);
  EXPECT_EQ(symbols, (std::set<std::string>{"m", "n"}));
}

TEST(Dim, DividesWhenItIsExact) {
  EXPECT_EQ(Dim::divide(12, 4), Dim(3));
  EXPECT_EQ(Dim::divide(12, 5), std::nullopt);
  EXPECT_EQ(Dim::divide(12, 0), std::nullopt);
  EXPECT_EQ(Dim::divide(0, 5), Dim(0));
  EXPECT_EQ(Dim::divide(6 * n() + 4, 2), 3 * n() + 2);
  EXPECT_EQ(Dim::divide(6 * n() + 3, 2), std::nullopt);
  EXPECT_EQ(Dim::divide(n() * m(), n()), m());
  EXPECT_EQ(Dim::divide(n(), n()), Dim(1));
  EXPECT_EQ(Dim::divide(n() + 1, n() + 1), Dim(1));
  EXPECT_EQ(Dim::divide(n() * n() * m(), n() * n()), m());
  EXPECT_EQ(Dim::divide(n() * m() + n(), n()), m() + 1);
  EXPECT_EQ(Dim::divide(n() * m(), n() * n()), std::nullopt);
  EXPECT_EQ(Dim::divide(n() + 1, n()), std::nullopt);
  EXPECT_EQ(Dim::divide(4 * n() * m(), 2 * m()), 2 * n());
  EXPECT_EQ(Dim::divide(-6, -1), Dim(6));
}

TEST(Dim, DividingTheLeastNumberByMinusOneIsAnError) {
  EXPECT_EQ(code_of([] { (void)Dim::divide(Least, -1); }), ErrorCode::Shape);
  EXPECT_EQ(code_of([] { (void)Dim::divide(n() * Least, n() * -1); }), ErrorCode::Shape);
}

TEST(Dim, BindsSomeOrAllSymbols) {
  const Dim d = n() * m() - n() + 2;
  EXPECT_EQ(d.bind({{"n", 3}}), 3 * m() - 1);
  EXPECT_EQ(d.bind({{"n", 3}, {"m", 5}}), Dim(14));
  EXPECT_EQ(d.bind({}), d);
  EXPECT_EQ(d.bind({{"other", 1}}), d);
  EXPECT_EQ(Dim(4).bind({{"n", 1}}), Dim(4));
}

TEST(Dim, UnknownSizesAndBadNamesAreErrors) {
  EXPECT_EQ(code_of([] { (void)n().value(); }), ErrorCode::NeedsStaticDim);
  EXPECT_EQ(n().try_value(), std::nullopt);
  EXPECT_EQ(code_of([] { (void)Dim::symbol("2n"); }), ErrorCode::Name);
  EXPECT_EQ(code_of([] { (void)Dim::symbol(""); }), ErrorCode::Name);
  EXPECT_EQ(code_of([] { (void)Dim::symbol("a b"); }), ErrorCode::Name);
}

TEST(Dim, OverflowIsAnError) {
  EXPECT_EQ(code_of([] { (void)(Dim(Most) + 1); }), ErrorCode::Shape);
  EXPECT_EQ(code_of([] { (void)(Dim(Most) * 2); }), ErrorCode::Shape);
  EXPECT_EQ(code_of([] { (void)(n() * Most * 2); }), ErrorCode::Shape);
  EXPECT_EQ(code_of([] { (void)(n() * Most + n()); }), ErrorCode::Shape);
  EXPECT_EQ(code_of([] { (void)(n() * n()).bind({{"n", std::int64_t{1} << 40}}); }),
            ErrorCode::Shape);
}

TEST(Dim, GrowthIsBounded) {
  EXPECT_EQ(code_of([] {
              Dim d(1);
              for (int i = 0; i < 12; ++i) d = d * (Dim::symbol("s" + std::to_string(i)) + 1);
            }),
            ErrorCode::Shape);
}

TEST(Broadcast, AlignsFromTheRight) {
  EXPECT_EQ(broadcast(Dims{2, 1, 4}, Dims{3, 1}), (Dims{2, 3, 4}));
  EXPECT_EQ(broadcast(Dims{}, Dims{5}), (Dims{5}));
  EXPECT_EQ(broadcast(Dims{}, Dims{}), Dims{});
  EXPECT_EQ(broadcast(Dims{0}, Dims{1}), (Dims{0}));
  EXPECT_EQ(broadcast(Dims{0}, Dims{2}), std::nullopt);
  EXPECT_EQ(broadcast(Dims{2}, Dims{3}), std::nullopt);
}

TEST(Broadcast, ASymbolAgreesWithItselfAndWithOne) {
  EXPECT_EQ(broadcast(Dims{n(), 1}, Dims{m()}), (Dims{n(), m()}));
  EXPECT_EQ(broadcast(Dims{n()}, Dims{n()}), (Dims{n()}));
  EXPECT_EQ(broadcast(Dims{n() * m()}, Dims{m() * n()}), (Dims{n() * m()}));
  EXPECT_EQ(broadcast(Dims{n()}, Dims{m()}), std::nullopt);
  EXPECT_EQ(broadcast(Dims{n()}, Dims{4}), std::nullopt);
  EXPECT_EQ(broadcast(Dims{n()}, Dims{n() + 1}), std::nullopt);
}

TEST(Type, CountsElements) {
  EXPECT_EQ(f32({2, 3}).numel(), 6);
  EXPECT_EQ(f32().numel(), 1);
  EXPECT_EQ(f32({n()}).numel(), std::nullopt);
  EXPECT_EQ(f32({n(), 2}).bind({{"n", 4}}).numel(), 8);
  EXPECT_EQ(f32({Most, Most, 0}).numel(), 0);
  EXPECT_EQ(code_of([] { (void)f32({Most, Most}).numel(); }), ErrorCode::Shape);
  EXPECT_EQ(f32({n(), 2}).to_string(), "f32[n, 2]");
  EXPECT_EQ(f32().to_string(), "f32[]");
}

TEST(Type, NormalizesAxes) {
  EXPECT_EQ(normalized_axis(-1, 3), 2);
  EXPECT_EQ(normalized_axis(0, 3), 0);
  EXPECT_EQ(normalized_axis(3, 3), std::nullopt);
  EXPECT_EQ(normalized_axis(-4, 3), std::nullopt);
  EXPECT_EQ(normalized_axis(0, 0), std::nullopt);
}

}  // namespace
}  // namespace ricci::type_dim_test
