// ricci run: runs a graph and says what came out.
#include <memory>

#include <fmt/format.h>

#include "ricci/interp/interpreter.h"
#include "ricci/io/npy.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"
#include "ricci/runtime/compiled_graph.h"

#include "commands/commands.h"
#include "commands/device_option.h"
#include "feeds.h"
#include "source.h"
#include "summary.h"

namespace ricci::tool {
namespace {

struct RunCommand {
  Source source;
  FeedOptions feeds;
  std::uint64_t seed = 0;
  std::string device = "cpu";
  std::string out;
};

std::vector<Tensor> outputs_of(const Graph& graph, RunValues values, const RunCommand& options) {
  if (options.device == "cpu") {
    return compile(graph).run(values.feeds,
                              {.seed = options.seed, .symbols = std::move(values.symbols)});
  }
  return interpret(graph, values.feeds,
                   {.seed = options.seed, .symbols = std::move(values.symbols)});
}

void run(const RunCommand& options) {
  require_device(options.device);
  const Graph graph = options.source.load();
  verify(graph);
  RunValues values = make_values(graph, options.feeds);
  const std::vector<Tensor> results = outputs_of(graph, std::move(values), options);
  io::NamedTensors named;
  std::string report;
  const auto names = value_names(graph);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const ValueId v = graph.outputs()[i];
    report += fmt::format("out{} %{} : {} = {}\n", i, names[v.node][v.result],
                          results[i].type().to_string(), summary(results[i]));
    named.emplace_back(fmt::format("out{}", i), results[i]);
  }
  if (!options.out.empty()) io::write_npz(options.out, named);
  write_text("-", report);
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  auto options = std::make_shared<RunCommand>();
  CLI::App* command = app.add_subcommand("run", "runs a graph and summarises its outputs");
  options->source.declare_one(*command);
  options->feeds.declare(*command);
  command->add_option("--seed", options->seed, "seed of the graph's random ops (default 0)")
      ->type_name("N");
  declare_device(*command, options->device);
  command->add_option("--out", options->out, "write the outputs as arrays out0, out1, …")
      ->type_name("FILE.npz");
  command->callback([options, &action] { action = [options] { run(*options); }; });
}

}  // namespace ricci::tool
