// From a module to a program for a device, one step after the other, with reports of what became of
// its ops.
//
//   CompilePipeline pipeline;
//   Compiled c = pipeline.compile_module(module);      // HIR or MIR in, LIR out
//   std::puts(c.fusion.to_string().c_str());
//   std::puts(c.dispatch.to_string().c_str());
//   CompiledGraph f = c.on(Device::cpu(4));            // ready to run
//
// `compile` and `Session` do the same without the reports.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ricci/compiler/rewrite/legalize.h"
#include "ricci/compiler/rewrite/pattern_report.h"
#include "ricci/compiler/rewrite/unfuse.h"
#include "ricci/model/module.h"
#include "ricci/runtime/compiled_graph.h"

namespace ricci {

/// What fusion did.
struct FusionReport {
  std::size_t nodes_before = 0;  ///< of the module, bodies included
  std::size_t nodes_after = 0;   ///< after preparation: what was scheduled
  std::size_t steps = 0;         ///< of the program and its bodies
  std::size_t kernels = 0;       ///< launches in them, and loops that are written out
  std::size_t side_by_side = 0;  ///< of these, how many share a step with another
  std::size_t attached = 0;      ///< and how many are part of a call's step
  std::size_t fused_nodes = 0;   ///< nodes that share a kernel or a written-out loop
  /// A kernel that could not be joined with one that makes its operands.
  struct Miss {
    std::string label;
    std::string reason;
    SourcePosition where;
  };
  std::vector<Miss> misses;
  std::optional<PatternReport> patterns;  ///< where `fuse_patterns` is asked for

  [[nodiscard]] std::string to_string() const;
};

/// How many nodes of each kind are served how.
struct DispatchReport {
  struct Count {
    std::size_t native = 0;     ///< by a kernel or library of its own
    std::size_t kernel = 0;     ///< by generated code
    std::size_t expanded = 0;   ///< written out in other ops first
    std::size_t reference = 0;  ///< by the reference kernel
    std::size_t view = 0;       ///< by nothing: folded, merged, or a way of reading
  };
  std::map<std::string, Count> ops;  ///< by mnemonic, of the module's own ops

  [[nodiscard]] std::string to_string() const;
};

struct PipelineOptions {
  bool fuse = true;  ///< put ops that walk the same elements into one kernel
  /// Regions in the module are written out; the scheduler fuses what is in them anew.
  bool unfuse_elementwise_regions = true;
  /// Regions that are kept must be within these; used where they are not all written out.
  RegionLimits fusion_limits = {.max_steps = 32, .max_inputs = 16};
  /// Makes fused ops of the patterns they stand for, as far as they are supported: for back ends
  /// with kernels for them. Ours fuse the nodes themselves.
  bool fuse_patterns = false;
  /// UserError(lower_failed) when the fusion report has misses.
  bool assert_fusion_clean = false;
  /// Ops the module may use after rewriting; others are written out, or are UserError.
  SupportedOps supported = {};
  /// Which way ops go that may have kernels and may be written out.
  KernelDispatch kernel_dispatch = {};
  Device device = Device::standard();  ///< programs are made for it
};

/// A module at stage LIR with the reports.
struct Compiled {
  GraphModule module;
  FusionReport fusion;
  DispatchReport dispatch;

  /// The program as it is, ready to run on the kind of device it was made for: see `load`.
  [[nodiscard]] CompiledGraph on(const Device& device = Device::standard(),
                                 const CompileOptions& options = {}) const;
};

class CompilePipeline {
 public:
  explicit CompilePipeline(PipelineOptions options = {}) : options_(std::move(options)) {}

  /// HIR is lowered under its own policy, MIR taken as it is; a LIR module passes through. Symbolic
  /// dimensions must be bound: see `specialize`.
  [[nodiscard]] Compiled compile_module(const GraphModule& module) const;
  [[nodiscard]] Compiled compile_graph(const Graph& graph) const;
  /// The same for a module with symbolic dimensions, at these sizes.
  [[nodiscard]] Compiled specialize(const GraphModule& module,
                                    const SymbolBindings& bindings) const;

 private:
  PipelineOptions options_;
};

}  // namespace ricci
