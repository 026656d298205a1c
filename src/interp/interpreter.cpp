#include "ricci/interp/interpreter.h"

#include <fmt/format.h>

#include "ricci/op/leaf.h"
#include "ricci/rule/eval.h"

namespace ricci {
namespace {

struct Leaf {
  std::string name;
  Type type;
};

std::optional<Leaf> leaf_of(const Node& node) {
  if (const auto* in = node.op.as<op::Input>()) return Leaf{in->name, in->type};
  if (const auto* p = node.op.as<op::Param>()) return Leaf{p->name, p->type};
  return std::nullopt;
}

[[noreturn]] void fail_feed(ErrorCode code, const Node& node, std::string message,
                            std::string help = {}) {
  Diagnostic d{code, "feed", std::move(message), {}, {}, std::move(help)};
  if (node.provenance) d.where = node.provenance->where;
  throw UserError(std::move(d));
}

// A fed tensor as the declared type; [1] is accepted for [].
Tensor checked_feed(const Node& node, const Leaf& leaf, const Feeds& feeds) {
  const auto it = feeds.find(leaf.name);
  if (it == feeds.end()) {
    fail_feed(ErrorCode::Name, node, fmt::format("no value is given for '{}'", leaf.name),
              fmt::format("feed a tensor of type {}", leaf.type.to_string()));
  }
  const Tensor& value = it->second;
  if (value.type() == leaf.type) return value;
  const bool one_element =
      value.dtype() == leaf.type.dtype && leaf.type.dims.empty() && value.dims() == StaticDims{1};
  if (one_element) return value.reshaped({});
  fail_feed(value.dtype() == leaf.type.dtype ? ErrorCode::Shape : ErrorCode::DType, node,
            fmt::format("'{}' is {}, but {} is fed", leaf.name, leaf.type.to_string(),
                        value.type().to_string()));
}

class Interpreter {
 public:
  explicit Interpreter(const InterpretOptions& options) : options_(options) {}

  // `leaf(node)` supplies inputs and params.
  template <class LeafValue>
  std::vector<Tensor> run(const Graph& graph, LeafValue&& leaf) {
    std::vector<std::size_t> uses = graph.use_counts();
    std::vector<std::vector<Tensor>> values(graph.size());
    for (NodeId id = 0; id < graph.size(); ++id) {
      const Node& node = graph.nodes()[id];
      if (leaf_of(node)) {
        values[id] = {leaf(node)};
        continue;
      }
      std::vector<Tensor> operands;
      for (const ValueId v : node.operands) operands.push_back(values[v.node][v.result]);
      EvalContext context(node, graph, std::move(operands), options_.seed,
                          [this](const Graph& body, std::span<const Tensor> inputs) {
                            return run_body(body, inputs);
                          });
      evaluate(context);
      values[id] = context.take_results();
      if (options_.observer) options_.observer(graph, id, values[id]);
      for (const ValueId v : node.operands) {
        if (--uses[v.node] == 0) values[v.node].clear();
      }
    }
    std::vector<Tensor> outputs;
    for (const ValueId v : graph.outputs()) outputs.push_back(values[v.node][v.result]);
    return outputs;
  }

  std::vector<Tensor> run_body(const Graph& body, std::span<const Tensor> inputs) {
    std::size_t next = 0;
    return run(body, [&](const Node& node) {
      check_internal(next < inputs.size(), "a body is given too few inputs");
      const Tensor& value = inputs[next++];
      check_internal(value.type() == node.types[0], "a body is given an input of another type");
      return value;
    });
  }

 private:
  const InterpretOptions& options_;
};

}  // namespace

SymbolBindings bindings_from_feeds(const Graph& graph, const Feeds& feeds) {
  SymbolBindings bindings;
  for (const Node& node : graph.nodes()) {
    const auto leaf = leaf_of(node);
    const auto it = leaf ? feeds.find(leaf->name) : feeds.end();
    if (it == feeds.end() || it->second.rank() != leaf->type.rank()) continue;
    for (std::size_t i = 0; i < leaf->type.rank(); ++i) {
      const auto symbol = leaf->type.dims[i].as_symbol();
      if (!symbol) continue;
      const std::int64_t size = it->second.dims()[i];
      const auto [known, fresh] = bindings.emplace(*symbol, size);
      if (!fresh && known->second != size) {
        fail_feed(ErrorCode::Shape, node,
                  fmt::format("'{}' makes the size '{}' {}, but another feed made it {}",
                              leaf->name, *symbol, size, known->second));
      }
    }
  }
  return bindings;
}

std::vector<Tensor> interpret(const Graph& graph, const Feeds& feeds,
                              const InterpretOptions& options) {
  for (const auto& [name, unused] : feeds) (void)graph.find_or_throw(name);
  const SymbolBindings bindings = bindings_from_feeds(graph, feeds);
  const Graph bound = bindings.empty() ? graph : graph.bind(bindings);
  return Interpreter(options).run(
      bound, [&](const Node& node) { return checked_feed(node, *leaf_of(node), feeds); });
}

}  // namespace ricci
