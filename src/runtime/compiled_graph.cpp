#include "ricci/runtime/compiled_graph.h"

#include <optional>
#include <set>
#include <shared_mutex>

#include <fmt/format.h>

#include "ricci/compiler/schedule/verify.h"
#include "ricci/ir/verify.h"
#include "ricci/support/error.h"

#include "device/buffer_check.h"
#include "runtime/compiled_graph_impl.h"
#include "runtime/memory_errors.h"
#include "runtime/observers.h"
#include "runtime/report.h"
#include "runtime/staging.h"
#include "support/float_environment.h"
#include "support/fork.h"
#include "support/stop_flag.h"

namespace ricci {

using runtime::BoundProgram;
using runtime::LeasedContext;
using runtime::ParamStore;
using runtime::Programs;

namespace {

// Can a value of type `given` be one of type `port`, whose symbols may stand for any size?
bool could_be(const Type& given, const Type& port) {
  if (given.dtype != port.dtype || given.rank() != port.rank()) return false;
  for (std::size_t i = 0; i < port.rank(); ++i) {
    if (port.dims[i].is_static() && given.dims[i] != port.dims[i]) return false;
  }
  return true;
}

device::BufferPorts ports_of(const Programs& programs) {
  device::BufferPorts ports;
  for (const Port& p : programs.inputs()) ports.inputs.push_back(fmt::format("'{}'", p.name));
  for (std::size_t k = 0; k < programs.outputs().size(); ++k) {
    ports.outputs.push_back(fmt::format("output {}", k));
    ports.donors.push_back(programs.donor_of(k));
  }
  ports.null_help =
      "only params whose value is kept (set_param), and what replaces them, may be left out";
  return ports;
}

}  // namespace

struct ExecutionContext::Impl {
  Impl(std::shared_ptr<Programs> all, std::shared_ptr<BoundProgram> bound, SymbolBindings sizes,
       device::Memory& memory)
      : programs(std::move(all)),
        program(std::move(bound)),
        bindings(std::move(sizes)),
        check(ports_of(*programs), program->program()),
        inputs(programs->inputs().size()),
        outputs(programs->outputs().size()),
        staging(memory, program->program()) {}

  std::shared_ptr<Programs> programs;
  std::shared_ptr<BoundProgram> program;
  SymbolBindings bindings;
  std::unique_ptr<device::Context> context;  ///< made when it is first needed
  device::BufferCheck check;
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
  bool all_given = false;  ///< the two are what the caller gave last, and were found usable
  runtime::Staging staging;
  OneAtATime one_run;
  /// For runs on packed params: as long as these are kept, and not given.
  std::optional<ExecutionContext> packed;
  std::vector<const void*> packed_inputs;

  [[nodiscard]] device::Context& room() {
    if (!context) context = program->make_context();
    return *context;
  }
  /// The same for runs on packed params.
  void take_packed(ExecutionContext made) {
    packed_inputs.resize(made.impl_->programs->inputs().size(), nullptr);
    packed = std::move(made);
  }
  /// Are these the pointers of the last run, with nothing left to look up or to copy?
  [[nodiscard]] bool is_again(std::span<const void* const> in,
                              std::span<void* const> out) const noexcept {
    if (!all_given || in.size() != inputs.size() || out.size() != outputs.size()) return false;
    // By hand: for the few pointers most programs have a call of memcmp takes longer.
    bool same = true;
    for (std::size_t k = 0; k < in.size(); ++k) same &= in[k] == inputs[k];
    for (std::size_t k = 0; k < out.size(); ++k) same &= out[k] == outputs[k];
    return same;
  }
};

ExecutionContext::ExecutionContext(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ExecutionContext::ExecutionContext(ExecutionContext&&) noexcept = default;
ExecutionContext& ExecutionContext::operator=(ExecutionContext&&) noexcept = default;
ExecutionContext::~ExecutionContext() = default;
std::int64_t ExecutionContext::bytes() const noexcept {
  if (!impl_) return 0;
  return (impl_->context ? impl_->context->bytes() : 0) +
         (impl_->packed ? impl_->packed->bytes() : 0);
}

namespace {

// Tensors for a program's results.
struct Results {
  Results(std::span<const Type> types, const SymbolBindings& bindings) {
    tensors.reserve(types.size());
    data.reserve(types.size());
    for (const Type& t : types) {
      data.push_back(tensors.emplace_back(Tensor::zeros(t.bind(bindings))).mutable_data());
    }
  }
  std::vector<Tensor> tensors;
  std::vector<std::byte*> data;
};

// Runs op by op with results that are thrown away, looking at every value.
void check_finite(Programs& programs, const SymbolBindings& bindings, const Device& device,
                  std::span<const std::byte* const> inputs, std::uint64_t seed) {
  const DefaultFloatEnvironment floats;
  const std::shared_ptr<BoundProgram> plain = programs.op_by_op(bindings);
  std::vector<std::string> names;
  for (const Port& p : programs.inputs()) names.push_back(p.name);
  device::Memory& memory = device.backend().memory();
  runtime::FiniteObserver::check_inputs(plain->program(), memory, inputs, names);
  std::vector<device::Array> results;  // thrown away
  std::vector<std::byte*> outputs;
  for (const BufferId b : plain->program().outputs) {
    results.emplace_back(memory, plain->program().buffers[static_cast<std::size_t>(b)].bytes());
    outputs.push_back(results.back().data());
  }
  runtime::FiniteObserver observer;
  const std::unique_ptr<device::Context> context = plain->make_context(plain->output_bytes());
  device::run(plain->executable(), *context, {inputs, outputs, seed, &observer});
}

struct Call {
  Programs& programs;
  const BoundProgram& program;
  const Device& device;
  device::Context& context;
};

void run_program(const Call& call, std::span<const std::byte* const> inputs,
                 std::span<std::byte* const> outputs, const SymbolBindings& bindings,
                 const RunOptions& options) {
  device::RunArguments arguments{inputs, outputs, options.seed, nullptr};
  const auto run = [&] { device::run(call.program.executable(), call.context, arguments); };
  if (options.check_finite) {
    check_finite(call.programs, bindings, call.device, inputs, options.seed);
  }
  if (options.profile != nullptr) {
    ProfileObserver observer(*options.profile);
    arguments.observer = &observer;
    run();
  } else {
    run();
  }
}

// Row-major elements, aligned for their dtype.
Tensor usable(const Tensor& t) {
  Tensor plain = t.contiguous();
  const auto at = reinterpret_cast<std::uintptr_t>(plain.data());
  const bool aligned =
      with_element_type(t.dtype(), [&]<class T>() { return at % alignof(T) == 0; });
  return aligned ? plain : Tensor::from_bytes(plain.type(), plain.bytes());
}

// Everything that is fed and everything that is kept. What is kept is only looked at, unless it
// changes while programs run: then the caller holds the store's mutex.
Feeds with_kept(const Programs& programs, const ParamStore& store, const Feeds& feeds) {
  Feeds all = feeds;
  for (std::size_t k = 0; k < programs.inputs().size(); ++k) {
    const std::string& name = programs.inputs()[k].name;
    if (!store.has(k) || all.contains(name)) continue;
    const Type& type = store.type(k);
    all.emplace(name, programs.is_donated(k)
                          ? Tensor::borrow(type, store.data(k),
                                           row_major_strides(type.static_dims()), nullptr)
                          : store.get(k));
  }
  return all;
}

// What a run reads: values that are fed, in the device's memory, and those that are kept there. The
// store is asked where it is given, which needs its mutex; else kept values are tensors as others.
struct Fed {
  Fed(const Programs& programs, const ParamStore* store, const Feeds& feeds,
      const CheckedFeeds& checked, runtime::Staging& staging) {
    for (std::size_t k = 0; k < checked.values.size(); ++k) {
      if (store != nullptr && store->has(k) && !feeds.contains(programs.inputs()[k].name)) {
        data.push_back(store->data(k));
        continue;
      }
      held.push_back(usable(checked.values[k]));
      data.push_back(held.back().data());
      staging.stage_input(k, data.back());
    }
  }
  std::vector<Tensor> held;  // alive while the program runs
  std::vector<const std::byte*> data;
};

}  // namespace

CompiledGraph::CompiledGraph(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

CompiledGraph compile(const Graph& graph, const Device& device, const CompileOptions& options) try {
  const DefaultFloatEnvironment floats;
  return CompiledGraph(std::make_shared<CompiledGraph::Impl>(
      std::make_shared<Programs>(graph, device, options), device));
} catch (const std::exception&) {
  runtime::rethrow_as_ours("compile", graph.name());
}

CompiledGraph load(const Graph& graph, std::shared_ptr<const Program> program, const Device& device,
                   const CompileOptions& options) try {
  const DefaultFloatEnvironment floats;
  if (!options.donations.empty()) {
    throw UserError(ErrorCode::Refused, "a program that is made cannot be given donations",
                    "give them to compile, which makes the program with them");
  }
  verify(graph);
  runtime::require_static(graph);
  // A program does not say whether it was made with `fuse`, on which preparation depends.
  const auto is_made_from = [&](bool fuse) {
    return prepare_for_device(graph, {.fuse = fuse, .target = &device.backend().target()}) ==
           *program->graph;
  };
  if (!program || !program->graph || !(is_made_from(true) || is_made_from(false))) {
    throw UserError(ErrorCode::Refused,
                    fmt::format("the program was not made from the graph '{}'", graph.name()),
                    "give the graph that was compiled to it");
  }
  verify(*program, device.backend().target());
  return CompiledGraph(std::make_shared<CompiledGraph::Impl>(
      std::make_shared<Programs>(graph, device, options, std::move(program)), device));
} catch (const std::exception&) {
  runtime::rethrow_as_ours("load", graph.name());
}

std::span<const Port> CompiledGraph::inputs() const& noexcept { return impl_->programs->inputs(); }
std::span<const Type> CompiledGraph::outputs() const& noexcept {
  return impl_->programs->outputs();
}
std::span<const std::string> CompiledGraph::output_names() const& noexcept {
  return *impl_->programs->output_names();
}

std::size_t CompiledGraph::input_index(std::string_view name) const {
  return impl_->programs->input_named(name);
}
std::size_t CompiledGraph::output_index(std::string_view name) const {
  return output_named(output_names(), name);
}

namespace {

template <class Pointer, class Index>
std::vector<Pointer> in_order(std::span<const std::pair<std::string_view, Pointer>> buffers,
                              std::size_t count, Index&& index) {
  std::vector<Pointer> out(count, nullptr);
  std::vector<bool> given(count, false);
  for (const auto& [name, buffer] : buffers) {
    const std::size_t k = index(name);
    if (given[k]) throw UserError(ErrorCode::Name, fmt::format("'{}' is given twice", name));
    given[k] = true;
    out[k] = buffer;
  }
  return out;
}

}  // namespace

std::vector<const void*> CompiledGraph::bind_inputs(const NamedInputBuffers& buffers) const {
  return in_order<const void*>(buffers, inputs().size(),
                               [&](std::string_view name) { return input_index(name); });
}
std::vector<void*> CompiledGraph::bind_outputs(const NamedOutputBuffers& buffers) const {
  return in_order<void*>(buffers, outputs().size(),
                         [&](std::string_view name) { return output_index(name); });
}

void CompiledGraph::set_param(std::string_view name, const Tensor& value) {
  set_param(impl_->programs->input_named(name), value);
}

void CompiledGraph::set_param(std::size_t input, const Tensor& value) try {
  const Port& port = impl_->port(input);
  if (!could_be(value.type(), port.type)) {
    throw UserError(
        Diagnostic{value.dtype() == port.type.dtype ? ErrorCode::Shape : ErrorCode::DType,
                   "param",
                   fmt::format("'{}' is {}, but {} is given", port.name, port.type.to_string(),
                               value.type().to_string()),
                   {},
                   {},
                   {}});
  }
  const Tensor plain = usable(value);
  const std::unique_lock lock(impl_->params.mutex());
  impl_->params.set(input, plain, impl_->programs->is_donated(input));
} catch (const std::exception&) {
  runtime::rethrow_as_ours("keep", impl_->port(input).name);
}

Tensor CompiledGraph::param(std::string_view name) const {
  return param(impl_->programs->input_named(name));
}

Tensor CompiledGraph::param(std::size_t input) const {
  const Port& port = impl_->port(input);
  const std::shared_lock lock(impl_->params.mutex());
  if (!impl_->params.has(input)) {
    throw UserError(ErrorCode::Name, fmt::format("'{}' has no value yet", port.name),
                    "call set_param");
  }
  return impl_->params.get(input);
}

Outputs CompiledGraph::run(const Feeds& feeds, const RunOptions& options) const try {
  const DefaultFloatEnvironment floats;
  const StopScope stoppable(options.stop);
  Programs& programs = *impl_->programs;
  if (const auto packed = impl_->packed_for(feeds))
    return CompiledGraph(packed).run(feeds, options);
  std::shared_lock lock(impl_->params.mutex());
  const Feeds all = with_kept(programs, impl_->params, feeds);
  // Tensors on the host stay alive by themselves, and change only where they are donated.
  if (!programs.has_donations() && impl_->device.backend().memory().is_host()) lock.unlock();
  const CheckedFeeds checked = check_feeds(programs.graph(), all, options.symbols);
  const std::shared_ptr<BoundProgram> program = programs.bound(checked.bindings);
  const LeasedContext context(*program, program->output_bytes());
  runtime::Staging staging(impl_->device.backend().memory(), program->program());
  const ParamStore* kept = lock.owns_lock() ? &impl_->params : nullptr;
  const Fed fed(programs, kept, feeds, checked, staging);
  Results results(programs.outputs(), checked.bindings);
  for (std::size_t o = 0; o < results.data.size(); ++o) {
    staging.stage_output(o, results.data[o], -1);
  }
  run_program({programs, *program, impl_->device, *context}, fed.data, results.data,
              checked.bindings, options);
  staging.collect();
  return {std::move(results.tensors), programs.output_names()};
} catch (const std::exception&) {
  runtime::rethrow_as_ours("run", impl_->programs->graph().name());
}

Outputs CompiledGraph::update(const Feeds& feeds, const RunOptions& options) try {
  const DefaultFloatEnvironment floats;
  const StopScope stoppable(options.stop);
  Programs& programs = *impl_->programs;
  const std::unique_lock lock(impl_->params.mutex());
  for (std::size_t k = 0; k < programs.inputs().size(); ++k) {
    const std::string& name = programs.inputs()[k].name;
    if (programs.is_donated(k) && feeds.contains(name)) {
      throw UserError(ErrorCode::Name,
                      fmt::format("'{}' is updated in place and cannot be fed", name),
                      "call set_param, or run");
    }
  }
  const CheckedFeeds checked =
      check_feeds(programs.graph(), with_kept(programs, impl_->params, feeds), options.symbols);
  const std::shared_ptr<BoundProgram> program = programs.bound(checked.bindings);
  runtime::Staging staging(impl_->device.backend().memory(), program->program());
  const Fed fed(programs, &impl_->params, feeds, checked, staging);
  std::int64_t results_bytes = 0;
  for (std::size_t o = 0; o < programs.outputs().size(); ++o) {
    const BufferId b = program->program().outputs[o];
    if (programs.donor_of(o) < 0) {
      results_bytes += program->program().buffers[static_cast<std::size_t>(b)].bytes();
    }
  }
  const LeasedContext context(*program, results_bytes);
  std::vector<Tensor> results;
  results.reserve(programs.outputs().size());
  std::vector<std::byte*> outputs;
  for (std::size_t o = 0; o < programs.outputs().size(); ++o) {
    const int donor = programs.donor_of(o);
    if (donor >= 0) {
      outputs.push_back(impl_->params.mutable_data(static_cast<std::size_t>(donor)));
      continue;
    }
    results.push_back(Tensor::zeros(programs.outputs()[o].bind(checked.bindings)));
    outputs.push_back(results.back().mutable_data());
    staging.stage_output(o, outputs.back(), -1);
  }
  run_program({programs, *program, impl_->device, *context}, fed.data, outputs, checked.bindings,
              options);
  staging.collect();
  return {std::move(results), programs.kept_output_names()};
} catch (const std::exception&) {
  runtime::rethrow_as_ours("run", impl_->programs->graph().name());
}

namespace {

// A context while it runs.
class InUse {
 public:
  InUse(OneAtATime& one, const std::string& program) : one_(one) {
    if (one_.try_enter()) return;
    throw UserError(ErrorCode::Busy,
                    fmt::format("another thread is running '{}' with this context", program),
                    "make a context for each thread");
  }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;
  ~InUse() { one_.leave(); }

 private:
  OneAtATime& one_;
};

// A value that is kept may have been given for other sizes than those of a context.
void require_size(const ParamStore& store, std::size_t input, const Port& port,
                  const SymbolBindings& sizes) {
  const Type wanted = port.type.bind(sizes);
  const Type& kept = store.type(input);
  if (kept == wanted) return;
  throw UserError(ErrorCode::Shape,
                  fmt::format("the value kept for '{}' is {}, the context is for {}", port.name,
                              kept.to_string(), wanted.to_string()),
                  "call set_param with a value of that size, or make another context");
}

}  // namespace

ExecutionContext CompiledGraph::make_context(const SymbolBindings& sizes) const try {
  const DefaultFloatEnvironment floats;
  Programs& programs = *impl_->programs;
  const std::set<std::string> symbols = programs.graph().symbols();
  for (const auto& [name, size] : sizes) {
    if (symbols.contains(name)) continue;
    throw UserError(ErrorCode::Name,
                    fmt::format("'{}' has no size named '{}'", programs.graph().name(), name));
  }
  for (const std::string& symbol : symbols) {
    if (sizes.contains(symbol)) continue;
    throw UserError(ErrorCode::NeedsStaticDim, fmt::format("the size of '{}' is not given", symbol),
                    fmt::format(R"(make_context({{{{"{}", 32}}}}))", symbol));
  }
  auto made = std::make_unique<ExecutionContext::Impl>(impl_->programs, programs.bound(sizes),
                                                       sizes, impl_->device.backend().memory());
  if (const auto packed = impl_->packed()) {
    made->take_packed(CompiledGraph(packed).make_context(sizes));
  } else {
    (void)made->room();
  }
  return ExecutionContext(std::move(made));
} catch (const std::exception&) {
  runtime::rethrow_as_ours("run", impl_->programs->graph().name());
}

void CompiledGraph::run(ExecutionContext& context, std::span<const void* const> inputs,
                        std::span<void* const> outputs, const RunOptions& options) const try {
  std::optional<StopFlagScope> stoppable;
  if (options.stop.flag() != nullptr) stoppable.emplace(options.stop.flag());
  Programs& programs = *impl_->programs;
  ExecutionContext::Impl* c = context.impl_.get();
  if (c == nullptr || c->programs != impl_->programs) {
    throw UserError(
        ErrorCode::Name,
        fmt::format("the context was made for another program than '{}'", programs.graph().name()),
        "use make_context() of this compiled graph");
  }
  const InUse in_use(c->one_run, programs.graph().name());
  if (const auto packed = impl_->packed_for(inputs)) {
    if (!c->packed) c->take_packed(CompiledGraph(packed).make_context(c->bindings));
    std::ranges::copy(inputs, c->packed_inputs.begin());
    CompiledGraph(packed).run(*c->packed, c->packed_inputs, outputs, options);
    return;
  }
  const Call call{programs, *c->program, impl_->device, c->room()};
  if (c->is_again(inputs, outputs)) {
    run_program(call, c->inputs, c->outputs, c->bindings, options);
    return;
  }
  c->all_given = false;
  if (inputs.size() != c->inputs.size() || outputs.size() != c->outputs.size()) {
    throw UserError(
        ErrorCode::Name,
        fmt::format("{} inputs and {} outputs are given, '{}' has {} and {}", inputs.size(),
                    outputs.size(), programs.graph().name(), c->inputs.size(), c->outputs.size()));
  }
  const bool reads = std::ranges::find(inputs, nullptr) != inputs.end();
  const bool some_missing = std::ranges::find(outputs, nullptr) != outputs.end();
  const bool writes = programs.has_donations() && some_missing;
  const ParamStore& store = impl_->params;
  std::shared_lock reading(store.mutex(), std::defer_lock);
  std::unique_lock writing(store.mutex(), std::defer_lock);
  if (writes) {
    writing.lock();
  } else if (reads) {
    reading.lock();
  }
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const bool kept = inputs[k] == nullptr && store.has(k);
    if (kept && !c->bindings.empty()) require_size(store, k, programs.inputs()[k], c->bindings);
    c->inputs[k] = kept ? store.data(k) : static_cast<const std::byte*>(inputs[k]);
  }
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const int donor = programs.donor_of(o);
    const bool kept =
        outputs[o] == nullptr && donor >= 0 && inputs[static_cast<std::size_t>(donor)] == nullptr;
    c->outputs[o] = kept ? store.mutable_data(static_cast<std::size_t>(donor))
                         : static_cast<std::byte*>(outputs[o]);
  }
  c->check.check(c->inputs, c->outputs);
  c->all_given = !reads && !some_missing && impl_->device.backend().memory().is_host();
  c->staging.begin();
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (inputs[k] != nullptr) c->staging.stage_input(k, c->inputs[k]);
  }
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    if (outputs[o] != nullptr) c->staging.stage_output(o, c->outputs[o], programs.donor_of(o));
  }
  run_program(call, c->inputs, c->outputs, c->bindings, options);
  c->staging.collect();
} catch (const std::exception&) {
  runtime::rethrow_as_ours("run", impl_->programs->graph().name());
}

const Program& CompiledGraph::program() const { return impl_->programs->only()->program(); }

std::string_view CompiledGraph::served_by(std::size_t step) const {
  if (step >= program().steps.size()) {
    throw UserError(ErrorCode::Name, fmt::format("'{}' has {} steps, none is number {}",
                                                 program().name, program().steps.size(), step));
  }
  return impl_->programs->only()->executable().served_by(step);
}

std::int64_t CompiledGraph::workspace_bytes() const {
  return impl_->programs->only()->executable().workspace_bytes();
}

void CompiledGraph::release_memory() const { impl_->programs->forget_contexts(); }

std::string CompiledGraph::report() const {
  return report_of(impl_->programs->only()->executable());
}

}  // namespace ricci
