// Graphs: the programs everything in Ricci works on.
//
// A graph is a list of nodes in topological order. A node applies an op to earlier values and has
// one or more results; a value is (node, result). Nodes are appended, never changed: a pass builds
// a new graph. Graphs are values; copying one shares attributes, constants and bodies.
//
//   Graph g("example");
//   Value x = g.input("x", f32({2, 3}));
//   Value y = tanh(x) * 2.0;                 // builders: ricci/build/build.h
//   g.set_outputs({y});
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ricci/op/infer.h"
#include "ricci/op/op.h"
#include "ricci/type/tensor.h"

namespace ricci {

class Graph;
class Registry;

using NodeId = std::uint32_t;

/// Which result of which node.
struct ValueId {
  NodeId node = std::numeric_limits<NodeId>::max();
  std::uint32_t result = 0;
  auto operator<=>(const ValueId&) const = default;
};

/// Where a node came from; shown in errors, dumps and profiles, never part of equality.
struct Provenance {
  std::string label;     ///< the user's own words: "encoder/attention"
  SourcePosition where;  ///< the builder call or the line of text
  std::string origin;    ///< what a transform made it from: "gradient of %h"
};

/// A sub-graph of a control-flow node.
struct Body {
  std::string role;  ///< `body`, `cond`, `then`, `vjp`, …
  std::shared_ptr<const Graph> graph;
};

struct Node {
  Op op;
  std::vector<ValueId> operands;
  std::vector<Type> types;         ///< one per result
  std::vector<bool> wanted;        ///< one per result; an unwanted result is not computed
  std::vector<std::string> names;  ///< one per result; empty where the text form numbers it
  std::vector<Body> bodies;
  std::size_t optional_from = std::numeric_limits<std::size_t>::max();  ///< first optional result
  std::shared_ptr<const Provenance> provenance;

  [[nodiscard]] const Graph* body(std::string_view role) const;
  /// The name of an input or param; nullptr for nodes that compute.
  [[nodiscard]] const std::string* leaf_name() const;
  [[nodiscard]] bool is_leaf() const { return leaf_name() != nullptr; }
};

/// A handle on a value of a graph under construction. Valid while the graph is neither moved nor
/// destroyed.
class Value {
 public:
  Value() = default;
  Value(Graph* graph, ValueId id) : graph_(graph), id_(id) {}

  [[nodiscard]] Graph& graph() const;
  [[nodiscard]] ValueId id() const noexcept { return id_; }
  [[nodiscard]] bool valid() const noexcept { return graph_ != nullptr; }
  [[nodiscard]] const Type& type() const;
  [[nodiscard]] DType dtype() const { return type().dtype; }
  [[nodiscard]] const Dims& dims() const { return type().dims; }
  [[nodiscard]] std::size_t rank() const { return type().rank(); }
  /// Names the value in the text form; returns itself.
  Value named(std::string name) const;
  friend bool operator==(const Value&, const Value&) = default;

 private:
  Graph* graph_ = nullptr;
  ValueId id_;
};

/// All there is to say when adding a node.
struct NodeSpec {
  Op op;
  std::vector<ValueId> operands;
  std::vector<Body> bodies;
  /// Empty: every required result, no optional one.
  std::vector<bool> wanted;
  std::vector<std::string> names;
  Provenance provenance;
};

class Graph {
 public:
  explicit Graph(std::string name = "main");
  /// Custom ops are looked up in `registry`, which must outlive the graph.
  Graph(std::string name, const Registry& registry);

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }
  [[nodiscard]] const Registry& registry() const noexcept { return *registry_; }

  // Building.
  Value input(std::string name, Type type,
              std::source_location where = std::source_location::current());
  Value input(std::string name, Type type, op::InputRole role,
              std::source_location where = std::source_location::current());
  Value param(std::string name, Type type,
              std::source_location where = std::source_location::current());
  Value constant(const Tensor& value, std::source_location where = std::source_location::current());
  /// Normalises attributes, infers types, checks every constraint; UserError when one is broken.
  NodeId add(NodeSpec spec);
  /// Adds a node and gives handles on all its results.
  std::vector<Value> add_node(Op op, std::span<const Value> operands, std::vector<Body> bodies = {},
                              std::source_location where = std::source_location::current());
  void set_outputs(std::span<const Value> outputs,
                   std::source_location where = std::source_location::current());
  void set_outputs(std::initializer_list<Value> outputs,
                   std::source_location where = std::source_location::current()) {
    set_outputs(std::span(outputs.begin(), outputs.size()), where);
  }
  /// Marks a result as wanted (or not); builders and transforms use it before anyone reads it.
  void set_wanted(ValueId value, bool wanted);
  void set_value_name(ValueId value, std::string name);
  /// A key no random node of this graph has so far; random nodes without one get it when they are
  /// added, so what they draw depends on the order in which they are built. Where that order is not
  /// yours to say (two draws inside one C++ expression), give them keys.
  [[nodiscard]] std::int64_t fresh_key();
  /// Keys below `key` are taken: a body's draws differ from those of the graph around it.
  void reserve_keys(std::int64_t key) { next_key_ = std::max(next_key_, key); }
  [[nodiscard]] std::int64_t next_key() const noexcept { return next_key_; }

  // Reading.
  [[nodiscard]] std::span<const Node> nodes() const noexcept { return nodes_; }
  [[nodiscard]] const Node& node(NodeId id) const;
  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
  [[nodiscard]] std::span<const ValueId> outputs() const noexcept { return outputs_; }
  [[nodiscard]] const Type& type(ValueId value) const;
  /// How deeply bodies are nested; 0 without any.
  [[nodiscard]] int depth() const noexcept { return depth_; }
  [[nodiscard]] Value value(ValueId id) { return {this, id}; }
  [[nodiscard]] std::vector<Value> output_values();
  /// Input nodes, and param nodes, in order of creation.
  [[nodiscard]] std::vector<NodeId> inputs() const;
  [[nodiscard]] std::vector<NodeId> params() const;
  /// Both together, in order of creation: what a program is given.
  [[nodiscard]] std::vector<NodeId> leaves() const;
  /// The input or param with a name.
  [[nodiscard]] std::optional<NodeId> find(std::string_view name) const;
  /// UserError(name) with suggestions when there is none.
  [[nodiscard]] NodeId find_or_throw(std::string_view name) const;
  /// A name that no input or param has: `base`, `base_2`, …
  [[nodiscard]] std::string unique_name(std::string_view base) const;
  [[nodiscard]] std::set<std::string> symbols() const;
  /// How many times each node's results are read, outputs included.
  [[nodiscard]] std::vector<std::size_t> use_counts() const;
  /// The signature other nodes see when this graph is a body.
  [[nodiscard]] BodySignature signature(std::string role) const;

  // Whole-graph operations.
  /// Replaces symbols everywhere, attributes and bodies included; node ids stay.
  [[nodiscard]] Graph bind(const SymbolBindings& bindings) const;
  /// Same name, ops, attributes, edges, types, bodies and outputs. Names and places do not count.
  friend bool operator==(const Graph& a, const Graph& b);
  [[nodiscard]] std::uint64_t hash() const;

  // For passes: appends a finished node without inferring; the verifier checks afterwards.
  NodeId append(Node node);
  void set_outputs(std::vector<ValueId> outputs) { outputs_ = std::move(outputs); }

 private:
  friend class ProvenanceScope;
  [[noreturn]] void fail(const Rejection& rejection, const NodeSpec& spec) const;
  /// The type of a value that may be read; UserError(name) when it is not computed.
  [[nodiscard]] const Type& readable_type(ValueId value) const;
  /// A random op with a key of its own when it has none yet.
  [[nodiscard]] Op with_key(const Op& random);
  void register_name(const Node& node, NodeId id);

  std::string name_;
  const Registry* registry_;
  std::vector<Node> nodes_;
  std::vector<ValueId> outputs_;
  std::map<std::string, NodeId, std::less<>> leaf_names_;
  std::vector<Provenance> provenance_stack_;
  std::int64_t next_key_ = 1;
  int depth_ = 0;
};

/// While alive, nodes added to a graph take this provenance (a rule building on behalf of a node),
/// or have its label put in front of their own (a user naming a part of a model).
class ProvenanceScope {
 public:
  ProvenanceScope(Graph& graph, Provenance provenance);
  ProvenanceScope(const ProvenanceScope&) = delete;
  ProvenanceScope& operator=(const ProvenanceScope&) = delete;
  ~ProvenanceScope();

 private:
  Graph& graph_;
};

/// The registry used when none is given. See ricci/op/custom.h.
[[nodiscard]] const Registry& default_registry();

}  // namespace ricci
