// A graph's programs: one per set of sizes, shared by all compiled graphs made from it.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ricci/compiler/device/backend.h"
#include "ricci/runtime/compiled_graph.h"

#include "runtime/packed_params.h"
#include "support/fork.h"

namespace ricci::runtime {

/// UserError(needs_static_dim) when the sizes of a graph are not all numbers. `help` says how to
/// give one, with `{}` for its name.
void require_static(const Graph& graph, std::string_view help = R"(graph.bind({{{{"{}", 32}}}}))");
/// Inputs and params, in order of creation.
[[nodiscard]] std::vector<Port> ports_of(const Graph& graph);
/// For each output the input whose value it replaces, or -1. UserError when a donation names
/// something that is not there or does not fit.
[[nodiscard]] std::vector<int> donors_of(const Graph& graph, std::span<const Port> inputs,
                                         std::span<const Donation> donations);
/// The same as the scheduler takes it.
[[nodiscard]] std::vector<Donated> donated(std::span<const int> donors);

/// UserError(out_of_memory) when a program needs more bytes than its budget, unless that is 0.
void require_budget(const Program& program, std::int64_t needed, std::int64_t budget);

/// An executable and the contexts that wait for its next run.
class BoundProgram {
 public:
  BoundProgram(std::shared_ptr<const Program> program, const Device& device,
               const CompileOptions& options);

  [[nodiscard]] const device::Executable& executable() const noexcept { return *executable_; }
  [[nodiscard]] const Program& program() const noexcept { return executable_->program(); }
  /// Bytes of all outputs.
  [[nodiscard]] std::int64_t output_bytes() const noexcept { return output_bytes_; }

  /// Room for a run; UserError(out_of_memory) that says how much it would take.
  /// `besides` are bytes the run needs elsewhere.
  [[nodiscard]] std::unique_ptr<device::Context> make_context(std::int64_t besides = 0) const;
  /// The same, from those given back.
  [[nodiscard]] std::unique_ptr<device::Context> take_context(std::int64_t besides = 0);
  void give_back(std::unique_ptr<device::Context> context) noexcept;
  void forget_contexts();

 private:
  Device device_;
  std::unique_ptr<device::Executable> executable_;
  std::int64_t memory_limit_ = 0;
  std::int64_t output_bytes_ = 0;
  ForkMutex mutex_;
  std::vector<std::unique_ptr<device::Context>> idle_;
};

/// A context for one run, given back when it is done.
class LeasedContext {
 public:
  LeasedContext(BoundProgram& program, std::int64_t besides)
      : program_(program), context_(program.take_context(besides)) {}
  LeasedContext(const LeasedContext&) = delete;
  LeasedContext& operator=(const LeasedContext&) = delete;
  ~LeasedContext() { program_.give_back(std::move(context_)); }
  [[nodiscard]] device::Context& operator*() const noexcept { return *context_; }

 private:
  BoundProgram& program_;
  std::unique_ptr<device::Context> context_;
};

class Programs {
 public:
  /// `ready`: the program of a static graph, where it is there already.
  Programs(Graph graph, Device device, CompileOptions options,
           std::shared_ptr<const Program> ready = nullptr);

  [[nodiscard]] const Graph& graph() const noexcept { return graph_; }
  [[nodiscard]] const CompileOptions& options() const noexcept { return options_; }
  [[nodiscard]] std::span<const Port> inputs() const noexcept { return inputs_; }
  [[nodiscard]] std::span<const Type> outputs() const noexcept { return outputs_; }
  /// Of all outputs, and of those that replace no input.
  [[nodiscard]] const Outputs::Names& output_names() const noexcept { return output_names_; }
  [[nodiscard]] const Outputs::Names& kept_output_names() const noexcept { return kept_names_; }
  [[nodiscard]] bool is_static() const noexcept { return is_static_; }
  /// The input whose value an output replaces, or -1.
  [[nodiscard]] int donor_of(std::size_t output) const { return donors_[output]; }
  [[nodiscard]] bool is_donated(std::size_t input) const { return donated_[input]; }
  [[nodiscard]] bool has_donations() const noexcept { return !options_.donations.empty(); }
  /// Which input has a name; UserError(name) when none has.
  [[nodiscard]] std::size_t input_named(std::string_view name) const;

  [[nodiscard]] std::shared_ptr<BoundProgram> bound(const SymbolBindings& bindings);
  /// The program of a static graph; UserError(needs_static_dim) for others.
  [[nodiscard]] std::shared_ptr<BoundProgram> only();
  /// One kernel per op: for finding out which op did something. The last one is kept.
  [[nodiscard]] std::shared_ptr<BoundProgram> op_by_op(const SymbolBindings& bindings);
  void forget_contexts();
  /// What params are put together while their values are kept; null where there is none.
  [[nodiscard]] const Packing* packing() const noexcept { return packing_ ? &*packing_ : nullptr; }
  /// Which inputs these are made of.
  [[nodiscard]] const std::vector<std::size_t>& packed_inputs() const noexcept {
    return packed_inputs_;
  }
  /// The programs of the packed graph.
  [[nodiscard]] std::shared_ptr<Programs> packed();

 private:
  struct Entry {
    SymbolBindings bindings;
    std::shared_ptr<BoundProgram> program;
  };
  void find_packing();
  /// A program for these sizes, within the budget.
  [[nodiscard]] std::shared_ptr<BoundProgram> make(const SymbolBindings& bindings) const;
  /// The mutex must be held.
  [[nodiscard]] std::shared_ptr<BoundProgram> found(const SymbolBindings& bindings);

  Graph graph_;
  Device device_;
  CompileOptions options_;
  std::vector<Port> inputs_;
  std::vector<Type> outputs_;
  Outputs::Names output_names_;
  Outputs::Names kept_names_;
  std::vector<int> donors_;
  std::vector<bool> donated_;
  bool is_static_ = true;
  std::shared_ptr<BoundProgram> only_;
  ForkMutex mutex_;
  std::list<Entry> recent_;  // the last one used first
  Entry op_by_op_;
  std::optional<Packing> packing_;
  std::vector<std::size_t> packed_inputs_;
  std::shared_ptr<Programs> packed_;
};

}  // namespace ricci::runtime
