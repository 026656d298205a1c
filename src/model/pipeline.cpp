#include "ricci/model/pipeline.h"

#include <algorithm>

#include <fmt/format.h>

#include "ricci/compiler/device/backend.h"
#include "ricci/compiler/rewrite/fuse.h"
#include "ricci/compiler/rewrite/pass.h"
#include "ricci/compiler/rule/expand.h"
#include "ricci/compiler/rule/lower.h"
#include "ricci/compiler/schedule/verify.h"
#include "ricci/ir/verify.h"
#include "ricci/op/ops.h"

#include "schedule/step_buffers.h"

namespace ricci {
namespace {

template <class F>
void for_steps(const Program& program, const F& f) {
  for (const Step& step : program.steps) {
    f(program, step);
    const auto* control = std::get_if<ControlStep>(&step.what);
    if (control == nullptr) continue;
    for (const auto& [role, body] : control->bodies) for_steps(*body, f);
  }
}

FusionReport fusion_report(const Graph& before, const Program& program) {
  FusionReport report;
  report.nodes_before = count_nodes(before);
  report.nodes_after = count_nodes(*program.graph);
  for_steps(program, [&](const Program&, const Step& step) {
    ++report.steps;
    const auto* call = std::get_if<CallStep>(&step.what);
    if (call != nullptr && (call->before || call->after)) {
      ++report.fused_nodes;
      schedule::for_attached(*call, [&](const Launch& launch) {
        ++report.kernels;
        ++report.attached;
        report.fused_nodes += launch.from.nodes.size();
      });
    }
    if (const auto* loop = std::get_if<LoopStep>(&step.what)) {
      ++report.kernels;
      report.fused_nodes += loop->loop.body.items.size();
      if (loop->loop.condition) report.fused_nodes += loop->loop.condition->items.size();
    }
    const auto* kernels = std::get_if<KernelStep>(&step.what);
    if (kernels == nullptr) return;
    if (kernels->launches.size() > 1) report.side_by_side += kernels->launches.size();
    for (const Launch& launch : kernels->launches) {
      ++report.kernels;
      const Origin& from = launch.from;
      if (from.nodes.size() > 1) report.fused_nodes += from.nodes.size();
      if (!from.apart_because.empty()) {
        report.misses.push_back({from.label, from.apart_because, from.where});
      }
    }
  });
  return report;
}

// Which way each kind of op of a prepared graph went; in each dtype, for some have a kernel in one
// and not in another.
class Dispatch {
 public:
  explicit Dispatch(const Program& program) {
    for_steps(program, [&](const Program& p, const Step& step) {
      for (const NodeId id : step.nodes) {
        const Kind op = kind_of(p.graph->node(id));
        if (std::holds_alternative<KernelStep>(step.what)) {
          ways_[op] = &DispatchReport::Count::kernel;
        } else if (const auto* call = std::get_if<CallStep>(&step.what)) {
          bool attached = false;
          schedule::for_attached(*call, [&](const Launch& launch) {
            attached = attached || std::ranges::count(launch.from.nodes, id) > 0;
          });
          if (attached) {
            ways_[op] = &DispatchReport::Count::kernel;
            continue;
          }
          ways_[op] = std::holds_alternative<loop::HostCall>(call->call)
                          ? &DispatchReport::Count::reference
                          : &DispatchReport::Count::native;
        } else {
          ways_[op] = &DispatchReport::Count::native;
          if (std::holds_alternative<LoopStep>(step.what)) add_written_out(p.graph->node(id));
        }
      }
    });
  }

  // The module's own nodes: what is not in the program was written out, or needs no work.
  void count(const Graph& graph, DispatchReport& report) const {
    for (const Node& node : graph.nodes()) {
      if (node.op.op_class() == OpClass::Leaf) continue;
      DispatchReport::Count& c = report.ops[std::string(node.op.mnemonic())];
      const auto way = ways_.find(kind_of(node));
      // What can be written out is; the reference's kernel then serves a rare case of it.
      const bool rare = way != ways_.end() && way->second == &DispatchReport::Count::reference &&
                        has_expansion(node.op.kind());
      if (way != ways_.end() && !rare) {
        ++(c.*way->second);
      } else if (has_expansion(node.op.kind()) || node.op.is<op::CustomFn>() ||
                 node.op.is<op::Reduce>()) {
        ++c.expanded;
      } else {
        ++c.view;
      }
      for (const Body& body : node.bodies) count(*body.graph, report);
    }
  }

 private:
  using Kind = std::pair<std::string, DType>;
  // What a loop computes is part of its function, but for what only says where elements are.
  void add_written_out(const Node& loop) {
    for (const Body& body : loop.bodies) {
      for (const Node& node : body.graph->nodes()) {
        if (node.op.op_class() == OpClass::Leaf) continue;
        if (lower_node(*body.graph, node).form == Lowering::Form::View) continue;
        ways_[kind_of(node)] = &DispatchReport::Count::kernel;
      }
    }
  }
  static Kind kind_of(const Node& node) {
    return {std::string(node.op.mnemonic()), node.types.empty() ? DType::F32 : node.types[0].dtype};
  }
  std::map<Kind, std::size_t DispatchReport::Count::*> ways_;
};

void require_clean(const FusionReport& report, const std::string& module) {
  const std::size_t patterns = report.patterns ? report.patterns->misses.size() : 0;
  if (report.misses.empty() && patterns == 0) return;
  Diagnostic d{
      ErrorCode::LowerFailed,
      "fusion",
      report.misses.empty()
          ? fmt::format("{} patterns of '{}' could not be fused", patterns, module)
          : fmt::format("{} kernels of '{}' could not be fused", report.misses.size(), module),
      report.misses.empty() ? report.patterns->misses.front().where : report.misses.front().where,
      {},
      {}};
  for (std::size_t i = 0; i < patterns; ++i) {
    d.notes.push_back(report.patterns->misses[i].to_string());
  }
  for (const FusionReport::Miss& m : report.misses) {
    d.notes.push_back(fmt::format("{}: {}", m.label, m.reason));
  }
  throw UserError(std::move(d));
}

}  // namespace

std::string FusionReport::to_string() const {
  std::string text =
      fmt::format("{} nodes, {} after preparation; {} steps, {} kernels in them, {} side by side "
                  "and {} attached to calls; {} nodes fused\n",
                  nodes_before, nodes_after, steps, kernels, side_by_side, attached, fused_nodes);
  for (const Miss& m : misses) {
    text += fmt::format("  {} stays apart: {}", m.label, m.reason);
    if (m.where.known()) text += fmt::format("  ({})", m.where.to_string());
    text += '\n';
  }
  if (patterns) text += patterns->to_string();
  return text;
}

std::string DispatchReport::to_string() const {
  std::string text = fmt::format("{:28} {:>7} {:>7} {:>9} {:>10} {:>6}\n", "op", "native", "kernel",
                                 "expanded", "reference", "view");
  for (const auto& [op, c] : ops) {
    text += fmt::format("{:28} {:>7} {:>7} {:>9} {:>10} {:>6}\n", op, c.native, c.kernel,
                        c.expanded, c.reference, c.view);
  }
  return text;
}

CompiledGraph Compiled::on(const Device& device, const CompileOptions& options) const {
  return load(module.graph(), module.as_lir(), device, options);
}

Compiled CompilePipeline::compile_module(const GraphModule& module) const {
  const schedule::Target& target = options_.device.backend().target();
  verify(module.graph());
  if (module.stage() == GraphStage::Lir) {
    const Graph& mir = module.graph();
    verify(*module.as_lir());
    Compiled c{module, fusion_report(mir, *module.as_lir()), {}};
    Dispatch(*module.as_lir()).count(mir, c.dispatch);
    return c;
  }
  Graph mir = module.into_graph();
  const Graph original = mir;
  const RegionLimits limits =
      options_.unfuse_elementwise_regions ? RegionLimits::unfuse_all() : options_.fusion_limits;
  mir = unfuse_elementwise_regions(mir, limits).graph;
  mir = legalize_or_rewrite_for_backend(mir, options_.supported, "the target",
                                        options_.kernel_dispatch)
            .graph;
  std::optional<PatternReport> patterns;
  if (options_.fuse_patterns) {
    Graph fused = fuse_patterns(mir, options_.supported).graph;
    patterns = report_patterns(mir, fused);
    mir = std::move(fused);
  }
  auto program = std::make_shared<const Program>(
      make_program(mir, {.fuse = options_.fuse, .target = &target}));
  Compiled c{GraphModule::from_lir(std::move(mir), program), fusion_report(original, *program), {}};
  c.fusion.patterns = std::move(patterns);
  Dispatch(*program).count(original, c.dispatch);
  if (options_.assert_fusion_clean) require_clean(c.fusion, module.name());
  return c;
}

Compiled CompilePipeline::compile_graph(const Graph& graph) const {
  return compile_module(GraphModule::from_graph(graph));
}

Compiled CompilePipeline::specialize(const GraphModule& module,
                                     const SymbolBindings& bindings) const {
  verify(module.graph());
  return compile_module(GraphModule::from_mir(module.into_graph().bind(bindings)));
}

}  // namespace ricci
