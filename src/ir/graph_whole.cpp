// Operations on whole graphs: equality, hashing, symbols and their binding.
#include <algorithm>

#include "ricci/ir/graph.h"
#include "ricci/op/table.h"
#include "ricci/support/hash.h"

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
  return out;
}

}  // namespace ricci
