// Every file of tests/ir/ but those of errors/ gives the text it says it gives.
#include "support/golden.h"

#include <gtest/gtest.h>

namespace ricci::testing {
namespace {

class Golden : public ::testing::TestWithParam<std::string> {};

TEST_P(Golden, Holds) { check_golden(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Files, Golden, ::testing::ValuesIn(golden_files()),
                         [](const auto& file) { return test_name(file.param); });

TEST(GoldenFiles, AreThere) { EXPECT_GE(golden_files().size(), 25U); }

}  // namespace
}  // namespace ricci::testing
