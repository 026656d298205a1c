// The text form. Printing then parsing is the identity, byte for byte and node for node; the
// grammar is in docs/LANGUAGE.md. Everything here is derived from the op table: no op is named.
//
//   std::string text = print(graph);
//   Graph again = parse_graph(text, {.file = "net.ric"});
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ricci/ir/graph.h"
#include "ricci/support/limits.h"

namespace ricci {

struct PrintOptions {
  bool locations = false;  ///< append `// file:line (label)` to every node
};

[[nodiscard]] std::string print(const Graph& graph, const PrintOptions& options = {});
/// Several graphs, with the format's version line first.
[[nodiscard]] std::string print_file(std::span<const Graph> graphs,
                                     const PrintOptions& options = {});
/// The names values have in the printed form: one list per node, one entry per result, without `%`.
[[nodiscard]] std::vector<std::vector<std::string>> value_names(const Graph& graph);

struct ParseOptions {
  std::string file = "<text>";         ///< shown in messages
  const Registry* registry = nullptr;  ///< custom ops; the default registry when absent
  Limits limits = {};                  ///< what is larger is refused
  /// How many faults are looked for before the text is given up. Statements that use a value which
  /// could not be read are left out, and say nothing.
  std::size_t most_faults = 1;
};

/// All graphs of a file. UserError(parse) with line and column when the text is malformed; its
/// diagnostics are all faults found.
[[nodiscard]] std::vector<Graph> parse(std::string_view text, const ParseOptions& options = {});
/// The first graph of a file; the others are parsed too.
[[nodiscard]] Graph parse_graph(std::string_view text, const ParseOptions& options = {});

}  // namespace ricci
