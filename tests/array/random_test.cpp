// Random numbers at the edges of what they take.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "ricci/array.h"
#include "ricci/support/error.h"

namespace ricci::random_test {
namespace {

using Numbers = std::vector<double>;

TEST(ArrayDropout, OfEverythingIsZeroWithAZeroSlope) {
  const Array x = array({1.0, 2.0, 3.0});
  EXPECT_EQ(dropout(Key(1), x, 1.0).to_vector(), (Numbers{0, 0, 0}));
  EXPECT_EQ(grad([](const Array& v) { return sum(dropout(Key(1), v, 1.0)); })(x).to_vector(),
            (Numbers{0, 0, 0}));
  EXPECT_EQ(dropout(Key(1), x, 0.0).to_vector(), (Numbers{1, 2, 3}));
}

TEST(ArrayDropout, WantsAProbability) {
  const Array x = array({1.0, 2.0});
  EXPECT_THROW((void)dropout(Key(1), x, -0.1), UserError);
  EXPECT_THROW((void)dropout(Key(1), x, 1.5), UserError);
  EXPECT_THROW((void)dropout(x, std::nan("")), UserError);
  EXPECT_THROW((void)bernoulli(Key(1), 2.0, {3}), UserError);
}

TEST(ArrayRandint, WantsARangeThatItsNumbersHold) {
  EXPECT_THROW((void)randint(Key(1), {4}, 3, 3), UserError);
  EXPECT_THROW((void)randint(Key(1), {4}, 5, 3), UserError);
  EXPECT_THROW((void)randint(Key(1), {4}, 0, std::int64_t{1} << 40), UserError);
  EXPECT_THROW((void)randint(Key(1), {4}, std::numeric_limits<std::int64_t>::min(),
                             std::numeric_limits<std::int64_t>::max()),
               UserError);
  const std::int64_t most = std::int64_t{1} << 31;
  for (const double v : randint(Key(1), {64}, -most, most).to_vector()) {
    EXPECT_GE(v, -2147483648.0);
    EXPECT_LE(v, 2147483647.0);
  }
  EXPECT_EQ(randint(Key(1), {3}, most - 1, most).to_vector()[0], 2147483647.0);
}

TEST(ArrayLoops, CountersThatNoI32HoldsAreI64) {
  const std::int64_t far = std::int64_t{1} << 40;
  const auto last = [](const Array& i, const Array&) { return cast(i, DType::F64); };
  const Array none = zeros({}, {.dtype = DType::F64});
  EXPECT_EQ(fori_loop(far, far + 3, last, none).item(), static_cast<double>(far + 2));
  EXPECT_EQ(fori_loop(-3, 0, last, none).item(), -1);
  EXPECT_EQ(fori_loop(2147483645, 2147483648, last, none).item(), 2147483647.0);
  EXPECT_THROW((void)fori_loop(std::numeric_limits<std::int64_t>::min(),
                               std::numeric_limits<std::int64_t>::max(), last, none),
               UserError);
}

}  // namespace
}  // namespace ricci::random_test
