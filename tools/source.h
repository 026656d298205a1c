// Where commands read graphs from and write text to. `-` is standard input or output.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ricci/ir/graph.h"

namespace CLI {
class App;
}

namespace ricci::tool {

/// Which graph of which file a command works on.
struct Source {
  std::string file;
  std::string graph;  ///< empty: the first

  /// Declares the arguments FILE and --graph.
  void declare(CLI::App& command);
  /// Every graph of the file.
  [[nodiscard]] std::vector<Graph> load_all() const;
  /// The chosen graph; UserError(name) when the file has none of that name.
  [[nodiscard]] Graph load() const;
  /// The chosen graph when --graph is given, otherwise all.
  [[nodiscard]] std::vector<Graph> load_chosen() const;
};

/// Writes a file atomically, or standard output for `-`.
void write_text(const std::string& path, std::string_view text);

}  // namespace ricci::tool
