// Every file of tests/ir/errors/ is refused with the message it says.
#include <gtest/gtest.h>

#include "support/golden.h"

namespace ricci::testing {
namespace {

class Diagnostics : public ::testing::TestWithParam<std::string> {};

TEST_P(Diagnostics, AreAsWritten) { check_golden(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Files, Diagnostics, ::testing::ValuesIn(error_files()),
                         [](const auto& file) { return test_name(file.param); });

TEST(DiagnosticsFiles, AreThere) { EXPECT_GE(error_files().size(), 25U); }

}  // namespace
}  // namespace ricci::testing
