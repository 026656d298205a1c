#include "ricci/runtime/compiled_graph.h"

#include <algorithm>
#include <map>
#include <mutex>

#include <fmt/format.h>

#include "ricci/op/ops.h"
#include "ricci/support/error.h"

#include "backend/cpu/executable.h"
#include "runtime/report.h"

namespace ricci {

struct ExecutionContext::Impl {
  explicit Impl(const cpu::Executable& e) : executable(&e), context(e) {}
  const cpu::Executable* executable;
  cpu::Context context;
};

ExecutionContext::ExecutionContext(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ExecutionContext::ExecutionContext(ExecutionContext&&) noexcept = default;
ExecutionContext& ExecutionContext::operator=(ExecutionContext&&) noexcept = default;
ExecutionContext::~ExecutionContext() = default;
std::int64_t ExecutionContext::bytes() const noexcept { return impl_->context.bytes(); }

struct CompiledGraph::Impl {
  Impl(Graph g, Device d, CompileOptions o)
      : graph(std::move(g)), device(std::move(d)), options(o) {}

  Graph graph;
  Device device;
  CompileOptions options;
  std::vector<Port> inputs;
  std::vector<Type> outputs;
  bool is_static = true;
  std::mutex mutex;
  std::map<std::string, Tensor, std::less<>> params;
  std::map<SymbolBindings, std::shared_ptr<cpu::Executable>> programs;

  std::shared_ptr<cpu::Executable> program(const SymbolBindings& bindings) {
    {
      const std::lock_guard lock(mutex);
      const auto found = programs.find(bindings);
      if (found != programs.end()) return found->second;
    }
    const Graph bound = bindings.empty() ? graph : graph.bind(bindings);
    auto made =
        std::make_shared<Program>(make_program(bound, {options.fuse, cpu::claims, donated()}));
    auto executable = std::make_shared<cpu::Executable>(std::move(made));
    const std::lock_guard lock(mutex);
    return programs.emplace(bindings, std::move(executable)).first->second;
  }

  [[nodiscard]] std::vector<Donated> donated() const {
    std::vector<Donated> out;
    for (const Donation& d : options.donations) {
      const auto port = std::ranges::find(inputs, d.input, &Port::name);
      if (port == inputs.end()) (void)graph.find_or_throw(d.input);
      if (d.output >= outputs.size() || outputs[d.output] != port->type) {
        throw UserError(ErrorCode::Shape,
                        fmt::format("output {} cannot take the buffer of '{}'", d.output, d.input),
                        "a donated input has the type of the output that replaces it");
      }
      out.push_back({d.output, static_cast<std::size_t>(port - inputs.begin())});
    }
    return out;
  }

  [[nodiscard]] const cpu::Executable& only() {
    if (!is_static) {
      throw UserError(
          ErrorCode::NeedsStaticDim,
          fmt::format("'{}' has symbolic dimensions: its program depends on their sizes",
                      graph.name()),
          "bind them first: graph.bind({{\"n\", 32}})");
    }
    return *program({});
  }
};

CompiledGraph::CompiledGraph(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

CompiledGraph compile(const Graph& graph, const Device& device, const CompileOptions& options) {
  auto impl = std::make_shared<CompiledGraph::Impl>(graph, device, options);
  for (const Node& node : impl->graph.nodes()) {
    if (const auto* in = node.op.as<op::Input>())
      impl->inputs.push_back({in->name, in->type, false});
    if (const auto* p = node.op.as<op::Param>()) impl->inputs.push_back({p->name, p->type, true});
  }
  for (const ValueId v : impl->graph.outputs()) impl->outputs.push_back(impl->graph.type(v));
  impl->is_static = impl->graph.symbols().empty();
  if (impl->is_static) (void)impl->program({});
  return CompiledGraph(std::move(impl));
}

std::span<const Port> CompiledGraph::inputs() const noexcept { return impl_->inputs; }
std::span<const Type> CompiledGraph::outputs() const noexcept { return impl_->outputs; }

void CompiledGraph::set_param(std::string_view name, Tensor value) {
  for (const Port& p : impl_->inputs) {
    if (p.name != name) continue;
    if (p.type.is_static() && value.type() != p.type) {
      throw UserError(value.dtype() == p.type.dtype ? ErrorCode::Shape : ErrorCode::DType,
                      fmt::format("'{}' is {}, but {} is given", name, p.type.to_string(),
                                  value.type().to_string()));
    }
    const std::lock_guard lock(impl_->mutex);
    impl_->params.insert_or_assign(std::string(name), std::move(value));
    return;
  }
  (void)impl_->graph.find_or_throw(name);
}

Tensor CompiledGraph::param(std::string_view name) const {
  const std::lock_guard lock(impl_->mutex);
  const auto found = impl_->params.find(name);
  if (found == impl_->params.end()) {
    throw UserError(ErrorCode::Name, fmt::format("'{}' has no value yet", name), "call set_param");
  }
  return found->second;
}

std::vector<Tensor> CompiledGraph::run(const Feeds& feeds, const RunOptions& options) const {
  Feeds all = feeds;
  {
    const std::lock_guard lock(impl_->mutex);
    for (const auto& [name, value] : impl_->params) all.emplace(name, value);
  }
  const CheckedFeeds checked = check_feeds(impl_->graph, all, options.symbols);
  const std::shared_ptr<cpu::Executable> executable = impl_->program(checked.bindings);
  std::vector<Tensor> held;  // row-major, alive while the program runs
  std::vector<const std::byte*> inputs;
  for (const Tensor& t : checked.values) {
    held.push_back(t.contiguous());
    inputs.push_back(held.back().data());
  }
  std::vector<Tensor> results;
  std::vector<std::byte*> outputs;
  for (const ValueId v : impl_->graph.outputs()) {
    results.push_back(Tensor::zeros(impl_->graph.type(v).bind(checked.bindings)));
  }
  for (Tensor& t : results) outputs.push_back(t.mutable_data());
  cpu::Context context(*executable);
  executable->run(context, impl_->device.pool(), {inputs, outputs, options.seed, nullptr});
  return results;
}

ExecutionContext CompiledGraph::make_context() const {
  return ExecutionContext(std::make_unique<ExecutionContext::Impl>(impl_->only()));
}

void CompiledGraph::run(ExecutionContext& context, std::span<const void* const> inputs,
                        std::span<void* const> outputs, const RunOptions& options) const {
  const cpu::Executable& e = *context.impl_->executable;
  if (inputs.size() != e.program().inputs.size() || outputs.size() != e.program().outputs.size()) {
    throw UserError(ErrorCode::Name,
                    fmt::format("{} inputs and {} outputs are given, '{}' has {} and {}",
                                inputs.size(), outputs.size(), impl_->graph.name(),
                                e.program().inputs.size(), e.program().outputs.size()));
  }
  e.run(context.impl_->context, impl_->device.pool(),
        {{reinterpret_cast<const std::byte* const*>(inputs.data()), inputs.size()},
         {reinterpret_cast<std::byte* const*>(outputs.data()), outputs.size()},
         options.seed,
         nullptr});
}

const Program& CompiledGraph::program() const { return impl_->only().program(); }

std::int64_t CompiledGraph::workspace_bytes() const {
  const cpu::Executable& e = impl_->only();
  return e.program().arena_bytes + e.scratch_bytes();
}

std::string CompiledGraph::report() const { return report_of(impl_->only()); }

}  // namespace ricci
