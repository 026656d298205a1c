#include <limits>

#include <gtest/gtest.h>

#include "ricci/support/checked.h"

namespace ricci::support_checked_test {
namespace {

constexpr std::int64_t Most = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t Least = std::numeric_limits<std::int64_t>::min();

TEST(Checked, GivesWhatFits) {
  EXPECT_EQ(checked_add(2, 3), 5);
  EXPECT_EQ(checked_add(Most, Least), -1);
  EXPECT_EQ(checked_mul(-4, 5), -20);
  EXPECT_EQ(checked_mul(Most, 1), Most);
  EXPECT_EQ(checked_mul(Least, 1), Least);
  EXPECT_EQ(checked_mul(Most, 0), 0);
}

TEST(Checked, ReportsWhatDoesNot) {
  EXPECT_EQ(try_add(Most, 1), std::nullopt);
  EXPECT_EQ(try_add(Least, -1), std::nullopt);
  EXPECT_EQ(try_mul(Least, -1), std::nullopt);
  EXPECT_EQ(try_mul(std::int64_t{1} << 32, std::int64_t{1} << 31), std::nullopt);
  for (const auto& f : {+[] { (void)checked_add(Most, 1); }, +[] { (void)checked_mul(Most, 2); }}) {
    try {
      f();
      ADD_FAILURE() << "wrapped silently";
    } catch (const UserError& e) {
      EXPECT_EQ(e.code(), ErrorCode::Shape);
    }
  }
}

}  // namespace
}  // namespace ricci::support_checked_test
