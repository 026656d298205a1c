// What holds for any text: it is refused with a message, or its graphs are well formed, print to
// text that reads back to them, and stay well formed under the cheap passes. The fuzz harnesses and
// the tests with seeded random text share this.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "ricci/compiler/rewrite/canonicalize.h"
#include "ricci/compiler/rewrite/cleanup.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"

namespace ricci::testing {

inline void require_law(bool holds, const std::string& law) {
  if (!holds) throw std::logic_error(law);
}

inline void require_survives_printing(const std::vector<Graph>& graphs, const std::string& when) {
  const std::string text = print_file(graphs);
  const std::vector<Graph> again = parse(text);
  require_law(again == graphs, "reads back to other graphs " + when);
  require_law(print_file(again) == text, "prints another text the second time " + when);
}

/// Whether the text was accepted. Any exception that leaves this is a fault.
inline bool check_text_laws(std::string_view text, const Limits& limits = {}) {
  std::vector<Graph> graphs;
  try {
    graphs = parse(text, {.limits = limits});
  } catch (const UserError& e) {
    require_law(!std::string_view(e.what()).empty(), "is refused without a message");
    require_law(std::string_view(e.what()).size() < 10'000, "is refused at great length");
    return false;
  }
  for (const Graph& graph : graphs) verify(graph);
  require_survives_printing(graphs, "at first");
  for (Graph& graph : graphs) {
    graph = dead_code_elimination(graph).graph;
    graph = common_subexpression_elimination(graph).graph;
    graph = constant_folding(graph).graph;
    graph = canonicalize(graph).graph;
    verify(graph);
  }
  require_survives_printing(graphs, "after passes");
  return true;
}

}  // namespace ricci::testing
