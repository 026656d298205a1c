#include "ricci/model/module.h"

#include <algorithm>
#include <exception>

#include <fmt/format.h>

#include "ricci/compiler/schedule/program.h"
#include "ricci/ir/text.h"
#include "ricci/support/text.h"

#include "model/lower_blocks.h"

namespace ricci {
namespace {

const Node* first_block(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    if (node.op.op_class() == OpClass::Block) return &node;
    for (const Body& body : node.bodies) {
      if (const Node* found = first_block(*body.graph)) return found;
    }
  }
  return nullptr;
}

// Lowers blocks, in bodies too; everything else is copied.
Graph lower_graph(const Graph& graph, FusionPolicy policy, IdMap* map) {
  Rebuilder r(graph);
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (node.op.op_class() != OpClass::Block) {
      std::vector<Body> bodies;
      for (const Body& b : node.bodies) {
        bodies.push_back(
            {b.role, std::make_shared<const Graph>(lower_graph(*b.graph, policy, nullptr))});
      }
      r.copy(id, std::move(bodies));
      continue;
    }
    try {
      Provenance from = node.provenance ? *node.provenance : Provenance{};
      from.origin = fmt::format("block '{}'", node.op.mnemonic());
      const ProvenanceScope scope(r.to(), from);
      const std::vector<Value> results =
          model::lower_block(node.op, {r.to(), r.operands(node), policy, node.wanted});
      for (std::uint32_t i = 0; i < results.size(); ++i) {
        if (!results[i].valid()) continue;
        r.map({id, i}, results[i]);
        if (!node.names[i].empty()) r.to().set_value_name(results[i].id(), node.names[i]);
      }
    } catch (const UserError& cause) {
      if (cause.code() == ErrorCode::Stopped) throw;
      Diagnostic d{ErrorCode::LowerFailed,
                   std::string(node.op.mnemonic()),
                   fmt::format("the block '{}' cannot be lowered", node.op.mnemonic()),
                   node.provenance ? node.provenance->where : SourcePosition{},
                   {cause.what()},
                   {}};
      std::throw_with_nested(UserError(std::move(d)));
    }
  }
  if (map != nullptr) *map = r.id_map();
  return r.finish();
}

}  // namespace

std::string_view name(GraphStage stage) noexcept {
  switch (stage) {
    case GraphStage::Hir: return "hir";
    case GraphStage::Mir: return "mir";
    case GraphStage::Lir: return "lir";
  }
  return "unknown";
}

std::string_view name(FusionPolicy policy) noexcept {
  switch (policy) {
    case FusionPolicy::Direct: return "direct";
    case FusionPolicy::Fusable: return "fusable";
    case FusionPolicy::ForAutodiff: return "for_autodiff";
  }
  return "unknown";
}

GraphModule GraphModule::define(std::string name, const std::function<Value(Graph&)>& build) {
  if (!build) {
    throw UserError(ErrorCode::Name, "a module is defined by a function that builds its graph");
  }
  GraphModule m = hir(std::move(name));
  m.finish_hir(build(m.graph_));
  return m;
}

GraphModule GraphModule::hir(std::string name) { return {Graph(std::move(name)), GraphStage::Hir}; }
GraphModule GraphModule::mir(std::string name) { return {Graph(std::move(name)), GraphStage::Mir}; }
GraphModule GraphModule::from_hir(Graph graph) { return {std::move(graph), GraphStage::Hir}; }

GraphModule GraphModule::from_mir(Graph graph) {
  if (const Node* block = first_block(graph)) {
    throw UserError(Diagnostic{
        ErrorCode::WrongStage,
        "block",
        fmt::format("'{}' is a block, which is legal only before lowering", block->op.mnemonic()),
        block->provenance ? block->provenance->where : SourcePosition{},
        {},
        "use GraphModule::from_hir(…).lower()"});
  }
  return {std::move(graph), GraphStage::Mir};
}

GraphModule GraphModule::from_graph(Graph graph) {
  const bool has_blocks = first_block(graph) != nullptr;
  return {std::move(graph), has_blocks ? GraphStage::Hir : GraphStage::Mir};
}

GraphModule GraphModule::from_lir(Graph mir, std::shared_ptr<const Program> program) {
  check_internal(program != nullptr, "a LIR module has a program");
  GraphModule m = from_mir(std::move(mir));
  m.stage_ = GraphStage::Lir;
  m.program_ = std::move(program);
  return m;
}

void GraphModule::require_stage(GraphStage wanted, std::string_view what) const {
  if (stage_ == wanted) return;
  throw UserError(Diagnostic{ErrorCode::WrongStage,
                             {},
                             fmt::format("{} needs a module at stage {}, but '{}' is at {}", what,
                                         ricci::name(wanted), name(), ricci::name(stage_)),
                             {},
                             {},
                             stage_ == GraphStage::Hir ? "lower it first" : ""});
}

GraphModule GraphModule::with_fusion_policy(FusionPolicy policy) const {
  require_stage(GraphStage::Hir, "a fusion policy");
  GraphModule m = *this;
  m.policy_ = policy;
  return m;
}

Value GraphModule::input(std::string name, Type type, std::source_location loc) {
  return graph_.input(std::move(name), std::move(type), loc);
}
Value GraphModule::param(std::string name, Type type, std::source_location loc) {
  return graph_.param(std::move(name), std::move(type), loc);
}

Value GraphModule::block(std::string name, const std::function<Value(Graph&)>& build) {
  const ProvenanceScope scope(graph_, {.label = name});
  const Value made = build(graph_);
  return made.named(std::move(name));
}

void GraphModule::finish_hir(Value output) {
  require_stage(GraphStage::Hir, "finish_hir");
  graph_.set_outputs({output});
}

GraphModule::Lowered GraphModule::lower() const { return lower(policy_); }
GraphModule::Lowered GraphModule::lower_for_autodiff() const {
  return lower(FusionPolicy::ForAutodiff);
}

GraphModule::Lowered GraphModule::lower(FusionPolicy policy) const {
  if (stage_ != GraphStage::Hir) return {*this, IdMap::identity(graph_)};
  IdMap map;
  Graph lowered = lower_graph(graph_, policy, &map);
  return {from_mir(std::move(lowered)), std::move(map)};
}

const Graph& GraphModule::as_hir() const {
  require_stage(GraphStage::Hir, "as_hir");
  return graph_;
}
const Graph& GraphModule::as_mir() const {
  require_stage(GraphStage::Mir, "as_mir");
  return graph_;
}
Graph GraphModule::into_hir() && {
  require_stage(GraphStage::Hir, "into_hir");
  return std::move(graph_);
}
const std::shared_ptr<const Program>& GraphModule::as_lir() const {
  require_stage(GraphStage::Lir, "as_lir");
  return program_;
}
Graph GraphModule::into_mir() && {
  if (stage_ != GraphStage::Lir) require_stage(GraphStage::Mir, "into_mir");
  return std::move(graph_);
}
Graph GraphModule::into_graph() const { return lower().module.graph_; }

std::string GraphModule::inspect() const {
  std::string head = fmt::format("// stage {}", ricci::name(stage_));
  if (stage_ == GraphStage::Hir) head += fmt::format(", policy {}", ricci::name(policy_));
  if (stage_ == GraphStage::Lir) return head + "\n" + to_string(*program_);
  return head + "\n" + print(graph_);
}

void ModuleExtensions::add(std::string name, Extension extension) {
  if (std::ranges::count(names(), name) > 0) {
    throw UserError(ErrorCode::Name, fmt::format("there is an extension '{}' already", name));
  }
  all_.emplace_back(std::move(name), std::move(extension));
}

std::vector<std::string> ModuleExtensions::names() const {
  std::vector<std::string> out;
  for (const auto& [name, extension] : all_) out.push_back(name);
  return out;
}

GraphModule ModuleExtensions::apply(std::string_view name, GraphModule module) const {
  for (const auto& [known, extension] : all_) {
    if (known == name) return extension(std::move(module));
  }
  const auto close = nearest(name, names());
  throw UserError(ErrorCode::Name, fmt::format("there is no extension '{}'", name),
                  close ? fmt::format("did you mean '{}'?", *close)
                        : fmt::format("there are: {}", join(names(), ", ")));
}

GraphModule ModuleExtensions::apply_all(GraphModule module) const {
  for (const auto& [name, extension] : all_) module = extension(std::move(module));
  return module;
}

}  // namespace ricci
