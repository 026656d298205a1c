// What the RUN line of a golden file may do to a graph: the commands of the tool that turn one
// graph into another, with the same options.
#pragma once

#include <string>
#include <vector>

#include "ricci/ir/graph.h"

namespace ricci::testing {

/// A command and its words: `grad --wrt x,w --zero-missing`.
struct Stage {
  std::string verb;
  std::vector<std::string> args;

  [[nodiscard]] bool flag(std::string_view name) const;
  /// The word behind an option; std::runtime_error when there is none.
  [[nodiscard]] std::string option(std::string_view name) const;
  /// The same split at commas; nothing when the option is not given.
  [[nodiscard]] std::vector<std::string> list(std::string_view name) const;
};

/// `a --x | b --y` as stages.
[[nodiscard]] std::vector<Stage> parse_stages(const std::vector<std::string>& words);
/// Is it `compile`, which ends a line: what comes out is a program for a device?
[[nodiscard]] bool is_compile(const Stage& stage);
/// The program for the CPU as text; options are --no-fuse and --donate INPUT=OUTPUT,….
[[nodiscard]] std::string compiled_text(const Stage& stage, const Graph& graph);
/// Applies a stage; std::runtime_error when there is no such command.
[[nodiscard]] Graph apply(const Stage& stage, const Graph& graph);

}  // namespace ricci::testing
