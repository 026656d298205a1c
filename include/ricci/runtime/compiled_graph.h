// A graph compiled for a device.
//
//   CompiledGraph f = compile(graph);
//   std::vector<Tensor> out = f.run({{"x", x}, {"w", w}});
//
// or, without a copy or an allocation per call, with buffers of your own:
//
//   ExecutionContext context = f.make_context();
//   f.run(context, inputs, outputs);          // pointers, in the order of inputs() and outputs()
//
// A compiled graph is immutable but for its params; any number of threads may run it, each with a
// context of its own. Graphs with symbolic dimensions are compiled once for each set of sizes they
// are run with.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ricci/interp/interpreter.h"
#include "ricci/ir/graph.h"
#include "ricci/runtime/device.h"
#include "ricci/schedule/program.h"

namespace ricci {

/// An output that replaces the value of an input or param: both are one buffer.
struct Donation {
  std::size_t output = 0;
  std::string input;
};

struct CompileOptions {
  bool fuse = true;  ///< put ops that walk the same elements into one kernel
  /// Outputs that are given the buffers of inputs when run with buffers of the caller's.
  std::vector<Donation> donations = {};
};

/// An input or param.
struct Port {
  std::string name;
  Type type;
  bool is_param = false;
};

struct RunOptions {
  std::uint64_t seed = 0;       ///< for random ops
  SymbolBindings symbols = {};  ///< sizes that the shapes of the feeds do not decide
};

/// What a run needs besides the program: its arena. One run at a time.
class ExecutionContext {
 public:
  ExecutionContext(ExecutionContext&&) noexcept;
  ExecutionContext& operator=(ExecutionContext&&) noexcept;
  ~ExecutionContext();
  /// Bytes of memory it holds.
  [[nodiscard]] std::int64_t bytes() const noexcept;

 private:
  friend class CompiledGraph;
  struct Impl;
  explicit ExecutionContext(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

class CompiledGraph {
 public:
  /// Inputs and params, in order of creation.
  [[nodiscard]] std::span<const Port> inputs() const noexcept;
  [[nodiscard]] std::span<const Type> outputs() const noexcept;

  /// Gives a param its value; runs that do not feed it use this one.
  void set_param(std::string_view name, Tensor value);
  /// The value of a param; UserError(name) when it has none yet.
  [[nodiscard]] Tensor param(std::string_view name) const;

  /// Runs with values by name. UserError when a value is missing, unknown or of another type, or
  /// when a kernel reports a fault; the compiled graph stays usable.
  [[nodiscard]] std::vector<Tensor> run(const Feeds& feeds, const RunOptions& options = {}) const;

  /// Room for runs with buffers of the caller's. Static graphs only.
  [[nodiscard]] ExecutionContext make_context() const;
  /// Runs with pointers to row-major elements, aligned for their dtype. An output may be the buffer
  /// of a donated input (see `CompileOptions::donations`), and must overlap nothing else.
  void run(ExecutionContext& context, std::span<const void* const> inputs,
           std::span<void* const> outputs, const RunOptions& options = {}) const;

  /// The program: kernels, calls, buffers. Static graphs only.
  [[nodiscard]] const Program& program() const;
  /// What the compiler made of the graph, for people. Static graphs only.
  [[nodiscard]] std::string report() const;
  /// Bytes a run needs besides inputs and outputs. Static graphs only.
  [[nodiscard]] std::int64_t workspace_bytes() const;

 private:
  friend CompiledGraph compile(const Graph&, const Device&, const CompileOptions&);
  struct Impl;
  explicit CompiledGraph(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

[[nodiscard]] CompiledGraph compile(const Graph& graph,
                                    const Device& device = Device::default_cpu(),
                                    const CompileOptions& options = {});

}  // namespace ricci
