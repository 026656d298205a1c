#include "ricci/runtime/ahead_of_time.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "ricci/ir/verify.h"
#include "ricci/support/error.h"

#include "backend/backends.h"
#include "device/packaged_interface.h"
#include "runtime/c_header.h"
#include "runtime/memory_errors.h"
#include "runtime/programs.h"
#include "runtime/report.h"
#include "schedule/program_bytes.h"
#include "support/float_environment.h"

namespace ricci {
namespace {

using runtime::DocumentedArray;

// The struct of arrays: inputs, params, then outputs that have no array yet.
class Arrays {
 public:
  Arrays(const Graph& graph, const ObjectOptions& options) : graph_(graph), options_(options) {}

  std::vector<DocumentedArray> all(std::span<const Port> ports, const std::vector<int>& donors) {
    for (const bool params : {false, true}) {
      for (std::size_t k = 0; k < ports.size(); ++k) {
        if (ports[k].is_param == params) add_input(k, ports[k], donors);
      }
    }
    for (std::size_t o = 0; o < donors.size(); ++o) {
      if (donors[o] < 0) add_output(o);
    }
    return std::move(arrays_);
  }

 private:
  void add_input(std::size_t k, const Port& port, const std::vector<int>& donors) {
    const auto donated = std::ranges::find(donors, static_cast<int>(k));
    const bool written = donated != donors.end();
    const std::int32_t output = written ? static_cast<std::int32_t>(donated - donors.begin()) : -1;
    std::string what = fmt::format("{} '{}'{}", port.is_param ? "param" : "input", port.name,
                                   written ? ", updated in place" : "");
    const auto note = options_.notes.find(port.name);
    if (note != options_.notes.end()) what += fmt::format(" ({})", note->second);
    arrays_.push_back(
        {{unique(runtime::c_identifier(port.name), {}), static_cast<std::int32_t>(k), output},
         port.type,
         std::move(what),
         port.name});
  }

  void add_output(std::size_t o) {
    const ValueId value = graph_.outputs()[o];
    const Node& node = graph_.node(value.node);
    std::string name = o < options_.output_names.size() ? options_.output_names[o] : "";
    if (name.empty()) name = graph_.given_output_name(o);
    if (name.empty() && value.result < node.names.size()) name = node.names[value.result];
    if (name.empty()) name = graph_.outputs().size() == 1 ? "out" : fmt::format("out{}", o);
    arrays_.push_back(
        {{unique(runtime::c_identifier(name), "_out"), -1, static_cast<std::int32_t>(o)},
         graph_.type(value),
         fmt::format("output {}", o),
         name});
  }

  std::string unique(std::string name, const std::string& suffix) {
    if (!suffix.empty() && taken_.contains(name)) name += suffix;
    std::string out = name;
    for (int n = 2; !taken_.insert(out).second; ++n) out = fmt::format("{}_{}", name, n);
    return out;
  }

  const Graph& graph_;
  const ObjectOptions& options_;
  std::vector<DocumentedArray> arrays_;
  std::set<std::string> taken_;
};

std::string name_of(const Graph& graph, const ObjectOptions& options) {
  if (options.name.empty()) return runtime::c_identifier(graph.name());
  if (options.name != runtime::c_identifier(options.name)) {
    throw UserError(ErrorCode::Name,
                    fmt::format("'{}' is not a name C functions can begin with", options.name),
                    fmt::format("use '{}'", runtime::c_identifier(options.name)));
  }
  return options.name;
}

// A graph made ready, and which inputs its outputs replace.
struct Made {
  Made(const Graph& graph, const device::Compiler& compiler, const ObjectOptions& options) {
    verify(graph);
    runtime::require_static(graph);
    ports = runtime::ports_of(graph);
    donors = runtime::donors_of(graph, ports, options.donations);
    make(graph, compiler, options, options.memory_budget);
    runtime::require_budget(*program, program->arena_bytes, options.memory_budget);
  }
  /// With temporaries that take this much where they can; 0: as much as they need.
  void make(const Graph& graph, const device::Compiler& compiler, const ObjectOptions& options,
            std::int64_t arena) {
    program = std::make_shared<const Program>(
        make_program(graph, {options.fuse, &compiler.target(), runtime::donated(donors), arena}));
  }

  std::vector<Port> ports;
  std::vector<int> donors;
  std::shared_ptr<const Program> program;
};

}  // namespace

std::string compile_text(const Graph& graph, std::string_view form,
                         const ObjectOptions& options) try {
  const DefaultFloatEnvironment floats;
  const std::shared_ptr<const device::Compiler> compiler = backend::open_compiler(options.device);
  Made made(graph, *compiler, options);
  std::unique_ptr<device::Outline> outline;
  const auto take_outline = [&] {
    outline = compiler->outline(made.program, {.tf32_products = options.tf32_products});
  };
  const std::int64_t budget = options.memory_budget;
  if (form == "report" || budget > 0) take_outline();
  if (budget > 0 && outline->workspace_bytes() > budget) {
    // What calls need besides temporaries is known only now.
    const std::int64_t besides = outline->workspace_bytes() - made.program->arena_bytes;
    if (besides < budget) made.make(graph, *compiler, options, budget - besides);
    take_outline();
    runtime::require_budget(*made.program, outline->workspace_bytes(), budget);
  }
  if (form == "report") return report_of(*outline);
  if (form == "lir") return to_string(*made.program);
  return compiler->code_text(*made.program, form, options.target);
} catch (const std::exception&) {
  runtime::rethrow_as_ours("compile", graph.name());
}

ObjectFile compile_object(const Graph& graph, const ObjectOptions& options) try {
  const DefaultFloatEnvironment floats;
  const std::shared_ptr<const device::Compiler> compiler = backend::open_compiler(options.device);
  const device::Machine machine = compiler->machine(options.target);
  const Made made(graph, *compiler, options);
  const std::vector<DocumentedArray> arrays = Arrays(graph, options).all(made.ports, made.donors);
  device::PackagedInterface interface{name_of(graph, options), machine.name, machine.features, {}};
  for (const DocumentedArray& a : arrays) interface.arrays.push_back(a.array);
  const std::vector<std::byte> interface_bytes = device::to_bytes(interface);
  const std::vector<std::byte> program_bytes = schedule::to_bytes(*made.program);
  return {interface.name,
          compiler->object_code(*made.program, {interface.name, interface_bytes, program_bytes},
                                machine),
          runtime::c_header(interface, arrays)};
} catch (const std::exception&) {
  runtime::rethrow_as_ours("compile", graph.name());
}

}  // namespace ricci
