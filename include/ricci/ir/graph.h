// Graphs: the programs everything in Ricci works on.
//
// A graph is a list of nodes in topological order. A node applies an op to earlier values and has
// one or more results; a value is (node, result). Nodes are appended, never changed: a pass builds
// a new graph. Graphs are values; copying one shares attributes, constants and bodies.
//
//   Graph g("example");
//   Value x = g.input("x", f32({2, 3}));
//   Value y = tanh(x) * 2.0;                 // builders: ricci/build/build.h
//   g.set_outputs({{"y", y}});               // or, without a name, {y}
#pragma once

#include <algorithm>
#include <atomic>
#include <compare>
#include <concepts>
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

namespace detail {

/// Where a graph is, for handles on it. Cells are used again but never freed, so that a handle can
/// always ask whether its graph is still the one it was made for.
struct GraphCell {
  Graph* graph = nullptr;
  /// Which graph the cell has served, in the upper half, and how often its nodes were put in
  /// another order, in the lower.
  std::atomic<std::uint64_t> stamp{0};
  /// For every time they were, where each node went.
  std::vector<std::vector<NodeId>> moves;
};

/// A graph's own hold on its cell, which it takes when somebody first wants a handle.
class GraphAnchor {
 public:
  GraphAnchor() = default;
  GraphAnchor(const GraphAnchor&) = delete;
  GraphAnchor& operator=(const GraphAnchor&) = delete;
  ~GraphAnchor() { release(); }

  [[nodiscard]] GraphCell& cell(Graph& graph) {
    if (cell_ == nullptr) take(graph);
    return *cell_;
  }
  /// Lets go of this cell, whose handles have no graph from now on, and takes over another's.
  void move_here(GraphAnchor& other, Graph& graph) noexcept;
  /// Handles made so far follow their nodes.
  void nodes_moved(std::vector<NodeId> now_at);

 private:
  void take(Graph& graph);
  void release() noexcept;

  GraphCell* cell_ = nullptr;
};

}  // namespace detail

/// A handle on a value of a graph under construction. It follows the graph when that is moved.
/// When the graph has been destroyed, or something else was assigned to it, using it is
/// UserError(name).
class Value {
 public:
  Value() = default;

  [[nodiscard]] Graph& graph() const { return is_current() ? *cell_->graph : graph_or_throw(); }
  [[nodiscard]] ValueId id() const { return is_current() || cell_ == nullptr ? id_ : moved_id(); }
  /// Was it made by a graph?
  [[nodiscard]] bool valid() const noexcept { return cell_ != nullptr; }
  [[nodiscard]] const Type& type() const;
  [[nodiscard]] DType dtype() const { return type().dtype; }
  [[nodiscard]] const Dims& dims() const { return type().dims; }
  [[nodiscard]] std::size_t rank() const { return type().rank(); }
  /// A place on an axis, and where it was written.
  struct Place {
    template <std::integral T>
    Place(T i, std::source_location w = std::source_location::current())  // NOLINT
        : index(static_cast<std::int64_t>(i)), where(w) {}
    std::int64_t index;
    std::source_location where;
  };
  /// x[i] along the first axis; negative ones count from the end.
  [[nodiscard]] Value operator[](Place i) const;
  /// Names the value in the text form; returns itself.
  Value named(std::string name) const;
  /// Are both the same value? `eq` compares elements.
  friend bool operator==(const Value& a, const Value& b) {
    return a.cell_ == b.cell_ && (a.stamp_ == b.stamp_ ? a.id_ == b.id_ : same_value(a, b));
  }

 private:
  friend class Graph;
  friend class ProvenanceScope;
  Value(detail::GraphCell& cell, ValueId id)
      : cell_(&cell), stamp_(cell.stamp.load(std::memory_order_relaxed)), id_(id) {}

  [[nodiscard]] bool is_current() const noexcept {
    return cell_ != nullptr && cell_->stamp.load(std::memory_order_relaxed) == stamp_;
  }
  [[nodiscard]] bool is_alive() const noexcept;
  [[nodiscard]] Graph& graph_or_throw() const;
  [[nodiscard]] ValueId moved_id() const;
  [[nodiscard]] static bool same_value(const Value& a, const Value& b);

  detail::GraphCell* cell_ = nullptr;
  std::uint64_t stamp_ = 0;
  ValueId id_;
};

/// An output with a name.
struct NamedOutput {
  std::string name;
  Value value;
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
  /// A copy has no handles: values belong to the graph they were made in.
  Graph(const Graph& other);
  Graph(Graph&& other) noexcept;
  Graph& operator=(const Graph& other);
  Graph& operator=(Graph&& other) noexcept;
  ~Graph() = default;

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
  /// Adds a node and gives handles on all its results. Operands may be values of a graph around
  /// this one while a builder of control flow makes this graph, its body: they are captured.
  std::vector<Value> add_node(Op op, std::span<const Value> operands, std::vector<Body> bodies = {},
                              std::source_location where = std::source_location::current());
  /// Ends the building. Inputs and params that one C++ expression declares are put in the order in
  /// which they are written there, whatever order the compiler evaluates it in; handles follow, ids
  /// taken before do not.
  void set_outputs(std::span<const Value> outputs,
                   std::source_location where = std::source_location::current());
  void set_outputs(std::initializer_list<Value> outputs,
                   std::source_location where = std::source_location::current()) {
    set_outputs(std::span(outputs.begin(), outputs.size()), where);
  }
  /// The same with names for all, by which results can be asked for.
  void set_outputs(std::initializer_list<NamedOutput> outputs,
                   std::source_location where = std::source_location::current());
  /// Names an output; an empty name takes the name away. UserError(name) when another has it.
  void set_output_name(std::size_t output, std::string name);
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
  [[nodiscard]] std::span<const Node> nodes() const& noexcept { return nodes_; }
  std::span<const Node> nodes() const&& = delete;
  [[nodiscard]] const Node& node(NodeId id) const;
  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
  [[nodiscard]] std::span<const ValueId> outputs() const& noexcept { return outputs_; }
  std::span<const ValueId> outputs() const&& = delete;
  /// The name an output was given; empty when it was given none.
  [[nodiscard]] const std::string& given_output_name(std::size_t output) const;
  /// What each output is called, all different: the name it was given, else that of its value or of
  /// the input or param it is, else `out<i>`.
  [[nodiscard]] std::vector<std::string> output_names() const;
  [[nodiscard]] const Type& type(ValueId value) const;
  /// How deeply bodies are nested; 0 without any.
  [[nodiscard]] int depth() const noexcept { return depth_; }
  [[nodiscard]] Value value(ValueId id) { return {anchor_.cell(*this), id}; }
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
  void set_outputs(std::vector<ValueId> outputs) {
    outputs_ = std::move(outputs);
    output_names_.clear();
  }
  /// Takes over the names that outputs of `from`, which has as many, were given.
  void copy_output_names(const Graph& from);

  // For builders of control flow, which build `this` as a body of a node of `outer`.
  /// From now on values of `outer`, and of the graphs around it, are captured where they are used:
  /// each becomes a param here, and `captures` has the value and the param.
  struct Captured {
    Value outer;
    NodeId param = 0;
  };
  void capture_from(Graph& outer) { outer_ = outer.value({}); }
  [[nodiscard]] std::span<const Captured> captures() const& noexcept { return captures_; }
  std::span<const Captured> captures() const&& = delete;
  /// Is this graph being built as a body of `other`, or of a graph that is?
  [[nodiscard]] bool is_inside(const Graph& other) const;
  /// No more captures: the body is finished.
  void end_captures();
  /// `set_outputs` leaves inputs and params in the order they were declared in. So it is in graphs
  /// to which some are appended as they are.
  void keep_leaf_order() noexcept { keeps_leaf_order_ = true; }

 private:
  friend class ProvenanceScope;
  /// The value itself, or what stands for a value that is captured; nothing for another graph's.
  [[nodiscard]] std::optional<ValueId> own(const Value& value);
  NodeId push(Node node);
  /// Puts the leaves declared since the last time in the order of the source.
  void sort_leaves();
  void permute(std::span<const NodeId> order);
  struct Declared {
    NodeId node = 0;
    std::source_location where;
  };
  [[nodiscard]] bool in_one_expression(std::span<const Declared> before,
                                       const Declared& leaf) const;
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
  std::vector<std::string> output_names_;  // given ones; as many as outputs, or none at all
  std::map<std::string, NodeId, std::less<>> leaf_names_;
  std::vector<Provenance> provenance_stack_;
  std::int64_t next_key_ = 1;
  int depth_ = 0;
  std::vector<Declared> declared_;  // by `input` and `param` since leaves were sorted
  bool keeps_leaf_order_ = false;
  Value outer_;  // of the graph around this one while values are captured; its id says nothing
  std::vector<Captured> captures_;
  detail::GraphAnchor anchor_;
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
  Value graph_;  // of which only the graph counts
};

/// The registry used when none is given. See ricci/op/custom.h.
[[nodiscard]] const Registry& default_registry();

}  // namespace ricci
