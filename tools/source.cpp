#include "source.h"

#include <cstdio>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "ricci/io/file.h"
#include "ricci/ir/text.h"
#include "ricci/support/text.h"

namespace ricci::tool {

void Source::declare(CLI::App& command) {
  command.add_option("file", file, "text file with graphs; - is standard input")
      ->required()
      ->type_name("FILE");
  command.add_option("--graph", graph, "which graph of the file (default: the first)")
      ->type_name("NAME");
}

std::vector<Graph> Source::load_all() const {
  const bool standard_input = file == "-";
  const std::vector<std::byte> bytes = io::read_file(standard_input ? "/dev/stdin" : file);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::string shown = standard_input ? "<stdin>" : file;
  std::vector<Graph> graphs = parse(text, {.file = shown});
  if (graphs.empty()) {
    throw UserError(ErrorCode::Parse, fmt::format("{} holds no graph", shown),
                    "a graph is written: graph @name { … }");
  }
  return graphs;
}

Graph Source::load() const { return std::move(load_chosen().front()); }

std::vector<Graph> Source::load_chosen() const {
  std::vector<Graph> graphs = load_all();
  if (graph.empty()) return graphs;
  std::vector<std::string> names;
  for (Graph& g : graphs) {
    if (g.name() == graph) return {std::move(g)};
    names.push_back(g.name());
  }
  throw UserError(ErrorCode::Name, fmt::format("{} has no graph named {}", file, quote(graph)),
                  fmt::format("its graphs are {}", join(names, ", ")));
}

void write_text(const std::string& path, std::string_view text) {
  if (path != "-") {
    io::write_file(path, text);
    return;
  }
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) {
    throw UserError(ErrorCode::File, "cannot write to standard output");
  }
}

}  // namespace ricci::tool
