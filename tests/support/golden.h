// Golden files: a command, an input and the whole expected output in one `.ric` file.
//
//   // RUN: opt --passes canonicalize
//   graph @g { … }
//   // EXPECT:
//   graph @g { … }
//
// A RUN line holds commands of the tool that turn a graph into another, `|` between them; `compile`
// as the last one gives the program for a device. With the word `error` in front, the message of
// the error they meet is what is compared. Everything before the EXPECT line is the input, with its
// own line numbers; everything after it is compared exactly. RICCI_UPDATE_GOLDEN=1 rewrites that
// part instead.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace ricci::testing {

/// All `.ric` files below tests/ir/, those of errors/ apart, as paths relative to it.
[[nodiscard]] std::vector<std::string> golden_files();
[[nodiscard]] std::vector<std::string> error_files();

/// A gtest name for a file: letters, digits and underscores.
[[nodiscard]] std::string test_name(const std::string& file);

/// Runs a file's command and compares; reports through gtest.
void check_golden(const std::string& file);

}  // namespace ricci::testing
