// Operations on whole graphs: equality, hashing, symbols and their binding.
#include <algorithm>

#include <fmt/format.h>

#include "ricci/ir/graph.h"
#include "ricci/op/table.h"
#include "ricci/support/hash.h"
#include "ricci/support/text.h"

namespace ricci {
namespace {

bool same_node(const Node& a, const Node& b) {
  if (a.operands != b.operands || a.types != b.types || a.wanted != b.wanted ||
      a.bodies.size() != b.bodies.size() || !(a.op == b.op)) {
    return false;
  }
  return std::ranges::equal(a.bodies, b.bodies, [](const Body& x, const Body& y) {
    return x.role == y.role && (x.graph == y.graph || *x.graph == *y.graph);
  });
}

// Visits every dimension an attribute holds, wherever it is nested.
template <class F>
void for_each_dim(AttrValue& v, F&& f) {
  if (auto* d = std::get_if<Dim>(&v.value)) {
    f(*d);
  } else if (auto* t = std::get_if<Type>(&v.value)) {
    for (Dim& dim : t->dims) f(dim);
  } else if (auto* list = std::get_if<std::vector<AttrValue>>(&v.value)) {
    for (AttrValue& e : *list) for_each_dim(e, f);
  } else if (auto* e = std::get_if<Enumerator>(&v.value)) {
    for (AttrValue& arg : e->args) for_each_dim(arg, f);
  }
}

}  // namespace

bool operator==(const Graph& a, const Graph& b) {
  return a.name_ == b.name_ && a.outputs_ == b.outputs_ &&
         std::ranges::equal(a.nodes_, b.nodes_, same_node);
}

std::uint64_t Graph::hash() const {
  Hasher h;
  h.add(name_);
  for (const Node& n : nodes_) {
    h.add(n.op.hash());
    for (const ValueId v : n.operands) h.add((std::uint64_t{v.node} << 32) | v.result);
    for (const Type& t : n.types) h.add(t.hash());
    for (const bool w : n.wanted) h.add(static_cast<std::uint64_t>(w));
    for (const Body& b : n.bodies) h.add(b.role).add(b.graph->hash());
  }
  for (const ValueId v : outputs_) h.add((std::uint64_t{v.node} << 32) | v.result);
  return h.value();
}

std::set<std::string> Graph::symbols() const {
  std::set<std::string> out;
  for (const Node& n : nodes_) {
    for (const Type& t : n.types) {
      for (const Dim& d : t.dims) d.collect_symbols(out);
    }
    for (NamedAttr& a : n.op.attrs()) {
      for_each_dim(a.value, [&](const Dim& d) { d.collect_symbols(out); });
    }
    for (const Body& b : n.bodies) out.merge(b.graph->symbols());
  }
  return out;
}

Graph Graph::bind(const SymbolBindings& bindings) const {
  Graph out(name_, *registry_);
  for (const Node& n : nodes_) {
    std::vector<NamedAttr> attrs = n.op.attrs();
    for (NamedAttr& a : attrs) for_each_dim(a.value, [&](Dim& d) { d = d.bind(bindings); });
    std::vector<Body> bodies;
    for (const Body& b : n.bodies) {
      bodies.push_back({b.role, std::make_shared<const Graph>(b.graph->bind(bindings))});
    }
    out.add({.op = descriptor(n.op.kind()).make(attrs),
             .operands = n.operands,
             .bodies = std::move(bodies),
             .wanted = n.wanted,
             .names = n.names,
             .provenance = n.provenance ? *n.provenance : Provenance{}});
  }
  out.outputs_ = outputs_;
  out.output_names_ = output_names_;
  return out;
}

void Graph::set_output_name(std::size_t output, std::string name) {
  if (output >= outputs_.size()) {
    throw UserError(ErrorCode::Name, fmt::format("the graph '{}' has no output {}", name_, output));
  }
  if (output_names_.empty() && name.empty()) return;
  output_names_.resize(outputs_.size());
  const auto same = std::ranges::find(output_names_, name);
  const auto place = static_cast<std::size_t>(same - output_names_.begin());
  if (!name.empty() && same != output_names_.end() && place != output) {
    throw UserError(
        ErrorCode::Name,
        fmt::format("output {} of '{}' is called '{}' already", place, name_, shortened(name)),
        "every output needs a name of its own");
  }
  output_names_[output] = std::move(name);
}

void Graph::copy_output_names(const Graph& from) {
  check_internal(from.outputs_.size() == outputs_.size(), "names are of as many outputs");
  output_names_ = from.output_names_;
}

const std::string& Graph::given_output_name(std::size_t output) const {
  static const std::string none;
  return output < output_names_.size() ? output_names_[output] : none;
}

std::vector<std::string> Graph::output_names() const {
  std::set<std::string> taken(output_names_.begin(), output_names_.end());
  std::vector<std::string> out;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    std::string name = given_output_name(i);
    if (name.empty()) {
      const ValueId v = outputs_[i];
      std::string base;
      if (v.node < nodes_.size() && v.result < nodes_[v.node].names.size()) {
        const Node& node = nodes_[v.node];
        base = node.is_leaf() ? *node.leaf_name() : node.names[v.result];
      }
      if (base.empty()) base = fmt::format("out{}", i);
      name = base;
      for (int k = 2; !taken.insert(name).second; ++k) name = fmt::format("{}_{}", base, k);
    }
    out.push_back(std::move(name));
  }
  return out;
}

}  // namespace ricci
