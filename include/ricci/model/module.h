// Modules: a graph that knows its stage. Models are defined with blocks (HIR), lowered to ops (MIR)
// under a fusion policy, and compiled to a program for one device (LIR).
//
//   GraphModule m = GraphModule::define("mlp", [](Graph& g) {
//     Value x = g.input("x", f32({32, 784}));
//     Value w = g.param("w", f32({784, 10}));
//     Value b = g.param("b", f32({10}));
//     return linear(x, w, b, {.activation = UnaryKind::Relu});
//   });
//   Graph mir = m.lower().module.into_graph();
#pragma once

#include <functional>
#include <memory>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ricci/build/build.h"
#include "ricci/ir/graph.h"
#include "ricci/ir/rebuild.h"
#include "ricci/op/block.h"

namespace ricci {

struct Program;  // ricci/compiler/schedule/program.h

/// How far a program has come: blocks, ops, or a program for one device.
enum class GraphStage : std::uint8_t { Hir, Mir, Lir };
[[nodiscard]] std::string_view name(GraphStage stage) noexcept;

/// What blocks are lowered to.
enum class FusionPolicy : std::uint8_t {
  Direct,       ///< fused ops
  Fusable,      ///< chains of primitives the fuser will find
  ForAutodiff,  ///< as Fusable, with blocks that ask to stay fused in primitives too
};
[[nodiscard]] std::string_view name(FusionPolicy policy) noexcept;

/// A graph at one of the three stages. A value: copying is cheap.
class GraphModule {
 public:
  /// A HIR module with one output, the value the callback returns.
  [[nodiscard]] static GraphModule define(std::string name,
                                          const std::function<Value(Graph&)>& build);
  /// Empty modules to build into through `graph()`.
  [[nodiscard]] static GraphModule hir(std::string name);
  [[nodiscard]] static GraphModule mir(std::string name);
  [[nodiscard]] static GraphModule from_hir(Graph graph);
  /// UserError(wrong_stage) when the graph holds a block.
  [[nodiscard]] static GraphModule from_mir(Graph graph);
  /// HIR when the graph holds a block, MIR otherwise.
  [[nodiscard]] static GraphModule from_graph(Graph graph);
  /// A program and the MIR it was made from, which stays inside it. See CompilePipeline.
  [[nodiscard]] static GraphModule from_lir(Graph mir, std::shared_ptr<const Program> program);

  [[nodiscard]] GraphStage stage() const noexcept { return stage_; }
  [[nodiscard]] const std::string& name() const noexcept { return graph_.name(); }
  [[nodiscard]] FusionPolicy fusion_policy() const noexcept { return policy_; }
  /// HIR only; UserError(wrong_stage) otherwise.
  [[nodiscard]] GraphModule with_fusion_policy(FusionPolicy policy) const;

  // Building; inputs and params may be added at every stage.
  [[nodiscard]] Graph& graph() noexcept { return graph_; }
  [[nodiscard]] const Graph& graph() const noexcept { return graph_; }
  Value input(std::string name, Type type,
              std::source_location loc = std::source_location::current());
  Value param(std::string name, Type type,
              std::source_location loc = std::source_location::current());
  /// What `build` makes, under a label that errors, dumps and profiles show for all its nodes; its
  /// value has the name.
  Value block(std::string name, const std::function<Value(Graph&)>& build);
  void set_outputs(std::span<const Value> outputs) { graph_.set_outputs(outputs); }
  /// Ends a HIR module: its one output.
  void finish_hir(Value output);

  /// A MIR module and where the values of this one went.
  struct Lowered;
  /// HIR becomes MIR under the module's policy; MIR is handed on as it is. UserError(lower_failed)
  /// names the block that could not be lowered.
  [[nodiscard]] Lowered lower() const;
  [[nodiscard]] Lowered lower(FusionPolicy policy) const;
  /// `lower` with the policy differentiation needs.
  [[nodiscard]] Lowered lower_for_autodiff() const;

  /// The graph of a HIR or MIR module; UserError(wrong_stage) at another stage.
  [[nodiscard]] const Graph& as_hir() const;
  [[nodiscard]] const Graph& as_mir() const;
  /// The program of a LIR module; UserError(wrong_stage) at another stage.
  [[nodiscard]] const std::shared_ptr<const Program>& as_lir() const;
  /// Of a LIR module, `into_mir` gives the MIR inside it.
  [[nodiscard]] Graph into_hir() &&;
  [[nodiscard]] Graph into_mir() &&;
  /// The MIR graph, lowering a HIR module first.
  [[nodiscard]] Graph into_graph() const;
  /// The stage, the policy and the graph as text.
  [[nodiscard]] std::string inspect() const;

 private:
  GraphModule(Graph graph, GraphStage stage) : graph_(std::move(graph)), stage_(stage) {}
  void require_stage(GraphStage wanted, std::string_view what) const;

  Graph graph_;
  GraphStage stage_;
  FusionPolicy policy_ = FusionPolicy::Direct;
  std::shared_ptr<const Program> program_;  // LIR
};

struct GraphModule::Lowered {
  GraphModule module;
  IdMap map;
};

/// `transformer_block` is what others call it.
inline Value transformer_block(std::span<const Value> operands, op::LlamaDecoderBlock attrs = {},
                               std::source_location loc = std::source_location::current()) {
  return llama_decoder_block(operands, std::move(attrs), loc);
}

/// Functions on modules by name: what a program adds to the blocks of its models.
class ModuleExtensions {
 public:
  using Extension = std::function<GraphModule(GraphModule)>;

  /// UserError(name) where the name is taken.
  void add(std::string name, Extension extension);
  [[nodiscard]] std::vector<std::string> names() const;
  /// UserError(name) with a suggestion for a name that is not there.
  [[nodiscard]] GraphModule apply(std::string_view name, GraphModule module) const;
  /// All of them, in the order they were added.
  [[nodiscard]] GraphModule apply_all(GraphModule module) const;

 private:
  std::vector<std::pair<std::string, Extension>> all_;
};

}  // namespace ricci
