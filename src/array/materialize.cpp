// Computing what waits: pending nodes become one graph, which is compiled once for every structure
// and set of types there is.
#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <list>
#include <mutex>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "ricci/op/leaf.h"
#include "ricci/support/error.h"
#include "ricci/support/hash.h"

#include "array/graph.h"
#include "array/node.h"
#include "array/program.h"

namespace ricci::detail {
namespace {

constexpr std::size_t MostPrograms = 1024;

// What waits below some arrays: nodes in an order in which operands come first, and the values they
// start from, all by number.
struct Pending {
  static constexpr std::uint64_t Leaf = std::uint64_t{1} << 63;

  std::vector<ArrayNodePtr> nodes;
  std::vector<std::uint64_t> operands;  ///< of all nodes, one after the other: number and result
  std::vector<Array> leaves;
  std::vector<bool> is_output;
  std::vector<std::uint64_t> key;
};

std::uint64_t identity_of(ArrayNode& n) {
  if (n.identity != 0) return n.identity;
  Hasher h;
  if (n.callee) {
    h.add(n.callee->hash);
  } else {
    h.add(n.op->hash());
    for (const Body& b : n.bodies) h.add(b.graph->hash());
    std::uint64_t wanted = 0;
    for (const bool w : n.wanted) wanted = wanted * 2 + (w ? 1 : 0);
    h.add(wanted);
  }
  return n.identity = h.value();
}

// Walks what waits, under the lock, without recursion.
class Collector {
 public:
  explicit Collector(Pending& out) : out_(out) {
    static std::uint64_t walks = 0;
    walk_ = ++walks;
  }

  void collect(std::span<const Array> roots) {
    for (const Array& root : roots) {
      if (!root.node()->is_ready()) push(root.node());
      while (!stack_.empty()) step();
    }
    choose_outputs(roots);
  }

 private:
  struct Step {
    const ArrayNodePtr* node;
    std::size_t next;
  };

  void push(const ArrayNodePtr& node) {
    if (node->walk == walk_) return;
    node->walk = walk_;
    node->uses = 0;
    node->walk_inside = true;
    stack_.push_back({&node, 0});
  }

  void step() {
    Step& top = stack_.back();
    const ArrayNodePtr& node = *top.node;
    if (top.next < node->operands.size()) {
      const ArrayNodePtr& below = node->operands[top.next++].node();
      if (!below->is_ready()) push(below);
      return;
    }
    stack_.pop_back();
    for (const Array& x : node->operands) {
      const std::uint64_t number = number_of(x);
      out_.operands.push_back(number);
      out_.key.push_back(number);
    }
    out_.key.push_back(identity_of(*node));
    node->place = static_cast<std::uint32_t>(out_.nodes.size());
    out_.nodes.push_back(node);
  }

  std::uint64_t number_of(const Array& x) {
    ArrayNode& n = *x.node();
    if (n.walk != walk_) end_at(n);
    ++n.uses;
    if (n.walk_inside) return std::uint64_t{n.place} << 16 | x.result();
    return Pending::Leaf | leaf_of(x);
  }

  // The walk ends at a node that has values.
  void end_at(ArrayNode& n) {
    n.walk = walk_;
    n.walk_inside = false;
    n.place = static_cast<std::uint32_t>(leaf_numbers_.size());
    leaf_numbers_.resize(leaf_numbers_.size() + n.types.size(), NoLeaf);
  }

  // Results are leaves one by one, where they are used: those nobody asked for have no value.
  std::uint64_t leaf_of(const Array& x) {
    const ArrayNode& n = *x.node();
    std::uint32_t& number = leaf_numbers_[n.place + x.result()];
    if (number != NoLeaf) return number;
    number = static_cast<std::uint32_t>(out_.leaves.size());
    const Type& type = n.types[x.result()];
    out_.leaves.push_back(x);
    out_.key.push_back(Pending::Leaf | static_cast<std::uint64_t>(type.dtype) << 32 |
                       type.rank() << 1 | (n.fixed ? 1U : 0U));
    for (const Dim& d : type.dims) out_.key.push_back(static_cast<std::uint64_t>(d.value()));
    if (n.fixed) out_.key.push_back(n.values[0].hash());
    return number;
  }

  // What was asked for, and what somebody else holds, which would be computed again otherwise.
  void choose_outputs(std::span<const Array> roots) {
    out_.is_output.assign(out_.nodes.size(), false);
    for (std::size_t i = 0; i < out_.nodes.size(); ++i) {
      const long ours = static_cast<long>(out_.nodes[i]->uses) + 1;
      out_.is_output[i] = out_.nodes[i].use_count() > ours;
    }
    for (const Array& root : roots) {
      if (root.node()->walk == walk_) out_.is_output[root.node()->place] = true;
    }
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < out_.nodes.size(); ++i) {
      word = word << 1 | (out_.is_output[i] ? 1 : 0);
      if (i % 64 == 63 || i + 1 == out_.nodes.size()) out_.key.push_back(std::exchange(word, 0));
    }
  }

  static constexpr std::uint32_t NoLeaf = std::numeric_limits<std::uint32_t>::max();

  Pending& out_;
  std::uint64_t walk_ = 0;
  std::vector<std::uint32_t> leaf_numbers_;  // of all results of the nodes it ends at
  std::vector<Step> stack_;
};

// Nodes keep what programs are made of until they are published, so it can be read without a lock:
// copies were taken under it.
struct Snapshot {
  std::vector<std::size_t> operand_counts;
};

Graph graph_of(const Pending& pending, const Snapshot& snapshot) {
  Graph graph("expression");
  std::vector<ValueId> leaves;
  for (std::size_t k = 0; k < pending.leaves.size(); ++k) {
    const Array& x = pending.leaves[k];
    const ArrayNode& n = *x.node();
    const Value v = n.fixed ? graph.constant(n.values[0])
                            : graph.input(fmt::format("x{}", k), n.types[x.result()], n.where);
    leaves.push_back(v.id());
  }
  std::vector<std::vector<ValueId>> built(pending.nodes.size());
  std::vector<ValueId> outputs;
  std::size_t at = 0;
  for (std::size_t i = 0; i < pending.nodes.size(); ++i) {
    std::vector<ValueId> operands;
    for (std::size_t k = 0; k < snapshot.operand_counts[i]; ++k) {
      const std::uint64_t number = pending.operands[at++];
      operands.push_back((number & Pending::Leaf) != 0 ? leaves[number & ~Pending::Leaf]
                                                       : built[number >> 16][number & 0xFFFF]);
    }
    const ArrayNode& n = *pending.nodes[i];
    append_node(graph, n, operands, built[i]);
    if (!pending.is_output[i]) continue;
    for (std::size_t r = 0; r < built[i].size(); ++r) {
      if (n.wanted.empty() || n.wanted[r]) outputs.push_back(built[i][r]);
    }
  }
  graph.set_outputs(std::move(outputs));
  return graph;
}

// What nodes do, in full: keys only have its hashes.
struct Recipe {
  struct Step {
    std::optional<Op> op;
    std::vector<Body> bodies;
    std::vector<bool> wanted;
    std::shared_ptr<const Callee> callee;
  };
  std::vector<Step> steps;
  std::vector<Tensor> constants;

  explicit Recipe(const Pending& pending) {
    for (const ArrayNodePtr& n : pending.nodes) {
      steps.push_back({n->op, n->bodies, n->wanted, n->callee});
    }
    for (const Array& x : pending.leaves) {
      if (x.node()->fixed) constants.push_back(x.node()->values[0]);
    }
  }

  [[nodiscard]] bool is_of(const Pending& pending) const {
    if (steps.size() != pending.nodes.size()) return false;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const ArrayNode& n = *pending.nodes[i];
      const Step& s = steps[i];
      if (s.op != n.op || s.wanted != n.wanted || !same(s.callee, n.callee)) return false;
      if (!std::ranges::equal(s.bodies, n.bodies, same_body)) return false;
    }
    std::size_t next = 0;
    for (const Array& x : pending.leaves) {
      if (!x.node()->fixed) continue;
      if (next == constants.size()) return false;
      if (!constants[next++].identical(x.node()->values[0])) return false;
    }
    return next == constants.size();
  }

 private:
  static bool same(const std::shared_ptr<const Callee>& a, const std::shared_ptr<const Callee>& b) {
    return a == b || (a && b && a->hash == b->hash && a->graph == b->graph);
  }
  static bool same_body(const Body& a, const Body& b) {
    return a.role == b.role && (a.graph == b.graph || *a.graph == *b.graph);
  }
};

// Programs by structure; those not asked for longest go first.
class ProgramCache {
 public:
  std::shared_ptr<ArrayProgram> find(const Pending& pending, std::uint64_t hash) {
    const std::lock_guard lock(mutex_);
    const auto [from, to] = index_.equal_range(hash);
    for (auto it = from; it != to; ++it) {
      if (it->second->key != pending.key || !it->second->recipe.is_of(pending)) continue;
      entries_.splice(entries_.begin(), entries_, it->second);
      return it->second->program;
    }
    return nullptr;
  }

  void add(const Pending& pending, std::uint64_t hash, std::shared_ptr<ArrayProgram> program) {
    Recipe recipe(pending);
    const std::lock_guard lock(mutex_);
    entries_.push_front({pending.key, std::move(recipe), hash, std::move(program)});
    index_.emplace(hash, entries_.begin());
    if (entries_.size() <= MostPrograms) return;
    const auto last = std::prev(entries_.end());
    const auto [from, to] = index_.equal_range(last->hash);
    for (auto it = from; it != to; ++it) {
      if (it->second != last) continue;
      index_.erase(it);
      break;
    }
    entries_.pop_back();
  }

 private:
  struct Entry {
    std::vector<std::uint64_t> key;
    Recipe recipe;
    std::uint64_t hash;
    std::shared_ptr<ArrayProgram> program;
  };
  ForkMutex mutex_;
  std::list<Entry> entries_;
  std::unordered_multimap<std::uint64_t, std::list<Entry>::iterator> index_;
};

// Never destroyed: arrays of static storage may be looked at until the very end.
ProgramCache& program_cache() {
  static ProgramCache& cache = *new ProgramCache;
  return cache;
}

std::vector<Room> run(Pending& pending, const Snapshot& snapshot) {
  const Device device = current_device();
  pending.key.push_back(std::bit_cast<std::uintptr_t>(&device.backend()));
  Hasher hasher;
  for (const std::uint64_t w : pending.key) hasher.add(w);
  std::shared_ptr<ArrayProgram> program = program_cache().find(pending, hasher.value());
  if (!program) {
    program = std::make_shared<ArrayProgram>(graph_of(pending, snapshot), device);
    program_cache().add(pending, hasher.value(), program);
  }
  std::vector<const void*> inputs;
  inputs.reserve(pending.leaves.size());
  for (const Array& x : pending.leaves) {
    if (!x.node()->fixed) inputs.push_back(data_of(x));
  }
  return program->run(inputs);
}

// Hands the results to their nodes; gives what they let go.
std::vector<Array> publish(const Pending& pending, std::vector<Room> results) {
  std::vector<Array> released;
  std::size_t next = 0;
  for (std::size_t i = 0; i < pending.nodes.size(); ++i) {
    if (!pending.is_output[i]) continue;
    ArrayNode& n = *pending.nodes[i];
    const std::size_t first = next;
    for (std::size_t r = 0; r < n.types.size(); ++r)
      next += n.wanted.empty() || n.wanted[r] ? 1 : 0;
    if (n.is_ready()) continue;  // another thread was faster
    if (n.types.size() == 1) {
      n.room = std::move(results[first].memory);
    } else {
      n.values.resize(n.types.size());
      std::size_t from = first;
      for (std::size_t r = 0; r < n.types.size(); ++r) {
        if (n.wanted.empty() || n.wanted[r]) n.values[r] = results[from++].tensor();
      }
    }
    n.ready.store(true, std::memory_order_release);
    if (n.constant) continue;
    for (Array& x : n.operands) released.push_back(std::move(x));
    n.operands.clear();
  }
  return released;
}

}  // namespace

void materialize(std::span<const Array> arrays, std::source_location where) {
  bool waits = false;
  for (const Array& x : arrays) {
    require_valid(x, "eval", where);
    if (x.node()->trace) refuse_look(x, where);
    waits = waits || !x.node()->is_ready();
  }
  if (!waits) return;
  Pending pending;
  Snapshot snapshot;
  {
    const std::lock_guard lock(pending_mutex());
    Collector(pending).collect(arrays);
    for (const ArrayNodePtr& n : pending.nodes) {
      snapshot.operand_counts.push_back(n->operands.size());
    }
  }
  if (pending.nodes.empty()) return;  // another thread was faster
  std::vector<Room> results = run(pending, snapshot);
  std::vector<Array> released;
  const std::lock_guard lock(pending_mutex());
  released = publish(pending, std::move(results));
}

Waiting count_waiting(const Array& x) {
  Pending pending;
  const std::lock_guard lock(pending_mutex());
  Collector(pending).collect(std::span(&x, 1));
  Waiting out{.ops = pending.nodes.size(), .bytes = 0};
  for (const Array& leaf : pending.leaves) out.bytes += bytes_held(leaf);
  return out;
}

void refuse_look(const Array& x, std::source_location where) {
  const Trace& trace = *x.node()->trace;
  const bool active = trace.active.load();
  throw UserError(Diagnostic{
      .code = ErrorCode::Refused,
      .detail = active ? "traced" : "escaped",
      .message = active ? fmt::format("this array, {}, is being traced by '{}' and has no value",
                                      x.type().to_string(), trace.what)
                        : fmt::format("this array, {}, has escaped from the function that '{}' "
                                      "traced and has no value",
                                      x.type().to_string(), trace.what),
      .where = SourcePosition::from(where),
      .notes = {fmt::format("'{}' was called at {}", trace.what,
                            SourcePosition::from(trace.where).to_string())},
      .help = active ? "use where or cond in place of if, scan or while_loop in place of a loop "
                       "that asks; to look at a value, return it from the function"
                     : "return it from the function: grad hands aux values on, "
                       "std::pair{loss, aux}"});
}

}  // namespace ricci::detail
