#include "runtime/programs.h"

#include <algorithm>
#include <mutex>

#include <fmt/format.h>

#include "ricci/ir/verify.h"
#include "ricci/op/ops.h"
#include "ricci/support/checked.h"
#include "ricci/support/error.h"
#include "ricci/support/text.h"

#include "support/phases.h"

namespace ricci::runtime {
namespace {

// As many contexts wait as threads are likely to run one graph at once.
constexpr std::size_t MostIdle = 8;

std::int64_t sum_of_outputs(const Program& program) {
  std::int64_t bytes = 0;
  for (const BufferId b : program.outputs)
    bytes = saturating_add(bytes, program.buffers[static_cast<std::size_t>(b)].bytes());
  return bytes;
}

[[noreturn]] void no_room(const Program& program, std::int64_t needed, std::int64_t besides,
                          std::int64_t limit) {
  Diagnostic d{ErrorCode::OutOfMemory,
               "run",
               fmt::format("'{}' needs {} bytes to run, but may take {}", program.name,
                           saturating_add(needed, besides), limit),
               {},
               {},
               "use smaller sizes, checkpoint what is recomputed cheaply, or raise the limit: "
               "--memory-limit, or CompileOptions::memory_limit in C++"};
  d.notes.push_back(fmt::format("{} for temporaries (no plan needs less than {}), {} for results",
                                needed, program.live_bytes, besides));
  throw UserError(std::move(d));
}

}  // namespace

void require_budget(const Program& program, std::int64_t needed, std::int64_t budget) {
  if (budget <= 0 || needed <= budget) return;
  Diagnostic d{
      ErrorCode::OutOfMemory,
      "compile",
      fmt::format("'{}' needs {} bytes to run even where values are computed again, but its "
                  "budget is {}",
                  program.name, needed, budget),
      {},
      {},
      "raise the budget (--memory-budget, or CompileOptions::memory_budget in C++), or use "
      "smaller sizes"};
  d.notes.push_back(fmt::format("{} for temporaries, {} for the work of calls", program.arena_bytes,
                                needed - program.arena_bytes));
  throw UserError(std::move(d));
}

BoundProgram::BoundProgram(std::shared_ptr<const Program> program, const Device& device,
                           const CompileOptions& options)
    : device_(device),
      executable_(device.backend().compile(std::move(program),
                                           {.code_cache = options.code_cache,
                                            .code_cache_limit = options.code_cache_limit,
                                            .tf32_products = options.tf32_products})),
      memory_limit_(options.memory_limit > 0 ? options.memory_limit
                                             : device.backend().memory().total_bytes()),
      output_bytes_(sum_of_outputs(executable_->program())) {
  idle_.reserve(MostIdle);  // giving back must not want memory
}

std::unique_ptr<device::Context> BoundProgram::make_context(std::int64_t besides) const {
  const std::int64_t needed = executable_->context_bytes();
  if (needed > memory_limit_ - besides) no_room(program(), needed, besides, memory_limit_);
  return executable_->make_context();
}

std::unique_ptr<device::Context> BoundProgram::take_context(std::int64_t besides) {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<device::Context> context = std::move(idle_.back());
      idle_.pop_back();
      return context;
    }
  }
  return make_context(besides);
}

void BoundProgram::give_back(std::unique_ptr<device::Context> context) noexcept {
  const std::lock_guard lock(mutex_);
  if (idle_.size() < MostIdle) idle_.push_back(std::move(context));
}

void BoundProgram::forget_contexts() {
  const std::lock_guard lock(mutex_);
  idle_.clear();
}

void require_static(const Graph& graph, std::string_view help) {
  if (graph.symbols().empty()) return;
  const std::string symbol = *graph.symbols().begin();
  throw UserError(ErrorCode::NeedsStaticDim,
                  fmt::format("the program of '{}' depends on the size of '{}', which is not given",
                              graph.name(), symbol),
                  fmt::format("give it one first: {}", fmt::format(fmt::runtime(help), symbol)));
}

std::vector<Port> ports_of(const Graph& graph) {
  std::vector<Port> ports;
  for (const NodeId id : graph.leaves()) {
    const Node& leaf = graph.node(id);
    ports.push_back({*leaf.leaf_name(), leaf.types[0], leaf.op.is<op::Param>()});
  }
  return ports;
}

namespace {

std::size_t port_named(const Graph& graph, std::span<const Port> ports, std::string_view name) {
  const auto port = std::ranges::find(ports, name, &Port::name);
  if (port == ports.end()) (void)graph.find_or_throw(name);
  return static_cast<std::size_t>(port - ports.begin());
}

}  // namespace

std::vector<int> donors_of(const Graph& graph, std::span<const Port> inputs,
                           std::span<const Donation> donations) {
  std::vector<int> donors(graph.outputs().size(), -1);
  for (const Donation& d : donations) {
    const std::size_t input = port_named(graph, inputs, d.input);
    if (d.output >= donors.size() || graph.type(graph.outputs()[d.output]) != inputs[input].type) {
      throw UserError(ErrorCode::Shape,
                      fmt::format("output {} cannot take the buffer of '{}'", d.output, d.input),
                      "a donated input has the type of the output that replaces it");
    }
    if (donors[d.output] >= 0 || std::ranges::count(donors, static_cast<int>(input)) > 0) {
      throw UserError(ErrorCode::Name,
                      fmt::format("'{}' and output {} can be paired only once", d.input, d.output));
    }
    donors[d.output] = static_cast<int>(input);
  }
  return donors;
}

std::vector<Donated> donated(std::span<const int> donors) {
  std::vector<Donated> out;
  for (std::size_t o = 0; o < donors.size(); ++o) {
    if (donors[o] >= 0) out.push_back({o, static_cast<std::size_t>(donors[o])});
  }
  return out;
}

namespace {

Graph verified(Graph graph) {
  const Phase phase("verify");
  verify(graph);
  return graph;
}

}  // namespace

Programs::Programs(Graph graph, Device device, CompileOptions options,
                   std::shared_ptr<const Program> ready)
    : graph_(verified(std::move(graph))),
      device_(std::move(device)),
      options_(std::move(options)),
      inputs_(ports_of(graph_)),
      donors_(donors_of(graph_, inputs_, options_.donations)),
      donated_(inputs_.size(), false) {
  for (const ValueId v : graph_.outputs()) outputs_.push_back(graph_.type(v));
  std::vector<std::string> names = graph_.output_names();
  std::vector<std::string> kept;
  for (std::size_t o = 0; o < names.size(); ++o) {
    if (donors_[o] < 0) kept.push_back(names[o]);
  }
  output_names_ = std::make_shared<const std::vector<std::string>>(std::move(names));
  kept_names_ = std::make_shared<const std::vector<std::string>>(std::move(kept));
  for (const int input : donors_) {
    if (input >= 0) donated_[static_cast<std::size_t>(input)] = true;
  }
  is_static_ = graph_.symbols().empty();
  const bool ready_made = ready != nullptr;
  if (ready) {
    only_ = std::make_shared<BoundProgram>(std::move(ready), device_, options_);
    recent_.push_front({{}, only_});
  } else if (is_static_) {
    only_ = bound({});
  }
  // Packed params are held beside the ones they are made of, and their products are larger.
  const bool has_room = options_.memory_budget == 0 && options_.memory_limit == 0;
  if (!ready_made && options_.pack_params && options_.fuse && has_room && !has_donations()) {
    find_packing();
  }
}

void Programs::find_packing() {
  packing_ = packing_of(graph_);
  if (!packing_) return;
  for (const PackedParam& p : packing_->params) {
    for (const std::string& source : p.sources) packed_inputs_.push_back(input_named(source));
  }
  std::ranges::sort(packed_inputs_);
  const auto rest = std::ranges::unique(packed_inputs_);
  packed_inputs_.erase(rest.begin(), rest.end());
}

std::shared_ptr<Programs> Programs::packed() {
  {
    const std::lock_guard lock(mutex_);
    if (packed_) return packed_;
  }
  CompileOptions options = options_;
  options.pack_params = false;
  auto made = std::make_shared<Programs>(packing_->graph, device_, std::move(options));
  const std::lock_guard lock(mutex_);
  if (!packed_) packed_ = std::move(made);
  return packed_;
}

std::size_t Programs::input_named(std::string_view name) const {
  return port_named(graph_, inputs_, name);
}

std::shared_ptr<BoundProgram> Programs::found(const SymbolBindings& bindings) {
  const auto entry = std::ranges::find(recent_, bindings, &Entry::bindings);
  if (entry == recent_.end()) return nullptr;
  recent_.splice(recent_.begin(), recent_, entry);
  return entry->program;
}

std::shared_ptr<BoundProgram> Programs::bound(const SymbolBindings& bindings) {
  if (only_ && bindings.empty()) return only_;
  {
    const std::lock_guard lock(mutex_);
    if (auto program = found(bindings)) return program;
  }
  auto made = make(bindings);
  const std::lock_guard lock(mutex_);
  if (auto theirs = found(bindings)) return theirs;  // another thread was as fast
  recent_.push_front({bindings, made});
  while (recent_.size() > std::max<std::size_t>(options_.max_bindings, 1)) recent_.pop_back();
  return made;
}

std::shared_ptr<BoundProgram> Programs::make(const SymbolBindings& bindings) const {
  const Graph graph = bind_sizes(graph_, bindings);
  const auto within = [&](std::int64_t arena) {
    auto program = std::make_shared<const Program>(
        make_program(graph, {options_.fuse, &device_.backend().target(), donated(donors_), arena}));
    return std::make_shared<BoundProgram>(std::move(program), device_, options_);
  };
  const std::int64_t budget = options_.memory_budget;
  auto made = within(budget);
  if (budget <= 0 || made->executable().workspace_bytes() <= budget) return made;
  // What calls need besides temporaries is known only now.
  const std::int64_t besides = made->executable().workspace_bytes() - made->program().arena_bytes;
  if (besides < budget) made = within(budget - besides);
  require_budget(made->program(), made->executable().workspace_bytes(), budget);
  return made;
}

std::shared_ptr<BoundProgram> Programs::only() {
  require_static(graph_);
  return only_;
}

std::shared_ptr<BoundProgram> Programs::op_by_op(const SymbolBindings& bindings) {
  {
    const std::lock_guard lock(mutex_);
    if (op_by_op_.program && op_by_op_.bindings == bindings) return op_by_op_.program;
  }
  auto program = std::make_shared<const Program>(
      make_program(bind_sizes(graph_, bindings), {false, &device_.backend().target(), {}}));
  auto made = std::make_shared<BoundProgram>(std::move(program), device_, options_);
  const std::lock_guard lock(mutex_);
  op_by_op_ = {bindings, made};
  return made;
}

void Programs::forget_contexts() {
  const std::lock_guard lock(mutex_);
  for (const Entry& e : recent_) e.program->forget_contexts();
  if (packed_) packed_->forget_contexts();
}

}  // namespace ricci::runtime
