// ricci bench: how long a graph takes, as a whole and step by step.
#include <algorithm>
#include <functional>
#include <memory>

#include <fmt/format.h>

#include "ricci/interp/interpreter.h"
#include "ricci/ir/verify.h"
#include "ricci/support/text.h"

#include "commands/bench_run.h"
#include "commands/commands.h"
#include "commands/device_option.h"
#include "feeds.h"
#include "numbers.h"
#include "source.h"
#include "support/json.h"

namespace ricci::tool {
namespace {

struct BenchCommand {
  Source source;
  FeedOptions feeds;
  std::uint64_t seed = 0;
  std::size_t reps = 20;
  int threads = 0;
  bool no_fuse = false;
  std::int64_t memory_budget = 0;
  bool json = false;
  bool scaling = false;
  std::string device = "cpu";
};

struct Measured {
  std::string graph;
  std::string device;
  int threads = 1;
  double compile_ms = 0;
  double first_ms = 0;
  std::vector<double> ms;
  std::vector<StepTimes> steps;  // of a compiled program
};

std::vector<double> timed(std::size_t reps, const std::function<void()>& run) {
  std::vector<double> out;
  for (std::size_t i = 0; i < reps; ++i) {
    const auto start = BenchClock::now();
    run();
    out.push_back(ms_since(start));
  }
  return out;
}

BenchRunOptions run_options(const BenchCommand& command) {
  return {command.device, command.threads, !command.no_fuse, command.memory_budget, command.seed};
}

void measure_compiled(const BenchCommand& command, const Graph& graph, const CheckedFeeds& feeds,
                      Measured& out) {
  BenchRun run(graph, feeds, run_options(command));
  out.threads = run.threads();
  out.compile_ms = run.compile_ms();
  out.first_ms = run.run_ms();
  for (std::size_t i = 0; i < command.reps; ++i) out.ms.push_back(run.run_ms());
  out.steps = run.steps(command.reps);
}

Measured measure(const BenchCommand& command) {
  const Graph graph = command.source.load();
  verify(graph);
  RunValues values = make_values(graph, command.feeds);
  Measured out{.graph = graph.name(), .device = command.device};
  if (command.device != "reference") {
    measure_compiled(command, graph, check_feeds(graph, values.feeds, values.symbols), out);
    return out;
  }
  const auto run = [&] {
    (void)interpret(graph, values.feeds, {.seed = command.seed, .symbols = values.symbols});
  };
  out.first_ms = timed(1, run)[0];
  out.ms = timed(command.reps, run);
  return out;
}

std::string as_json(const Measured& m) {
  std::string steps;
  for (const StepTimes& s : m.steps) {
    steps += fmt::format(
        "{}    {{\"ops\": {}, \"where\": {}, \"by\": {}, \"median_ms\": {}, \"flops\": {}, "
        "\"bytes\": {}}}",
        steps.empty() ? "\n" : ",\n", quote_json(s.ops), quote_json(s.where), quote_json(s.by),
        number_json(median(s.ms)), number_json(s.cost.flops), number_json(s.cost.bytes()));
  }
  std::vector<std::string> times;
  for (const double ms : m.ms) times.push_back(number_json(ms));
  return fmt::format(
      "{{\n  \"graph\": {},\n  \"device\": {},\n  \"threads\": {},\n  \"compile_ms\": {},\n"
      "  \"first_ms\": {},\n  \"median_ms\": {},\n  \"times_ms\": [{}],\n  \"steps\": [{}{}]\n}}\n",
      quote_json(m.graph), quote_json(m.device), m.threads, number_json(m.compile_ms),
      number_json(m.first_ms), number_json(median(m.ms)), join(times, ", "), steps,
      steps.empty() ? "" : "\n  ");
}

std::string as_text(const Measured& m) {
  std::string text = fmt::format(
      "@{} on {}, {} thread{}: median {:.4g} ms of {} (from {:.4g} to {:.4g}); compiled in {:.4g} "
      "ms, first run {:.4g} ms\n",
      m.graph, m.device, m.threads, m.threads == 1 ? "" : "s", median(m.ms), m.ms.size(),
      std::ranges::min(m.ms), std::ranges::max(m.ms), m.compile_ms, m.first_ms);
  if (m.steps.empty()) return text;
  text += fmt::format("{:>6} {:<10}{:>10}{:>10}{:>10}  {}\n", "step", "by", "ms", "Gflop/s", "GB/s",
                      "ops");
  for (std::size_t i = 0; i < m.steps.size(); ++i) {
    const StepTimes& s = m.steps[i];
    const double ms = std::max(median(s.ms), 1e-6);
    text += fmt::format("{:>6} {:<10}{:>10.4f}{:>10.3g}{:>10.3g}  {}  {}\n", i, s.by, ms,
                        s.cost.flops / ms * 1e-6, s.cost.bytes() / ms * 1e-6, s.ops, s.where);
  }
  return text;
}

std::string scaling(const BenchCommand& command) {
  if (command.device == "reference") {
    throw UserError(ErrorCode::UnsupportedOnBackend, "the reference interpreter has one thread",
                    "leave out --device reference, or --scaling");
  }
  const Graph graph = command.source.load();
  verify(graph);
  const RunValues values = make_values(graph, command.feeds);
  return scaling_text(graph, check_feeds(graph, values.feeds, values.symbols), run_options(command),
                      command.reps);
}

void run_bench(const BenchCommand& command) {
  require_device(command.device);
  if (command.scaling) return write_text("-", scaling(command));
  const Measured measured = measure(command);
  write_text("-", command.json ? as_json(measured) : as_text(measured));
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  auto options = std::make_shared<BenchCommand>();
  CLI::App* command = app.add_subcommand("bench", "measures how long a graph takes");
  options->source.declare_one(*command);
  options->feeds.declare(*command);
  command->add_option("--seed", options->seed, "seed of the graph's random ops (default 0)")
      ->type_name("N")
      ->check(check_whole<std::uint64_t>);
  command->add_option("--reps", options->reps, "how often it is run (default 20)")
      ->type_name("N")
      ->check(check_whole<std::size_t>)
      ->check(CLI::Range(std::size_t{1}, std::size_t{1000000}));
  declare_threads(*command, options->threads);
  command->add_flag("--no-fuse", options->no_fuse, "a kernel for every op");
  declare_memory_budget(*command, options->memory_budget);
  CLI::Option* json = command->add_flag("--json", options->json, "all times, as JSON");
  command
      ->add_flag(
          "--scaling", options->scaling,
          "with 1, 2, 4, ... threads in turns: speedup, efficiency, the steps that gain least")
      ->excludes(json);
  declare_device(*command, options->device);
  command->callback([options, &action] { action = [options] { run_bench(*options); }; });
}

}  // namespace ricci::tool
