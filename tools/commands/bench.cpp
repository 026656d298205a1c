// ricci bench: how long a graph takes, as a whole and step by step.
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>

#include <fmt/format.h>

#include "ricci/compiler/device/backend.h"
#include "ricci/compiler/schedule/cost.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/verify.h"
#include "ricci/runtime/device.h"
#include "ricci/support/text.h"

#include "commands/commands.h"
#include "commands/device_option.h"
#include "feeds.h"
#include "numbers.h"
#include "runtime/programs.h"
#include "runtime/report.h"
#include "runtime/staging.h"
#include "source.h"
#include "stopping.h"
#include "support/json.h"

namespace ricci::tool {
namespace {

using Clock = std::chrono::steady_clock;

struct BenchCommand {
  Source source;
  FeedOptions feeds;
  std::uint64_t seed = 0;
  std::size_t reps = 20;
  int threads = 0;
  bool no_fuse = false;
  std::int64_t memory_budget = 0;
  bool json = false;
  std::string device = "cpu";
  double timeout = 0;
};

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double median(std::vector<double> times) {
  std::ranges::sort(times);
  const std::size_t half = times.size() / 2;
  return times.size() % 2 == 1 ? times[half] : (times[half - 1] + times[half]) / 2;
}

struct StepTimes {
  std::string by;
  std::string ops;
  std::string where;  // in the user's source
  StepCost cost;
  std::vector<double> ms;
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
    const auto start = Clock::now();
    run();
    out.push_back(ms_since(start));
  }
  return out;
}

// Takes the time of every step of one program; those of its bodies are part of their own.
class StepWatch final : public device::StepObserver {
 public:
  StepWatch(const Program& program, std::vector<StepTimes>& steps)
      : program_(program), steps_(steps) {}
  void before(const Program& program, std::size_t, const device::Buffers&) override {
    if (&program == &program_) start_ = Clock::now();
  }
  void after(const Program& program, std::size_t step, const device::Buffers&) override {
    if (&program == &program_) steps_[step].ms.push_back(ms_since(start_));
  }

 private:
  const Program& program_;
  std::vector<StepTimes>& steps_;
  Clock::time_point start_;
};

void measure_compiled(const BenchCommand& command, const Graph& graph, const CheckedFeeds& feeds,
                      Measured& out) {
  const Device device = Device::named(command.device, command.threads);
  out.threads = device.threads();
  const auto start = Clock::now();
  const Graph bound = feeds.bindings.empty() ? graph : graph.bind(feeds.bindings);
  const device::Backend& backend = device.backend();
  const runtime::BoundProgram bound_program(std::make_shared<const Program>(make_program(
                                                bound, {.fuse = !command.no_fuse,
                                                        .target = &backend.target(),
                                                        .memory_budget = command.memory_budget})),
                                            device, {});
  const device::Executable* executable = &bound_program.executable();
  runtime::require_budget(executable->program(), executable->program().arena_bytes,
                          command.memory_budget);
  const std::unique_ptr<device::Context> context =
      bound_program.make_context(bound_program.output_bytes());
  out.compile_ms = ms_since(start);

  std::vector<Tensor> held;
  std::vector<const std::byte*> inputs;
  for (const Tensor& t : feeds.values) {
    held.push_back(t.contiguous());
    inputs.push_back(held.back().data());
  }
  std::vector<Tensor> results;
  std::vector<std::byte*> outputs;
  for (const ValueId v : bound.outputs()) results.push_back(Tensor::zeros(bound.type(v)));
  for (Tensor& t : results) outputs.push_back(t.mutable_data());
  runtime::Staging staging(backend.memory(), executable->program());
  for (std::size_t k = 0; k < inputs.size(); ++k) staging.stage_input(k, inputs[k]);
  for (std::size_t o = 0; o < outputs.size(); ++o) staging.stage_output(o, outputs[o], -1);
  device::RunArguments arguments{inputs, outputs, command.seed, nullptr};
  const auto run = [&] { device::run(*executable, *context, arguments); };
  out.first_ms = timed(1, run)[0];
  out.ms = timed(command.reps, run);

  const Program& program = executable->program();
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    const SourcePosition& where = program.steps[s].where;
    out.steps.push_back({std::string(executable->served_by(s)),
                         program.steps[s].label,
                         where.known() ? where.to_string() : "",
                         estimate_cost(program, program.steps[s]),
                         {}});
  }
  StepWatch watch(program, out.steps);
  arguments.observer = &watch;
  (void)timed(command.reps, run);
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

void run_bench(const BenchCommand& command) {
  require_device(command.device);
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
  command->add_option("--threads", options->threads, "threads at most (default: one per core)")
      ->type_name("N")
      ->check(check_whole<int>)
      ->check(CLI::Range(0, 4096));
  command->add_flag("--no-fuse", options->no_fuse, "a kernel for every op");
  declare_memory_budget(*command, options->memory_budget);
  command->add_flag("--json", options->json, "all times, as JSON");
  declare_device(*command, options->device);
  declare_timeout(*command, options->timeout);
  command->callback([options, &action] {
    action = [options] {
      const Deadline deadline(options->timeout);
      run_bench(*options);
    };
  });
}

}  // namespace ricci::tool
