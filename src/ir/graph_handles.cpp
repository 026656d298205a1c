// How values find their graph wherever it is, and values of graphs around a body that it captures.
#include <array>
#include <deque>
#include <mutex>

#include <fmt/format.h>

#include "ricci/ir/graph.h"
#include "ricci/op/leaf.h"
#include "ricci/op/shape.h"
#include "ricci/support/text.h"

#include "support/fork.h"

namespace ricci {
namespace {

constexpr std::uint64_t Life = std::uint64_t{1} << 32;

constexpr std::uint64_t life_of(std::uint64_t stamp) { return stamp / Life; }

// All cells there are. It is never destroyed: handles may live longer than anything else.
struct Cells {
  ForkMutex mutex;
  std::deque<detail::GraphCell> all;
  std::vector<detail::GraphCell*> unused;

  static Cells& instance() {
    static Cells& cells = *new Cells;
    return cells;
  }
};

}  // namespace

namespace detail {

void GraphAnchor::take(Graph& graph) {
  Cells& cells = Cells::instance();
  const std::lock_guard lock(cells.mutex);
  if (cells.unused.empty()) {
    // Room to give it back is made now: destructors must not fail.
    cells.unused.reserve(cells.all.size() + 1);
    cell_ = &cells.all.emplace_back();
  } else {
    cell_ = cells.unused.back();
    cells.unused.pop_back();
  }
  cell_->graph = &graph;
}

void GraphAnchor::release() noexcept {
  if (cell_ == nullptr) return;
  const std::uint64_t next = life_of(cell_->stamp.load(std::memory_order_relaxed)) + 1;
  cell_->graph = nullptr;
  cell_->moves = {};
  cell_->stamp.store(next * Life, std::memory_order_relaxed);
  Cells& cells = Cells::instance();
  const std::lock_guard lock(cells.mutex);
  // A cell whose numbers are used up serves nobody any more.
  if (next != Life - 1) cells.unused.push_back(cell_);
  cell_ = nullptr;
}

void GraphAnchor::move_here(GraphAnchor& other, Graph& graph) noexcept {
  if (this == &other) return;
  release();
  cell_ = std::exchange(other.cell_, nullptr);
  if (cell_ != nullptr) cell_->graph = &graph;
}

void GraphAnchor::nodes_moved(std::vector<NodeId> now_at) {
  if (cell_ == nullptr) return;
  cell_->moves.push_back(std::move(now_at));
  cell_->stamp.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace detail

bool Value::is_alive() const noexcept {
  return cell_ != nullptr &&
         life_of(cell_->stamp.load(std::memory_order_relaxed)) == life_of(stamp_);
}

Graph& Value::graph_or_throw() const {
  if (cell_ == nullptr) {
    throw UserError(ErrorCode::Name, "this value belongs to no graph",
                    "take values from Graph::input, Graph::param or a builder");
  }
  if (!is_alive()) {
    throw UserError(ErrorCode::Name, "the graph of this value is gone",
                    "keep the graph as long as its values: it was destroyed, or another was "
                    "assigned to it");
  }
  return *cell_->graph;
}

ValueId Value::moved_id() const {
  (void)graph_or_throw();
  ValueId id = id_;
  for (std::size_t k = stamp_ % Life; k < cell_->moves.size(); ++k) {
    if (id.node < cell_->moves[k].size()) id.node = cell_->moves[k][id.node];
  }
  return id;
}

bool Value::same_value(const Value& a, const Value& b) {
  return life_of(a.stamp_) == life_of(b.stamp_) && a.is_alive() && a.id() == b.id();
}

const Type& Value::type() const { return graph().type(id()); }

Value Value::named(std::string name) const {
  graph().set_value_name(id(), std::move(name));
  return *this;
}

Graph::Graph(const Graph& other)
    : name_(other.name_),
      registry_(other.registry_),
      nodes_(other.nodes_),
      outputs_(other.outputs_),
      output_names_(other.output_names_),
      leaf_names_(other.leaf_names_),
      provenance_stack_(other.provenance_stack_),
      next_key_(other.next_key_),
      depth_(other.depth_),
      declared_(other.declared_),
      keeps_leaf_order_(other.keeps_leaf_order_) {}

Graph::Graph(Graph&& other) noexcept
    : name_(std::move(other.name_)),
      registry_(other.registry_),
      nodes_(std::move(other.nodes_)),
      outputs_(std::move(other.outputs_)),
      output_names_(std::move(other.output_names_)),
      leaf_names_(std::move(other.leaf_names_)),
      provenance_stack_(std::move(other.provenance_stack_)),
      next_key_(other.next_key_),
      depth_(other.depth_),
      declared_(std::move(other.declared_)),
      keeps_leaf_order_(other.keeps_leaf_order_),
      outer_(other.outer_),
      captures_(std::move(other.captures_)) {
  anchor_.move_here(other.anchor_, *this);
}

Graph& Graph::operator=(const Graph& other) {
  if (this != &other) *this = Graph(other);
  return *this;
}

Graph& Graph::operator=(Graph&& other) noexcept {
  if (this == &other) return *this;
  name_ = std::move(other.name_);
  registry_ = other.registry_;
  nodes_ = std::move(other.nodes_);
  outputs_ = std::move(other.outputs_);
  output_names_ = std::move(other.output_names_);
  leaf_names_ = std::move(other.leaf_names_);
  provenance_stack_ = std::move(other.provenance_stack_);
  next_key_ = other.next_key_;
  depth_ = other.depth_;
  declared_ = std::move(other.declared_);
  keeps_leaf_order_ = other.keeps_leaf_order_;
  outer_ = other.outer_;
  captures_ = std::move(other.captures_);
  anchor_.move_here(other.anchor_, *this);
  return *this;
}

bool Graph::is_inside(const Graph& other) const {
  for (const Graph* g = this; g->outer_.is_alive();) {
    g = &g->outer_.graph();
    if (g == &other) return true;
  }
  return false;
}

void Graph::end_captures() {
  outer_ = {};
  captures_.clear();
}

std::optional<ValueId> Graph::own(const Value& v) {
  if (&v.graph() == this) return v.id();
  if (!outer_.is_alive()) return std::nullopt;
  Graph& outer = outer_.graph();
  const std::optional<ValueId> outside = outer.own(v);  // which may capture it from further out
  if (!outside) return std::nullopt;
  const Value captured = outer.value(*outside);
  for (const Captured& c : captures_) {
    if (c.outer == captured) return ValueId{c.param, 0};
  }
  const Type& type = outer.readable_type(*outside);
  const Node& node = outer.node(outside->node);
  std::string name = node.names[outside->result];
  if (name.empty()) name = node.is_leaf() ? *node.leaf_name() : "captured";
  const NodeId param = add({.op = Op(op::Param{unique_name(name), type}),
                            .operands = {},
                            .bodies = {},
                            .wanted = {},
                            .names = {},
                            .provenance = {}});
  captures_.push_back({captured, param});
  return ValueId{param, 0};
}

ProvenanceScope::ProvenanceScope(Graph& graph, Provenance provenance) : graph_(graph.value({})) {
  if (!graph.provenance_stack_.empty() && !graph.provenance_stack_.back().label.empty()) {
    const std::string& outer = graph.provenance_stack_.back().label;
    provenance.label = provenance.label.empty() ? outer : outer + "/" + provenance.label;
  }
  graph.provenance_stack_.push_back(std::move(provenance));
}

// The graph may be elsewhere by now, or gone.
ProvenanceScope::~ProvenanceScope() {
  if (!graph_.is_alive()) return;
  Graph& graph = *graph_.cell_->graph;
  if (!graph.provenance_stack_.empty()) graph.provenance_stack_.pop_back();
}

Value Value::operator[](Place i) const {
  const Dims& all = dims();
  if (all.empty()) {
    throw UserError(
        Diagnostic{ErrorCode::Shape,
                   "[]",
                   fmt::format("{} has no axis to take element {} of", type().to_string(), i.index),
                   SourcePosition::from(i.where),
                   {},
                   ""});
  }
  Graph& to = graph();
  const Dim start = i.index < 0 ? all[0] + Dim(i.index) : Dim(i.index);
  const Dims rest(all.begin() + 1, all.end());
  const Value row = to.add_node(Op(op::Narrow{.axis = 0, .start = start, .len = 1}),
                                std::array{*this}, {}, i.where)[0];
  return to.add_node(Op(op::Reshape{.new_shape = rest}), std::array{row}, {}, i.where)[0];
}

}  // namespace ricci

// Names for debuggers, which read them by the names of these lists: share/ricci_gdb.py. Nothing
// refers to them.
#define RICCI_FOR_DEBUGGERS extern "C" __attribute__((used, visibility("default")))
RICCI_FOR_DEBUGGERS const char* const ricci_debug_ops[] = {
#define RICCI_OP(Type, builder) #builder,
#include "ricci/op/list.def"
};
RICCI_FOR_DEBUGGERS const char* const ricci_debug_unary[] = {
#define RICCI_UNARY(Kind, name) #name,
#include "ricci/op/unary.def"
};
RICCI_FOR_DEBUGGERS const char* const ricci_debug_binary[] = {
#define RICCI_BINARY(Kind, name) #name,
#include "ricci/op/binary.def"
};
