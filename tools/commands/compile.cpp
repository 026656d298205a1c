// ricci compile: what the compiler makes of a graph, as a report, as LIR or as code.
#include <memory>
#include <set>

#include <fmt/format.h>

#include "ricci/ir/verify.h"
#include "ricci/runtime/compiled_graph.h"

#include "backend/cpu/executable.h"
#include "backend/cpu/kernel_code.h"
#include "commands/commands.h"
#include "feeds.h"
#include "source.h"

namespace ricci::tool {
namespace {

struct CompileCommand {
  Source source;
  std::vector<std::string> sizes;
  std::vector<std::string> donations;  // input=output number
  bool report = false;                 // what happens anyway
  bool no_fuse = false;
  std::string emit = "report";
  std::string target = "host";
  std::string out = "-";
};

Graph bound(const CompileCommand& command) {
  const Graph graph = command.source.load();
  verify(graph);
  const SymbolBindings sizes = given_sizes(graph, command.sizes);
  Graph out = sizes.empty() ? graph : graph.bind(sizes);
  if (!out.symbols().empty()) {
    throw UserError(ErrorCode::NeedsStaticDim,
                    fmt::format("the size of '{}' is not given", *out.symbols().begin()),
                    fmt::format("say --size {}=32", *out.symbols().begin()));
  }
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

// The kernels of a program and of its bodies, each piece of code once.
void collect(const Program& program, const std::string& prefix, std::set<std::string>& known,
             std::vector<cpu::KernelSource>& out) {
  for (const loop::Kernel& k : program.kernels) {
    if (known.insert(cpu::code_key(k)).second) out.push_back({&k, prefix + k.name});
  }
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    const auto* control = std::get_if<ControlStep>(&program.steps[s].what);
    if (control == nullptr) continue;
    for (const auto& [role, body] : control->bodies) {
      collect(*body, fmt::format("{}s{}_{}_", prefix, s, role), known, out);
    }
  }
}

std::string code_of(const Program& program, const CompileCommand& command) {
  std::set<std::string> known;
  std::vector<cpu::KernelSource> kernels;
  collect(program, {}, known, kernels);
  cpu::EmittedCode code = cpu::emit_kernels(kernels, {.target = &cpu::target_named(command.target),
                                                      .keep_object = command.emit == "object",
                                                      .keep_llvm = command.emit == "llvm",
                                                      .keep_assembly = command.emit == "asm"});
  if (command.emit == "llvm") return std::move(code.llvm_text);
  if (command.emit == "asm") return std::move(code.assembly_text);
  return {code.object.begin(), code.object.end()};
}

void run_compile(const CompileCommand& command) {
  if (command.emit == "object" && command.out == "-") {
    throw UserError(ErrorCode::File, "an object is not text", "name a file: -o kernels.o");
  }
  const Graph graph = bound(command);
  const CompiledGraph compiled =
      compile(graph, Device::default_cpu(),
              {.fuse = !command.no_fuse, .donations = donations_of(command, graph)});
  std::string text;
  if (command.emit == "report") {
    text = compiled.report();
  } else if (command.emit == "lir") {
    text = to_string(compiled.program());
  } else {
    text = code_of(compiled.program(), command);
  }
  write_text(command.out, text);
}

}  // namespace

void add_compile(CLI::App& app, Action& action) {
  auto options = std::make_shared<CompileCommand>();
  CLI::App* command = app.add_subcommand("compile", "says what the compiler makes of a graph");
  options->source.declare_one(*command);
  declare_sizes(*command, options->sizes, "size of a symbolic dimension (repeatable)");
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
  auto* emit = command
                   ->add_option("--emit", options->emit,
                                "instead: lir, or the kernels as llvm, asm or object")
                   ->type_name("WHAT")
                   ->check(CLI::IsMember({"lir", "llvm", "asm", "object"}))
                   ->excludes(report);
  command->add_flag("--no-fuse", options->no_fuse, "a kernel for every op");
  command->add_option("--target", options->target, "whose code: host, avx2, avx512 or portable")
      ->type_name("NAME")
      ->check(CLI::IsMember({"host", "avx2", "avx512", "portable"}))
      ->needs(emit);
  command->add_option("-o,--out", options->out, "where to write (default: standard output)")
      ->type_name("FILE");
  command->callback([options, &action] { action = [options] { run_compile(*options); }; });
}

}  // namespace ricci::tool
