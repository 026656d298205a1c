// Where commands read graphs from and write text to. `-` is standard input or output.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ricci/ir/graph.h"
#include "ricci/support/limits.h"

namespace CLI {
class App;
}

namespace ricci::tool {

/// Which graph of which file a command works on.
struct Source {
  std::string file;
  std::string graph;  ///< empty: the first, or all
  Limits limits;      ///< of the text

  /// Declares the arguments FILE, --graph and --limit of a command that works on one graph, or on
  /// every graph of a file.
  void declare_one(CLI::App& command);
  void declare_all(CLI::App& command);
  /// Every graph of the file. UserError(parse) with up to `most_faults` faults.
  [[nodiscard]] std::vector<Graph> load_all(std::size_t most_faults = 1) const;
  /// The chosen graph; UserError(name) when the file has none of that name.
  [[nodiscard]] Graph load() const;
  /// The chosen graph when --graph is given, otherwise all.
  [[nodiscard]] std::vector<Graph> load_chosen(std::size_t most_faults = 1) const;

 private:
  void declare(CLI::App& command, const char* graph_help);
};

struct TextFile {
  std::string path;
  std::string text;
};
/// Writes files, or standard output for `-`. None of them appears unless all could be written.
void write_texts(std::span<const TextFile> files);
/// The same for one.
void write_text(const std::string& path, std::string_view text);

}  // namespace ricci::tool
