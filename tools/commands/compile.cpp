// ricci compile: what the compiler makes of a graph, as a report, as LIR, as code, or as a program
// that runs without the compiler.
#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "ricci/io/object_file.h"
#include "ricci/ir/verify.h"
#include "ricci/model/training.h"
#include "ricci/runtime/ahead_of_time.h"

#include "commands/commands.h"
#include "commands/device_option.h"
#include "feeds.h"
#include "phase_table.h"
#include "runtime/programs.h"
#include "source.h"

namespace ricci::tool {
namespace {

struct CompileCommand {
  Source source;
  std::vector<std::string> sizes;
  std::vector<std::string> donations;  // input=output number
  bool report = false;                 // what happens anyway
  bool no_fuse = false;
  bool time_passes = false;
  std::int64_t memory_budget = 0;
  std::string emit = "report";
  std::string target = "host";
  std::string device = "cpu";
  std::string name;
  std::string train;  // an optimiser
  std::optional<double> learning_rate;
  std::string out = "-";
  bool tf32 = false;

  [[nodiscard]] bool writes_program() const { return emit == "object" || emit == "shared"; }
};

Graph bound(const CompileCommand& command) {
  const Graph graph = command.source.load();
  verify(graph);
  const SymbolBindings sizes = given_sizes(graph, command.sizes);
  Graph out = sizes.empty() ? graph : graph.bind(sizes);
  runtime::require_static(out, "--size {}=32");
  return out;
}

std::vector<Donation> donations_of(const CompileCommand& command, const Graph& graph) {
  std::vector<Donation> out;
  for (const std::string& text : command.donations) {
    const auto [input, number] = split_assignment(text).value();
    const auto digits = number.find_first_not_of("0123456789") == std::string::npos;
    if (!digits || number.size() > 9 || std::stoul(number) >= graph.outputs().size()) {
      throw UserError(ErrorCode::Name, fmt::format("'{}' is not the number of an output", number),
                      fmt::format("'{}' has {} outputs", graph.name(), graph.outputs().size()));
    }
    out.push_back({std::stoul(number), input});
  }
  return out;
}

std::vector<std::string> trainers() {
  const std::vector<std::string_view> names = optimizer_names();
  return {names.begin(), names.end()};
}

Optimizer optimizer_of(const CompileCommand& command) {
  Optimizer optimizer = optimizer_named(command.train);
  if (command.learning_rate) {
    std::visit([&](auto& o) { o.learning_rate = *command.learning_rate; }, optimizer);
  }
  return optimizer;
}

// What a machine has is for its device to say; what no device has is not understood.
std::string check_target(const std::string& name) {
  constexpr std::array Processors = {"host", "avx2", "avx512", "portable"};
  if (name.starts_with("sm_") || std::ranges::find(Processors, name) != Processors.end()) return {};
  return "'" + name + "' is none of host, avx2, avx512, portable, sm_80, sm_90, ...";
}

void write_program(const ObjectFile& program, const CompileCommand& command) {
  if (command.emit == "shared") {
    io::write_shared_library(program, command.out);
  } else {
    io::write_object(program, command.out);
  }
}

// The program of the command: written, or as text.
void compile_as(const CompileCommand& command) {
  if (command.writes_program() && command.out == "-") {
    throw UserError(
        ErrorCode::File, "a program is not text",
        command.emit == "shared" ? "name a file: -o libstep.so" : "name a file: -o step.o");
  }
  TrainingGraph training;  // or only a graph with donations
  if (command.train.empty()) {
    training.graph = bound(command);
    training.donations = donations_of(command, training.graph);
  } else {
    training = make_training_graph(GraphModule::from_graph(bound(command)),
                                   {.optimizer = optimizer_of(command)});
  }
  const ObjectOptions options{.name = command.name,
                              .device = command.device,
                              .target = command.target,
                              .fuse = !command.no_fuse,
                              .donations = training.donations,
                              .memory_budget = command.memory_budget,
                              .tf32_products = command.tf32};
  if (command.writes_program()) {
    write_program(command.train.empty() ? compile_object(training.graph, options)
                                        : compile_object(training, options),
                  command);
    return;
  }
  write_text(command.out, compile_text(training.graph, command.emit, options));
}

void run_compile(const CompileCommand& command) {
  refuse_reference(command.device);
  std::optional<PhaseLog> log;
  if (command.time_passes) log.emplace();
  {
    const Phase phase("compile");
    compile_as(command);
  }
  // Beside the result, not into it.
  if (log) std::fputs(phase_table(*log).c_str(), stderr);
}

}  // namespace

void add_compile(CLI::App& app, Action& action) {
  auto options = std::make_shared<CompileCommand>();
  CLI::App* command = app.add_subcommand(
      "compile", "says what the compiler makes of a graph, or writes it as a program");
  options->source.declare_one(*command);
  declare_sizes(*command, options->sizes, "size of a symbolic dimension (repeatable)");
  auto* donate =
      command
          ->add_option("--donate", options->donations,
                       "let an output take the buffer of an input (repeatable)")
          ->type_name("INPUT=OUTPUT_NUMBER")
          ->check([](const std::string& text) {
            return split_assignment(text) ? "" : "'" + text + "' is not of the form NAME=NUMBER";
          })
          ->allow_extra_args(false);
  auto* report = command->add_flag("--report", options->report,
                                   "steps, costs and memory, for people (the default)");
  auto* emit =
      command
          ->add_option(
              "--emit", options->emit,
              "instead: lir; the code as llvm or asm, or as cuda or ptx; or a program that runs "
              "without the compiler, with a C header beside it: object, to be "
              "linked with libricci_runtime.a, or shared, a library")
          ->type_name("WHAT")
          ->check(CLI::IsMember({"lir", "llvm", "asm", "cuda", "ptx", "object", "shared"}))
          ->excludes(report);
  command
      ->add_option("--name", options->name,
                   "what a program's C functions begin with (default: the graph's name)")
      ->type_name("NAME")
      ->needs(emit);
  auto* train = command
                    ->add_option("--train", options->train,
                                 "the training step instead: the first output is the loss, all "
                                 "params are updated by this optimiser")
                    ->type_name("OPTIMIZER")
                    ->check(CLI::IsMember(trainers()));
  train->excludes(donate);
  command->add_option("--learning-rate", options->learning_rate, "of the training step")
      ->type_name("NUMBER")
      ->needs(train);
  command->add_flag("--no-fuse", options->no_fuse, "a kernel for every op");
  command->add_flag("--time-passes", options->time_passes,
                    "where the time of compiling goes, on standard error");
  declare_memory_budget(*command, options->memory_budget);
  declare_device(*command, options->device);
  command
      ->add_option("--target", options->target,
                   "whose code: host, avx2, avx512 or portable; of cuda: host, sm_80, sm_90, ...")
      ->type_name("NAME")
      ->check(check_target)
      ->needs(emit);
  declare_tf32(*command, options->tf32);
  command->add_option("-o,--out", options->out, "where to write (default: standard output)")
      ->type_name("FILE");
  command->callback([options, &action] { action = [options] { run_compile(*options); }; });
}

}  // namespace ricci::tool
