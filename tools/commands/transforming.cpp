#include "commands/transforming.h"

#include <array>
#include <cstdio>

#include <fmt/format.h>

#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"

namespace ricci::tool {

void TransformOptions::declare(CLI::App& command) {
  source.declare_one(command);
  command.add_flag("--locations", locations, "say what each node came from");
  command.add_option("-o,--out", out, "where to write (default: standard output)")
      ->type_name("FILE");
}

void TransformOptions::declare_wrt(CLI::App& command, const char* meaning) {
  command.add_option("--wrt", wrt, meaning)
      ->required()
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("A,B");
}

void write_transformed(const TransformOptions& options,
                       const std::function<Transformed(const Graph&)>& transform) {
  const Graph graph = options.source.load();
  verify(graph);
  const Transformed result = transform(graph);
  write_text(options.out, print_file(std::array{result.graph}, {.locations = options.locations}));
  for (const auto& [usual, chosen] : result.names) {
    if (usual == chosen) continue;
    const std::string note = fmt::format("note: '{}' was taken; it is '{}' here\n", usual, chosen);
    std::fputs(note.c_str(), stderr);
  }
}

}  // namespace ricci::tool
