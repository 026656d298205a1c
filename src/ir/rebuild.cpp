#include "ricci/ir/rebuild.h"

#include <fmt/format.h>

#include "ricci/op/leaf.h"

namespace ricci {

IdMap::IdMap(const Graph& from) {
  first_.reserve(from.size() + 1);
  first_.push_back(0);
  for (const Node& n : from.nodes()) first_.push_back(first_.back() + n.types.size());
  map_.resize(first_.back());
}

std::size_t IdMap::place(ValueId old) const {
  if (old.node + std::size_t{1} < first_.size()) {
    const std::size_t at = first_[old.node] + old.result;
    if (at < first_[old.node + std::size_t{1}]) return at;
  }
  return map_.size();
}

std::optional<ValueId> IdMap::operator()(ValueId old) const {
  const std::size_t at = place(old);
  if (at == map_.size() || map_[at] == ValueId{}) return std::nullopt;
  return map_[at];
}

void IdMap::set(ValueId old, ValueId now) { map_.at(place(old)) = now; }

void IdMap::drop(ValueId old) { map_.at(place(old)) = {}; }

IdMap IdMap::then(const IdMap& next) const {
  IdMap out = *this;
  for (ValueId& v : out.map_) {
    if (v != ValueId{}) v = next(v).value_or(ValueId{});
  }
  return out;
}

IdMap IdMap::identity(const Graph& graph) {
  IdMap out(graph);
  for (NodeId id = 0; id < graph.size(); ++id) {
    for (std::uint32_t r = 0; r < graph.node(id).types.size(); ++r) out.set({id, r}, {id, r});
  }
  return out;
}

Rebuilder::Rebuilder(const Graph& from)
    : from_(from), to_(from.name(), from.registry()), map_(from) {}

ValueId Rebuilder::operator()(ValueId old) const {
  const auto now = map_(old);
  if (!now) {
    throw InternalError(fmt::format("result {} of node {} ('{}') was dropped but is still read",
                                    old.result, old.node, from_.node(old.node).op.mnemonic()));
  }
  return *now;
}

std::vector<Value> Rebuilder::operands(const Node& node) {
  std::vector<Value> out;
  for (const ValueId v : node.operands) out.push_back(value(v));
  return out;
}

NodeId Rebuilder::copy(NodeId old) { return copy(old, from_.node(old).bodies); }

NodeId Rebuilder::copy(NodeId old, std::vector<Body> bodies) {
  return copy(old, std::move(bodies), from_.node(old).operands);
}

NodeId Rebuilder::copy(NodeId old, std::vector<Body> bodies, std::vector<ValueId> operands) {
  const Node& node = from_.node(old);
  for (ValueId& v : operands) v = (*this)(v);
  const std::size_t results = node.types.size();
  const NodeId now = to_.append({.op = node.op,
                                 .operands = std::move(operands),
                                 .types = node.types,
                                 .wanted = node.wanted,
                                 .names = node.names,
                                 .bodies = std::move(bodies),
                                 .optional_from = node.optional_from,
                                 .provenance = node.provenance});
  for (std::uint32_t r = 0; r < results; ++r) map_.set({old, r}, {now, r});
  return now;
}

Graph Rebuilder::finish() {
  std::vector<ValueId> outputs;
  for (const ValueId v : from_.outputs()) outputs.push_back((*this)(v));
  to_.set_outputs(std::move(outputs));
  to_.copy_output_names(from_);
  return std::move(to_);
}

namespace {

ValueId mapped(const IdMap& map, ValueId old) {
  const auto now = map(old);
  if (now) return *now;
  throw UserError(ErrorCode::Name,
                  fmt::format("the body reads node {}, which it does not have", old.node));
}

}  // namespace

std::vector<Value> inline_subgraph(const Graph& body, std::span<const Value> values,
                                   Graph& target) {
  IdMap map(body);
  std::size_t next = 0;
  for (NodeId id = 0; id < body.size(); ++id) {
    const Node& node = body.node(id);
    if (node.op.is<op::Input>()) {
      if (next >= values.size()) {
        throw UserError(ErrorCode::Name,
                        fmt::format("the body '{}' has more than the {} inputs given", body.name(),
                                    values.size()));
      }
      if (values[next].type() != node.types[0]) {
        throw UserError(
            ErrorCode::Shape,
            fmt::format("input {} of the body '{}' is {}, but is given {}", next, body.name(),
                        node.types[0].to_string(), values[next].type().to_string()));
      }
      map.set({id, 0}, values[next++].id());
      continue;
    }
    Node copy = node;
    for (ValueId& v : copy.operands) v = mapped(map, v);
    const std::size_t results = copy.types.size();
    const NodeId now = target.append(std::move(copy));
    for (std::uint32_t r = 0; r < results; ++r) map.set({id, r}, {now, r});
  }
  if (next != values.size()) {
    throw UserError(ErrorCode::Name, fmt::format("the body '{}' has {} inputs, but {} are given",
                                                 body.name(), next, values.size()));
  }
  std::vector<Value> outputs;
  for (const ValueId v : body.outputs()) outputs.push_back(target.value(mapped(map, v)));
  return outputs;
}

}  // namespace ricci
