#include <limits>

#include <gtest/gtest.h>

#include "support/json.h"

namespace ricci::support_json_test {
namespace {

TEST(Json, StringsAreQuoted) {
  EXPECT_EQ(quote_json("a/b é"), "\"a/b é\"");
  EXPECT_EQ(quote_json("a\"b\\c\n"), R"("a\"b\\c\u000a")");
  EXPECT_EQ(quote_json("a\xff\xfe"
                       "b"),
            R"("a\ufffd\ufffdb")");
  EXPECT_EQ(quote_json(""), "\"\"");
}

TEST(Json, NumbersReadBack) {
  EXPECT_EQ(number_json(0.1), "0.1");
  EXPECT_EQ(number_json(1e300), "1e+300");
  EXPECT_EQ(number_json(-3), "-3");
  EXPECT_EQ(number_json(std::numeric_limits<double>::infinity()), "null");
  EXPECT_EQ(number_json(std::numeric_limits<double>::quiet_NaN()), "null");
}

}  // namespace
}  // namespace ricci::support_json_test
