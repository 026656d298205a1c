// ricci check: is every graph of a file well formed?
#include <memory>

#include <fmt/format.h>

#include "ricci/ir/verify.h"
#include "ricci/rewrite/pass.h"

#include "commands/commands.h"
#include "source.h"

namespace ricci::tool {
namespace {

std::string counted(std::size_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

void check(const Source& source) {
  std::vector<Diagnostic> faults;
  std::string report;
  for (const Graph& graph : source.load_chosen()) {
    const std::vector<Diagnostic> found = find_faults(graph);
    faults.insert(faults.end(), found.begin(), found.end());
    report += fmt::format(
        "ok: @{}: {}, {}, {}, {}\n", graph.name(), counted(count_nodes(graph), "node"),
        counted(graph.inputs().size(), "input"), counted(graph.params().size(), "param"),
        counted(graph.outputs().size(), "output"));
  }
  if (!faults.empty()) throw UserError(std::move(faults));
  write_text("-", report);
}

}  // namespace

void add_check(CLI::App& app, Action& action) {
  auto source = std::make_shared<Source>();
  CLI::App* command = app.add_subcommand("check", "verifies the graphs of a file");
  source->declare_all(*command);
  command->callback([source, &action] { action = [source] { check(*source); }; });
}

}  // namespace ricci::tool
