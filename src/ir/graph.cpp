#include "ricci/ir/graph.h"

#include <algorithm>

#include <fmt/format.h>

#include "ricci/op/leaf.h"
#include "ricci/op/table.h"
#include "ricci/support/hash.h"
#include "ricci/support/limits.h"
#include "ricci/support/stop.h"
#include "ricci/support/text.h"

#include "ir/random_keys.h"
#include "support/float_environment.h"

namespace ricci {
namespace {

void check_bodies(const OpDescriptor& d, std::span<const Body> bodies) {
  for (const Body& body : bodies) {
    if (body.graph == nullptr) {
      throw Rejection{ErrorCode::Attr,
                      fmt::format("{}_bodies", d.info->name),
                      fmt::format("body '{}' of '{}' is no graph", body.role, d.info->name),
                      {}};
    }
    if (body.graph->depth() >= MostNesting) {
      throw Rejection{ErrorCode::Attr,
                      fmt::format("{}_bodies", d.info->name),
                      fmt::format("bodies are nested more than {} deep", MostNesting),
                      {}};
    }
    if (!body.graph->params().empty()) {
      throw Rejection{
          ErrorCode::Name, fmt::format("{}_params", d.info->name),
          fmt::format("body '{}' declares the param '{}'", body.role,
                      body.graph->node(body.graph->params()[0]).op.as<op::Param>()->name),
          "declare params in the outer graph and hand them in as operands; close_over(body) turns "
          "a body's params into inputs"};
    }
  }
}

// Another graph in words; copies and moved-from graphs are easy to take for the original.
std::string other_graph(const Graph& other, const Graph& self) {
  if (other.size() == 0 && other.name().empty()) return "a graph that was moved away";
  if (other.name() == self.name()) return "another graph of that name, perhaps a copy";
  return fmt::format("the graph '{}'", other.name());
}

// A body is named by its role, as in the text form.
void name_by_role(Body& body) {
  if (body.graph->name() == body.role) return;
  Graph renamed = *body.graph;
  renamed.set_name(body.role);
  body.graph = std::make_shared<const Graph>(std::move(renamed));
}

}  // namespace

const std::string* Node::leaf_name() const {
  if (const auto* in = op.as<op::Input>()) return &in->name;
  if (const auto* p = op.as<op::Param>()) return &p->name;
  return nullptr;
}

const Graph* Node::body(std::string_view role) const {
  const auto it = std::ranges::find(bodies, role, &Body::role);
  return it == bodies.end() ? nullptr : it->graph.get();
}

Graph::Graph(std::string name) : Graph(std::move(name), default_registry()) {}
Graph::Graph(std::string name, const Registry& registry)
    : name_(std::move(name)), registry_(&registry) {}

Value Graph::input(std::string name, Type type, std::source_location where) {
  return input(std::move(name), std::move(type), op::InputRole{}, where);
}

Value Graph::input(std::string name, Type type, op::InputRole role, std::source_location where) {
  const NodeId id =
      add({.op = Op(op::Input{std::move(name), std::move(type), role}),
           .operands = {},
           .bodies = {},
           .wanted = {},
           .names = {},
           .provenance = {.label = {}, .where = SourcePosition::from(where), .origin = {}}});
  declared_.push_back({id, where});
  return value({id, 0});
}

Value Graph::param(std::string name, Type type, std::source_location where) {
  const Value made = add_node(Op(op::Param{std::move(name), std::move(type)}),
                              std::span<const Value>(), {}, where)[0];
  declared_.push_back({made.id().node, where});
  return made;
}

Value Graph::constant(const Tensor& value, std::source_location where) {
  return add_node(Op(op::Constant{value.canonical()}), {}, {}, where)[0];
}

std::vector<Value> Graph::add_node(Op op, std::span<const Value> operands, std::vector<Body> bodies,
                                   std::source_location where) {
  NodeSpec spec{.op = std::move(op),
                .operands = {},
                .bodies = std::move(bodies),
                .wanted = {},
                .names = {},
                .provenance = {.label = {}, .where = SourcePosition::from(where), .origin = {}}};
  for (const Value& v : operands) {
    // A body that is being built may use values of the graphs around it: the node is the body's.
    if (v.valid() && &v.graph() != this && v.graph().is_inside(*this)) {
      return v.graph().add_node(std::move(spec.op), operands, std::move(spec.bodies), where);
    }
    if (!v.valid()) {
      throw UserError(Diagnostic{ErrorCode::Name,
                                 "no_value",
                                 fmt::format("operand {} of '{}' is an empty Value",
                                             spec.operands.size(), spec.op.mnemonic()),
                                 spec.provenance.where,
                                 {},
                                 "take values from Graph::input, Graph::param or a builder"});
    }
    const std::optional<ValueId> operand = own(v);
    if (!operand) {
      throw UserError(
          {.code = ErrorCode::Name,
           .detail = "other_graph",
           .message = fmt::format("an operand of '{}' belongs to {}, not to '{}'",
                                  spec.op.mnemonic(), other_graph(v.graph(), *this), name_),
           .where = spec.provenance.where,
           .notes = {},
           .help = "build both from the inputs of one graph; only functions that build bodies of "
                   "cond, scan, while_loop and checkpoint see values of the graph around them: "
                   "hand others in as operands"});
    }
    spec.operands.push_back(*operand);
  }
  const NodeId id = add(std::move(spec));
  std::vector<Value> results;
  results.reserve(nodes_[id].types.size());
  for (std::uint32_t r = 0; r < nodes_[id].types.size(); ++r) results.push_back(value({id, r}));
  return results;
}

NodeId Graph::add(NodeSpec spec) {
  const DefaultFloatEnvironment floats;
  try {
    const OpDescriptor& d = descriptor(spec.op.kind());
    std::vector<Type> operand_types;
    for (const ValueId v : spec.operands) operand_types.push_back(readable_type(v));
    check_bodies(d, spec.bodies);
    for (Body& b : spec.bodies) name_by_role(b);
    std::vector<BodySignature> signatures;
    for (const Body& b : spec.bodies) signatures.push_back(b.graph->signature(b.role));
    check_signature(spec.op, operand_types.size(), signatures);
    if (spec.op.has(Trait::Random)) spec.op = with_key(spec.op);
    Op normal = normalize(spec.op, operand_types);
    Inferred inferred = infer_types(normal, operand_types, signatures, registry_);
    Node node{
        .op = std::move(normal),
        .operands = spec.operands,
        .types = std::move(inferred.types),
        .wanted = spec.wanted,
        .names = spec.names,
        .bodies = spec.bodies,
        .optional_from = inferred.optional_from.value_or(std::numeric_limits<std::size_t>::max()),
        .provenance = {}};
    if (node.wanted.empty()) {
      for (std::size_t r = 0; r < node.types.size(); ++r) {
        node.wanted.push_back(r < node.optional_from);
      }
    }
    node.wanted.resize(node.types.size(), false);
    node.names.resize(node.types.size());
    Provenance provenance = spec.provenance;
    if (!provenance_stack_.empty()) {
      const Provenance& outer = provenance_stack_.back();
      if (!outer.label.empty()) {
        provenance.label =
            provenance.label.empty() ? outer.label : outer.label + "/" + provenance.label;
      }
      if (outer.where.known()) provenance.where = outer.where;
      if (!outer.origin.empty()) provenance.origin = outer.origin;
    }
    node.provenance = std::make_shared<const Provenance>(std::move(provenance));
    return push(std::move(node));
  } catch (const Rejection& rejection) {
    fail(rejection, spec);
  }
}

void Graph::fail(const Rejection& rejection, const NodeSpec& spec) const {
  Diagnostic d{.code = rejection.code,
               .detail = rejection.detail,
               .message = rejection.message,
               .where = spec.provenance.where,
               .notes = {},
               .help = rejection.help};
  const OpDescriptor& info = descriptor(spec.op.kind());
  for (std::size_t k = 0; k < spec.operands.size(); ++k) {
    if (k == MostNotes) {
      d.notes.push_back(fmt::format("and {} more operands", spec.operands.size() - k));
      break;
    }
    const ValueId v = spec.operands[k];
    const Node& n = nodes_[v.node];
    std::string note =
        fmt::format("{} of '{}' is {}{}", parameter_name(info.operands, k, spec.operands.size()),
                    spec.op.mnemonic(),
                    n.names[v.result].empty() ? "" : fmt::format("%{} : ", n.names[v.result]),
                    n.types[v.result].to_string());
    if (n.provenance && n.provenance->where.known()) {
      note += fmt::format(", defined at {}", n.provenance->where.to_string());
    }
    d.notes.push_back(std::move(note));
  }
  throw UserError(std::move(d));
}

void Graph::register_name(const Node& node, NodeId id) {
  const std::string leaf = node.is_leaf() ? *node.leaf_name() : std::string();
  if (leaf.empty()) return;
  const auto [it, fresh] = leaf_names_.emplace(leaf, id);
  if (fresh) return;
  Diagnostic d{
      .code = ErrorCode::Name,
      .detail = "duplicate",
      .message = fmt::format("the graph '{}' already has an input or param '{}'", name_, leaf),
      .where = node.provenance ? node.provenance->where : SourcePosition{},
      .notes = {},
      .help = "every input and param needs a name of its own"};
  const Node& first = nodes_[it->second];
  if (first.provenance && first.provenance->where.known()) {
    d.notes.push_back("the first is at " + first.provenance->where.to_string());
  }
  throw UserError(std::move(d));
}

Op Graph::with_key(const Op& random) {
  std::vector<NamedAttr> attrs = random.attrs();
  const auto key = std::ranges::find(attrs, "key", &NamedAttr::name);
  check_internal(key != attrs.end(), "a random op has a field 'key'");
  if (!key->value.absent()) return random;
  key->value = {fresh_key()};
  return descriptor(random.kind()).make(attrs);
}

NodeId Graph::append(Node node) {
  keeps_leaf_order_ = keeps_leaf_order_ || node.is_leaf();
  return push(std::move(node));
}

NodeId Graph::push(Node node) {
  // All that makes graphs comes through here: readers, transforms, passes, functions being traced.
  throw_if_stopped();
  // Rules and passes that write something out step by step stop here, not at the end of memory.
  if (nodes_.size() >= MostNodes) {
    throw UserError(ErrorCode::Refused,
                    fmt::format("the graph '{}' would have more than {} nodes", name_, MostNodes),
                    "write long repetitions as a scan or a while");
  }
  const auto id = static_cast<NodeId>(nodes_.size());
  register_name(node, id);
  if (node.op.has(Trait::Random)) {
    for (const NamedAttr& a : node.op.attrs()) {
      const auto* key = a.name == "key" ? a.value.get<std::int64_t>() : nullptr;
      if (key != nullptr) next_key_ = next_key_after(next_key_, *key);
    }
  }
  for (const Body& b : node.bodies) {
    depth_ = std::max(depth_, b.graph->depth_ + 1);
    next_key_ = std::max(next_key_, b.graph->next_key_);
  }
  nodes_.push_back(std::move(node));
  return id;
}

std::int64_t Graph::fresh_key() { return take_key(next_key_); }

void Graph::set_outputs(std::span<const Value> outputs, std::source_location where) {
  sort_leaves();
  std::vector<ValueId> ids;
  for (const Value& v : outputs) {
    if (!v.valid()) {
      throw UserError(
          Diagnostic{ErrorCode::Name,
                     "no_value",
                     fmt::format("output {} of '{}' is an empty Value", ids.size(), name_),
                     SourcePosition::from(where),
                     {},
                     "take values from Graph::input, Graph::param or a builder"});
    }
    const std::optional<ValueId> output = own(v);
    if (!output) {
      throw UserError({.code = ErrorCode::Name,
                       .detail = "other_graph",
                       .message = fmt::format("an output of '{}' belongs to {}", name_,
                                              other_graph(v.graph(), *this)),
                       .where = SourcePosition::from(where),
                       .notes = {},
                       .help = "hand an outer value in as an operand and return the body's input"});
    }
    (void)readable_type(*output);
    ids.push_back(*output);
  }
  set_outputs(std::move(ids));
}

void Graph::set_outputs(std::initializer_list<NamedOutput> outputs, std::source_location where) {
  std::vector<Value> values;
  for (const NamedOutput& o : outputs) values.push_back(o.value);
  set_outputs(values, where);
  for (std::size_t i = 0; i < values.size(); ++i) set_output_name(i, outputs.begin()[i].name);
}

void Graph::set_wanted(ValueId value, bool wanted) {
  (void)type(value);
  nodes_[value.node].wanted[value.result] = wanted;
}

void Graph::set_value_name(ValueId value, std::string name) {
  (void)type(value);
  nodes_[value.node].names[value.result] = std::move(name);
}

const Node& Graph::node(NodeId id) const {
  if (id >= nodes_.size()) {
    throw UserError(ErrorCode::Name, fmt::format("the graph '{}' has no node {}", name_, id));
  }
  return nodes_[id];
}

const Type& Graph::type(ValueId value) const {
  const Node& n = node(value.node);
  if (value.result >= n.types.size()) {
    throw UserError(ErrorCode::Name, fmt::format("node {} ('{}') has no result {}", value.node,
                                                 n.op.mnemonic(), value.result));
  }
  return n.types[value.result];
}

const Type& Graph::readable_type(ValueId value) const {
  const Type& t = type(value);
  const Node& n = nodes_[value.node];
  if (!n.wanted[value.result]) {
    throw UserError(
        Diagnostic{ErrorCode::Name,
                   "unwanted",
                   fmt::format("result {} of '{}' is not computed", value.result, n.op.mnemonic()),
                   n.provenance ? n.provenance->where : SourcePosition{},
                   {},
                   "ask for it with Graph::set_wanted, or in NodeSpec::wanted"});
  }
  return t;
}

std::vector<Value> Graph::output_values() {
  std::vector<Value> out;
  for (const ValueId v : outputs_) out.push_back(value(v));
  return out;
}

namespace {

template <class Test>
std::vector<NodeId> nodes_that(std::span<const Node> nodes, Test test) {
  std::vector<NodeId> out;
  for (NodeId i = 0; i < nodes.size(); ++i) {
    if (test(nodes[i])) out.push_back(i);
  }
  return out;
}

}  // namespace

std::vector<NodeId> Graph::inputs() const {
  return nodes_that(nodes_, [](const Node& n) { return n.op.is<op::Input>(); });
}

std::vector<NodeId> Graph::params() const {
  return nodes_that(nodes_, [](const Node& n) { return n.op.is<op::Param>(); });
}

std::vector<NodeId> Graph::leaves() const {
  return nodes_that(nodes_, [](const Node& n) { return n.is_leaf(); });
}

std::optional<NodeId> Graph::find(std::string_view name) const {
  const auto it = leaf_names_.find(name);
  if (it == leaf_names_.end()) return std::nullopt;
  return it->second;
}

NodeId Graph::find_or_throw(std::string_view name) const {
  if (const auto id = find(name)) return *id;
  std::vector<std::string> known;
  for (const auto& [leaf, unused] : leaf_names_) known.push_back(leaf);
  const auto close = nearest(name, known);
  if (known.empty()) known.emplace_back("none");
  throw UserError(ErrorCode::Name,
                  fmt::format("the graph '{}' has no input or param '{}'", name_, shortened(name)),
                  close ? fmt::format("did you mean '{}'?", *close)
                        : fmt::format("it has: {}", shortened(join(known, ", "), 1000)));
}

std::string Graph::unique_name(std::string_view base) const {
  std::string candidate(base);
  for (int i = 2; leaf_names_.contains(candidate); ++i) candidate = fmt::format("{}_{}", base, i);
  return candidate;
}

std::vector<std::size_t> Graph::use_counts() const {
  std::vector<std::size_t> uses(nodes_.size(), 0);
  for (const Node& n : nodes_) {
    for (const ValueId v : n.operands) ++uses[v.node];
  }
  for (const ValueId v : outputs_) ++uses[v.node];
  return uses;
}

BodySignature Graph::signature(std::string role) const {
  BodySignature s;
  s.role = std::move(role);
  for (const Node& n : nodes_) {
    if (const auto* in = n.op.as<op::Input>()) {
      s.inputs.push_back(in->type);
      s.input_roles.push_back(in->role);
    }
  }
  for (const ValueId v : outputs_) s.outputs.push_back(type(v));
  return s;
}

}  // namespace ricci
