#include <algorithm>
#include <atomic>
#include <set>

#include <fmt/format.h>

#include "ricci/array/callable.h"
#include "ricci/array/function.h"
#include "ricci/ir/graph.h"
#include "ricci/ir/rebuild.h"
#include "ricci/support/error.h"

#include "array/graph.h"
#include "array/node.h"

namespace ricci {
namespace detail {
namespace {

thread_local Tracing* innermost = nullptr;

Array placeholder_of(const std::shared_ptr<Trace>& trace, const Type& type, bool weak) {
  auto node = std::make_shared<ArrayNode>(ArrayNode::Kind::Placeholder);
  node->types = type;
  node->weak = weak;
  node->trace = trace;
  node->where = trace->where;
  return {std::move(node), 0};
}

// Names of inputs, all different.
class Names {
 public:
  // `name`, or `name.2`, `name.3`, … where it is taken.
  std::string add(const std::string& name) {
    std::string chosen = name;
    for (int n = 2; !taken_.insert(chosen).second; ++n) chosen = fmt::format("{}.{}", name, n);
    return chosen;
  }

 private:
  std::set<std::string> taken_;
};

}  // namespace

Tracing* innermost_trace() noexcept { return innermost; }

Tracing::Tracing(std::string_view what, TraceScope scope, std::source_location where)
    : trace_(std::make_shared<Trace>()), scope_(scope), outer_(innermost) {
  static std::atomic<std::uint64_t> serial = 0;
  trace_->serial = ++serial;
  trace_->what = what;
  trace_->where = where;
  innermost = this;
  claimed_by_ = claiming_trace();
  if (scope == TraceScope::Branch) claiming_trace() = trace_;
}

Tracing::~Tracing() { end(); }

void Tracing::end() {
  if (!trace_->active.exchange(false)) return;
  innermost = outer_;
  claiming_trace() = std::move(claimed_by_);
}

Array Tracing::placeholder(const Array& like) {
  require_valid(like, trace_->what, trace_->where);
  return inputs_.emplace_back(
      placeholder_of(trace_, like.node()->types[like.result()], like.node()->weak));
}

Array Tracing::placeholder(const Type& type) {
  return inputs_.emplace_back(placeholder_of(trace_, type, false));
}

Array Tracing::add_seed() { return seeds_.emplace_back(placeholder_of(trace_, i64(), false)); }

std::vector<Array> Tracing::placeholders(std::span<const Array> like) {
  std::vector<Array> out;
  for (const Array& x : like) out.push_back(placeholder(x));
  return out;
}

TracedFunction Tracing::finish(std::span<const Array> results, std::span<const std::string> names) {
  end();
  TracedFunction out;
  find_captures(*trace_, results, out.captures);
  std::vector<GraphInput> inputs;
  Names taken;
  const auto add = [&](const Array& x, const std::string& name) {
    inputs.push_back({x, taken.add(name)});
  };
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    add(inputs_[i], i < names.size() ? names[i] : fmt::format("x{}", i));
  }
  for (const Array& x : seeds_) add(x, fmt::format("seed.{}", inputs.size()));
  for (const Array& x : out.captures) add(x, fmt::format("captured.{}", inputs.size()));
  out.callee = std::make_shared<const Callee>(graph_between(trace_->what, inputs, results));
  return out;
}

Array stand_in(const Type& type) {
  auto node = std::make_shared<ArrayNode>(ArrayNode::Kind::Placeholder);
  node->types = type;
  return {std::move(node), 0};
}

std::vector<Array> strong(std::span<const Array> arrays, std::source_location where) {
  std::vector<Array> out;
  for (const Array& x : arrays) out.push_back(strengthened(x, where));
  return out;
}

std::vector<std::string> argument_names(std::vector<std::string> paths) {
  Names taken;
  for (std::string& path : paths) {
    const std::size_t dot = path.find('.');
    path = taken.add(dot == std::string::npos ? "x" + path : path.substr(dot + 1));
  }
  return paths;
}

std::vector<Array> call(const TracedFunction& f, std::span<const Array> arguments,
                        std::source_location where) {
  std::vector<Array> operands(arguments.begin(), arguments.end());
  operands.insert(operands.end(), f.captures.begin(), f.captures.end());
  return call_node(f.callee, std::move(operands), where);
}

const Graph& graph_of(const TracedFunction& f) { return f.callee->graph; }

}  // namespace detail

std::vector<Array> call(const Graph& graph, std::span<const Array> arguments,
                        std::source_location where) {
  const std::vector<NodeId> ports = graph.leaves();
  if (ports.size() != arguments.size()) {
    throw UserError(ErrorCode::Name,
                    fmt::format("'{}' has {} inputs and params, {} arrays are given", graph.name(),
                                ports.size(), arguments.size()));
  }
  // Params become inputs: a call has only those.
  Graph plain(graph.name());
  IdMap map(graph);
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& n = graph.node(id);
    if (n.is_leaf()) {
      map.set({id, 0}, plain.input(*n.leaf_name(), n.types[0]).id());
      continue;
    }
    Node copy = n;
    for (ValueId& v : copy.operands) v = *map(v);
    const NodeId now = plain.append(std::move(copy));
    for (std::uint32_t r = 0; r < n.types.size(); ++r) map.set({id, r}, {now, r});
  }
  std::vector<ValueId> outputs;
  for (const ValueId v : graph.outputs()) outputs.push_back(*map(v));
  plain.set_outputs(std::move(outputs));
  std::vector<Array> operands;
  for (std::size_t k = 0; k < arguments.size(); ++k) {
    const Type& wanted = graph.node(ports[k]).types[0];
    detail::require_valid(arguments[k], graph.name(), where);
    operands.push_back(detail::strengthened(arguments[k], wanted.dtype, where));
    if (operands.back().type() == wanted) continue;
    throw UserError(Diagnostic{
        .code = ErrorCode::Shape,
        .detail = "call",
        .message =
            fmt::format("'{}' of '{}' is {}, {} is given", *graph.node(ports[k]).leaf_name(),
                        graph.name(), wanted.to_string(), operands.back().type().to_string()),
        .where = SourcePosition::from(where),
        .notes = {},
        .help = {}});
  }
  return detail::call_node(std::make_shared<const detail::Callee>(std::move(plain)),
                           std::move(operands), where);
}

}  // namespace ricci
