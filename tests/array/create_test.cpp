// Numbers and lists of them keep every digit.
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

#include "ricci/array.h"
#include "ricci/support/error.h"

namespace ricci::create_test {
namespace {

TEST(ArrayLists, WholeNumbersAreExact) {
  const std::int64_t large = (std::int64_t{1} << 53) + 1;
  const Array x = array({large, -large, std::int64_t{3}});
  EXPECT_EQ(x.dtype(), DType::I64);
  EXPECT_EQ(x.to_vector<std::int64_t>(), (std::vector<std::int64_t>{large, -large, 3}));
  EXPECT_EQ(array({std::numeric_limits<std::int32_t>::max(), 1}).dtype(), DType::I32);
  EXPECT_EQ(array({std::int64_t{1} << 31, std::int64_t{1}}).dtype(), DType::I64);
  EXPECT_EQ(array({large, std::int64_t{1}}, {.dtype = DType::I64}).to_vector<std::int64_t>()[0],
            large);
  // What does not fit is refused, not wrapped.
  EXPECT_THROW((void)array({300, 1}, {.dtype = DType::U8}), UserError);
  EXPECT_THROW((void)array({std::int64_t{1} << 40, std::int64_t{1}}, {.dtype = DType::I32}),
               UserError);
  EXPECT_THROW((void)array({std::uint64_t{1} << 63, std::uint64_t{1}}), UserError);
  EXPECT_EQ(array({1.5, 2.0}).dtype(), DType::F32);
  EXPECT_EQ(array({1.7, 2.0}, {.dtype = DType::I32}).to_vector()[0], 1);
  EXPECT_EQ(array({{1, 2}, {3, 4}}, {.dtype = DType::F64}).dtype(), DType::F64);
}

TEST(ArrayLists, LargeNumbersPrintAsTheyAre) {
  const std::int64_t large = (std::int64_t{1} << 53) + 1;
  EXPECT_EQ(array({large, std::int64_t{1}}).str(), "[9007199254740993                1]");
  EXPECT_EQ(Array(large).str(), "9007199254740993");
  EXPECT_EQ(formatted("{}", array({large})), "[9007199254740993]");
  // Of long ones only the ends are shown.
  const std::string ends = full({600, 2}, Array(large), {.dtype = DType::I64}).str();
  EXPECT_NE(ends.find("[9007199254740993 9007199254740993]"), std::string::npos) << ends;
}

TEST(ArrayNumbers, WithoutASignThatAreTooLargeAreRefused) {
  EXPECT_THROW((void)Array(std::numeric_limits<std::uint64_t>::max()), UserError);
  EXPECT_EQ(Array(std::uint64_t{7}).item(), 7);
  EXPECT_THROW((void)(array({1, 2}) + std::numeric_limits<std::uint64_t>::max()), UserError);
}

}  // namespace
}  // namespace ricci::create_test
