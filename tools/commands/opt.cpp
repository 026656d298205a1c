// ricci opt: runs passes over a graph and prints what is left of it.
#include <cstdio>
#include <memory>

#include <fmt/format.h>

#include "ricci/compiler/rewrite/pass.h"
#include "ricci/compiler/rewrite/pattern_report.h"
#include "ricci/ir/text.h"
#include "ricci/model/module.h"

#include "commands/commands.h"
#include "source.h"

namespace ricci::tool {
namespace {

struct OptOptions {
  Source source;
  std::string passes;
  std::string lower;
  bool fusion_report = false;
  bool print_after_all = false;
  bool time_passes = false;
  bool locations = false;
  std::string out = "-";
};

std::string timings(const PipelineResult& result) {
  std::string out;
  for (const PassReport& r : result.reports) {
    out += fmt::format("// {:<36} {:>8.3f} ms  {} -> {} nodes{}\n", r.name, r.seconds * 1e3,
                       r.nodes_before, r.nodes_after, r.changed ? "" : "  (no change)");
  }
  return out;
}

// Blocks written in ops under the policy that is named; the graph as it is where none is.
Graph lowered(const Graph& graph, const std::string& policy) {
  if (policy.empty()) return graph;
  for (const FusionPolicy p :
       {FusionPolicy::Direct, FusionPolicy::Fusable, FusionPolicy::ForAutodiff}) {
    if (name(p) == policy) return GraphModule::from_graph(graph).lower(p).module.graph();
  }
  throw UserError(ErrorCode::Name, fmt::format("there is no policy '{}'", policy),
                  "the policies are: direct, fusable, for_autodiff");
}

void opt(const OptOptions& options) {
  const PrintOptions print_options{.locations = options.locations};
  std::string text;
  PassManagerOptions manager_options;
  if (options.print_after_all) {
    manager_options.after = [&](const Pass& pass, const PassResult& result) {
      text += fmt::format("// after {}\n{}\n", pass.name, print(result.graph, print_options));
    };
  }
  const PassManager manager(
      options.passes.empty() ? std::vector<Pass>() : parse_pipeline(options.passes),
      manager_options);
  std::vector<Graph> graphs;
  std::string times;
  for (const Graph& given : options.source.load_chosen()) {
    const Graph graph = lowered(given, options.lower);
    PipelineResult result = manager.run(graph);
    if (options.time_passes) times += timings(result);
    if (options.fusion_report) times += report_patterns(graph, result.graph).to_string();
    graphs.push_back(std::move(result.graph));
  }
  // What was noted on the way goes beside the result, not into it.
  std::fputs((text + times).c_str(), stderr);
  write_text(options.out, print_file(graphs, print_options));
}

std::string pass_list() {
  std::string out = "Passes:\n";
  for (const Pass& pass : all_passes()) out += fmt::format("  {:<36} {}\n", pass.name, pass.help);
  return out;
}

}  // namespace

void add_opt(CLI::App& app, Action& action) {
  auto options = std::make_shared<OptOptions>();
  CLI::App* command = app.add_subcommand("opt", "runs passes over graphs and prints the result");
  options->source.declare_all(*command);
  CLI::Option* passes = command->add_option("--passes", options->passes, "passes to run, in order")
                            ->type_name("A,B,C");
  CLI::Option* lower =
      command
          ->add_option("--lower", options->lower,
                       "first write blocks in ops: direct (fused ones), fusable, for_autodiff")
          ->type_name("POLICY");
  command->add_flag("--print-after-all", options->print_after_all,
                    "print after every pass (to standard error)");
  command->add_flag("--time-passes", options->time_passes,
                    "say how long each pass took (to standard error)");
  command->add_flag("--locations", options->locations, "say where each node came from");
  command->add_option("-o,--out", options->out, "where to write (default: standard output)")
      ->type_name("FILE");
  command->add_flag("--fusion-report", options->fusion_report,
                    "say what was fused and what was left, and why (to standard error)");
  command->footer(pass_list());
  command->callback([options, passes, lower, &action] {
    if (passes->empty() && lower->empty()) throw CLI::RequiredError("--passes or --lower");
    action = [options] { opt(*options); };
  });
}

}  // namespace ricci::tool
