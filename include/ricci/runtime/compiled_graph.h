// A graph compiled for a device.
//
//   CompiledGraph f = compile(graph);
//   Outputs out = f.run({{"x", x}, {"w", w}});  // out[0], out["loss"]
//
// or, without a copy or an allocation per call, with buffers of your own:
//
//   ExecutionContext context = f.make_context();
//   f.run(context, inputs, outputs);          // pointers, in the order of inputs() and outputs()
//   f.run(context, f.bind_inputs({{"x", x}, {"w", w}}), f.bind_outputs({{"loss", loss}}));
//
// A compiled graph is a handle: copies are cheap and share its params. It is immutable but for
// them; any number of threads may run it, each with a context of its own. Graphs with symbolic
// dimensions are compiled once for each set of sizes they are run with.
//
// Params can be kept in it (`set_param`). Where an output replaces a param (a donation), `update`
// runs in place: no value is copied between the steps of a training loop.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ricci/interp/interpreter.h"
#include "ricci/ir/graph.h"
#include "ricci/runtime/device.h"
#include "ricci/support/stop.h"

namespace ricci {

struct Program;  // ricci/compiler/schedule/program.h

/// An output that replaces the value of an input or param: both are one buffer.
struct Donation {
  std::size_t output = 0;
  std::string input;
  friend bool operator==(const Donation&, const Donation&) = default;
};

struct CompileOptions {
  bool fuse = true;  ///< put ops that walk the same elements into one kernel
  /// Outputs that may be given the buffers of inputs.
  std::vector<Donation> donations = {};
  /// Graphs with symbolic dimensions: for how many sets of sizes programs are kept.
  std::size_t max_bindings = 16;
  /// Bytes that temporaries and results of a run may take; 0 means all the memory of the machine.
  std::int64_t memory_limit = 0;
  /// Bytes a run may need besides inputs and outputs: values are computed again instead of kept
  /// where that is needed to fit, which changes no bit of a result. UserError(out_of_memory) when
  /// that cannot be met; 0 means as many as it takes.
  std::int64_t memory_budget = 0;
  /// Products of one value with several params, as the queries, keys and values of attention, are
  /// one product while the values of these params are kept (`set_param`): they are put side by side
  /// once. Not where outputs replace params.
  bool pack_params = true;
  /// A folder where compiled kernels are kept between processes; none when empty. UserError(file)
  /// when others own it or may write to it: its code would be run. See `default_code_cache()`.
  std::string code_cache = {};
  /// About how many bytes that folder may take; what was used longest ago goes first.
  std::int64_t code_cache_limit = std::int64_t{1} << 30;
  /// Matrix products and convolutions of f32 may round their operands to tf32, which has 10 bits
  /// behind the first instead of 23: many times faster where the hardware has it (`cuda`), with
  /// sums in f32 as before. Reports say of which that is so; devices without it take no notice.
  bool tf32_products = false;

  friend bool operator==(const CompileOptions&, const CompileOptions&) = default;
};

/// The folder for compiled kernels that the environment names: RICCI_CACHE_DIR (empty: none), or
/// else `ricci` in XDG_CACHE_HOME or in ~/.cache. Nothing uses it unasked.
[[nodiscard]] std::string default_code_cache();

/// An input or param.
struct Port {
  std::string name;
  Type type;
  bool is_param = false;
};

class Profile;

struct RunOptions {
  std::uint64_t seed = 0;       ///< for random ops
  SymbolBindings symbols = {};  ///< sizes that the shapes of the feeds do not decide
  Profile* profile = nullptr;   ///< times of the steps are added to it
  /// Looks at every value and stops with UserError at the first op that makes a NaN or an infinity
  /// of numbers that are finite; bodies are looked into. For debugging: the program is run op by op
  /// first, and nothing is updated in place when a fault is found.
  bool check_finite = false;
  /// Ends the run early with UserError(stopped): it is asked between steps and tiles and, within
  /// loops, every so many iterations. Everything stays usable; outputs hold what they held or some
  /// new values, and params that are updated in place may be updated in part.
  StopToken stop = {};
};

/// What a run needs besides the program: its arena. One run at a time: UserError(busy) when two
/// threads run with one.
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

/// A caller's buffers by name.
using NamedInputBuffers = std::vector<std::pair<std::string_view, const void*>>;
using NamedOutputBuffers = std::vector<std::pair<std::string_view, void*>>;

class CompiledGraph {
 public:
  /// Inputs and params, in order of creation.
  [[nodiscard]] std::span<const Port> inputs() const& noexcept;
  std::span<const Port> inputs() const&& = delete;
  [[nodiscard]] std::span<const Type> outputs() const& noexcept;
  std::span<const Type> outputs() const&& = delete;
  /// What each output is called; see Graph::output_names.
  [[nodiscard]] std::span<const std::string> output_names() const& noexcept;
  std::span<const std::string> output_names() const&& = delete;
  /// The place of an input or param, or of an output. UserError(name) when there is none.
  [[nodiscard]] std::size_t input_index(std::string_view name) const;
  [[nodiscard]] std::size_t output_index(std::string_view name) const;
  /// Pointers in the order of `inputs()`, and of `outputs()`, for runs with buffers: made once,
  /// used for many runs. What is not named is null. UserError(name) for a name that is none, or
  /// that comes twice.
  [[nodiscard]] std::vector<const void*> bind_inputs(const NamedInputBuffers& buffers) const;
  [[nodiscard]] std::vector<void*> bind_outputs(const NamedOutputBuffers& buffers) const;

  /// Keeps a value for a param (or an input); runs that do not feed it use this one. Elements are
  /// shared with `value` until a donation updates them: a tensor that borrows memory
  /// (`Tensor::borrow`) must not outlive it here either.
  void set_param(std::string_view name, const Tensor& value);
  void set_param(std::size_t input, const Tensor& value);
  /// The value kept for a param; UserError(name) when it has none yet.
  [[nodiscard]] Tensor param(std::string_view name) const;
  [[nodiscard]] Tensor param(std::size_t input) const;

  /// Runs with values by name. UserError when a value is missing, unknown or of another type, when
  /// there is no room, or when a kernel reports a fault; the compiled graph stays usable.
  [[nodiscard]] Outputs run(const Feeds& feeds, const RunOptions& options = {}) const;

  /// The same, with donated outputs computed where the kept values of their params lie: these take
  /// their new values. Gives the other outputs, in order. A kernel that faults leaves what was
  /// computed before it: params may be updated in part.
  Outputs update(const Feeds& feeds, const RunOptions& options = {});

  /// Room for runs with buffers of the caller's; for a graph with symbolic dimensions, for runs at
  /// these sizes.
  [[nodiscard]] ExecutionContext make_context(const SymbolBindings& sizes = {}) const;
  /// Runs with pointers to row-major elements, aligned for their dtype. An output may be the buffer
  /// of a donated input (see `CompileOptions::donations`), and must overlap nothing else. Null
  /// stands for the kept value of a param; null for a donated output updates that in place.
  /// Kernels, matrix products, loops and branches allocate nothing.
  void run(ExecutionContext& context, std::span<const void* const> inputs,
           std::span<void* const> outputs, const RunOptions& options = {}) const;

  /// The program: kernels, calls, buffers. Static graphs only.
  [[nodiscard]] const Program& program() const;
  /// What the compiler made of the graph, for people. Static graphs only.
  [[nodiscard]] std::string report() const;
  /// How a step of the program is served: `kernel` or `loop` (generated code), `matmul`, `conv`,
  /// `pool`, `attention`, `host`, `control` or `reference`.
  [[nodiscard]] std::string_view served_by(std::size_t step) const;
  /// Bytes a run needs besides inputs and outputs. Static graphs only.
  [[nodiscard]] std::int64_t workspace_bytes() const;
  /// Frees the room that runs by name keep for the next one.
  void release_memory() const;

 private:
  friend class Session;
  friend CompiledGraph compile(const Graph&, const Device&, const CompileOptions&);
  friend CompiledGraph load(const Graph&, std::shared_ptr<const Program>, const Device&,
                            const CompileOptions&);
  struct Impl;
  explicit CompiledGraph(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

[[nodiscard]] CompiledGraph compile(const Graph& graph, const Device& device = Device::standard(),
                                    const CompileOptions& options = {});

/// A program that was made from a graph before: its kernels become machine code, and nothing else
/// is decided anew. UserError when it was made from another graph, or with `options.donations`,
/// which are decided when a program is made.
[[nodiscard]] CompiledGraph load(const Graph& graph, std::shared_ptr<const Program> program,
                                 const Device& device = Device::standard(),
                                 const CompileOptions& options = {});

}  // namespace ricci
