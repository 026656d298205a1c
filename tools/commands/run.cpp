// ricci run: runs a graph and says what came out.
#include <memory>

#include <fmt/format.h>

#include "ricci/interp/interpreter.h"
#include "ricci/io/file.h"
#include "ricci/io/npy.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"
#include "ricci/runtime/compiled_graph.h"
#include "ricci/runtime/profile.h"
#include "ricci/runtime/session.h"
#include "ricci/support/text.h"

#include "commands/commands.h"
#include "commands/device_option.h"
#include "feeds.h"
#include "numbers.h"
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
  bool by_name = false;
  // Of the compiled program:
  int threads = 0;
  std::int64_t memory_limit = 0;
  std::int64_t memory_budget = 0;
  bool tf32 = false;
  bool check_finite = false;
  bool profile = false;
  std::string trace;

  [[nodiscard]] bool watches() const { return profile || !trace.empty(); }
};

struct Ran {
  std::vector<Tensor> outputs;
  std::string profile;  ///< a table; empty when it was not asked for
};

Ran run_compiled(const Graph& graph, RunValues values, const RunCommand& options) {
  // A session keeps machine code where RICCI_CACHE_DIR says.
  Session session(Device::named(options.device, options.threads));
  const CompiledGraph program = session.compile(graph, {.memory_limit = options.memory_limit,
                                                        .memory_budget = options.memory_budget,
                                                        .tf32_products = options.tf32});
  Profile profile;
  RunOptions how{.seed = options.seed,
                 .symbols = std::move(values.symbols),
                 .check_finite = options.check_finite};
  if (options.watches()) {
    // Once before, so that the times are those of later runs.
    (void)program.run(values.feeds, how);
    how.profile = &profile;
  }
  Ran ran{program.run(values.feeds, how), {}};
  if (options.profile) ran.profile = profile.to_string();
  if (!options.trace.empty()) io::write_file(options.trace, profile.chrome_trace());
  return ran;
}

Ran run_graph(const Graph& graph, RunValues values, const RunCommand& options) {
  if (options.device != "reference") return run_compiled(graph, std::move(values), options);
  if (options.check_finite || options.watches() || options.threads != 0 ||
      options.memory_budget != 0 || options.tf32) {
    throw UserError(
        ErrorCode::UnsupportedOnBackend,
        "threads, budgets, tf32, profiles, traces and checks are of compiled programs",
        fmt::format("run with --device {}, or leave these options out", Device::names().front()));
  }
  return {interpret(graph, values.feeds,
                    {.seed = options.seed,
                     .symbols = std::move(values.symbols),
                     .memory_limit = options.memory_limit}),
          {}};
}

void run(const RunCommand& options) {
  require_device(options.device);
  const Graph graph = options.source.load();
  verify(graph);
  RunValues values = make_values(graph, options.feeds);
  const auto [results, profile] = run_graph(graph, std::move(values), options);
  io::NamedTensors named;
  std::string report;
  const auto names = value_names(graph);
  const std::vector<std::string> called = graph.output_names();
  for (std::size_t i = 0; i < results.size(); ++i) {
    const ValueId v = graph.outputs()[i];
    const std::string& given = graph.given_output_name(i);
    report += fmt::format("out{} {} : {} = {}\n", i,
                          given.empty() ? "%" + names[v.node][v.result] : quote(given),
                          results[i].type().to_string(), summary(results[i]));
    named.emplace_back(options.by_name ? called[i] : fmt::format("out{}", i), results[i]);
  }
  if (!options.out.empty()) io::write_npz(options.out, named);
  write_text("-", report + profile);
}

void declare_program_options(CLI::App& command, RunCommand& options) {
  declare_threads(command, options.threads);
  command
      .add_option("--memory-limit", options.memory_limit,
                  "bytes that temporaries and results may take (default: the machine's memory)")
      ->type_name("BYTES")
      ->check(check_whole<std::int64_t>);
  declare_memory_budget(command, options.memory_budget);
  declare_tf32(command, options.tf32);
  command.add_flag("--check-finite", options.check_finite,
                   "stop at the first op that makes NaN or infinity of finite numbers");
  command.add_flag("--profile", options.profile, "then say where the time of a second run went");
  command.add_option("--trace", options.trace, "write that run for ui.perfetto.dev")
      ->type_name("FILE.json");
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  auto options = std::make_shared<RunCommand>();
  CLI::App* command = app.add_subcommand("run", "runs a graph and summarises its outputs");
  options->source.declare_one(*command);
  options->feeds.declare(*command);
  command->add_option("--seed", options->seed, "seed of the graph's random ops (default 0)")
      ->type_name("N")
      ->check(check_whole<std::uint64_t>);
  declare_device(*command, options->device);
  declare_program_options(*command, *options);
  auto* out =
      command->add_option("--out", options->out, "write the outputs as arrays out0, out1, …")
          ->type_name("FILE.npz");
  command
      ->add_flag("--by-name", options->by_name,
                 "call the arrays what the outputs are called; --inputs takes them again")
      ->needs(out);
  command->callback([options, &action] { action = [options] { run(*options); }; });
}

}  // namespace ricci::tool
