#include "runner/executor.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "runner/leaves.h"

namespace ricci::bench {
namespace {

// The CPU device.
class CompiledExecutor : public Executor {
 public:
  [[nodiscard]] std::string_view name() const override { return "ricci"; }

  void compile(const Workload& workload) override {
    compiled_.emplace(ricci::compile(workload.graph, Device::default_cpu(), options_for(workload)));
    context_.emplace(compiled_->make_context());
    const std::vector<Leaf> leaves = leaves_of(workload.graph);
    for (const Port& port : compiled_->inputs()) {
      const auto leaf = std::ranges::find(leaves, port.name, &Leaf::name);
      order_.push_back(static_cast<std::size_t>(leaf - leaves.begin()));
    }
  }

  void bind(std::span<std::byte* const> leaves, std::span<std::byte* const> outputs) override {
    inputs_.clear();
    for (const std::size_t i : order_) inputs_.push_back(leaves[i]);
    outputs_.assign(outputs.begin(), outputs.end());
  }

  void run() override { compiled_->run(*context_, inputs_, outputs_); }

  [[nodiscard]] std::int64_t peak_bytes() const override { return compiled_->workspace_bytes(); }

 private:
  std::optional<CompiledGraph> compiled_;
  std::optional<ExecutionContext> context_;
  std::vector<std::size_t> order_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
};

}  // namespace

CompileOptions options_for(const Workload& workload) {
  CompileOptions options;
  for (const Donation& d : workload.donated) options.donations.push_back({d.output, d.input});
  return options;
}

std::unique_ptr<Executor> make_executor() { return std::make_unique<CompiledExecutor>(); }

}  // namespace ricci::bench
