#include "ricci/interp/interpreter.h"

#include <algorithm>
#include <new>
#include <stdexcept>

#include <fmt/format.h>

#include "ricci/compiler/rule/eval.h"
#include "ricci/op/leaf.h"
#include "ricci/support/text.h"

#include "interp/leaf.h"
#include "interp/memory.h"
#include "support/float_environment.h"
#include "support/stop_flag.h"

namespace ricci {

std::optional<Leaf> leaf_of(const Node& node) {
  if (!node.is_leaf()) return std::nullopt;
  return Leaf{*node.leaf_name(), node.types[0]};
}

void fail_feed(ErrorCode code, const Node& node, std::string message, std::string help) {
  Diagnostic d{code, "feed", std::move(message), {}, {}, std::move(help)};
  if (node.provenance) d.where = node.provenance->where;
  throw UserError(std::move(d));
}

namespace {

[[noreturn]] void fail_missing(const Node& node, const Leaf& leaf) {
  fail_feed(ErrorCode::Name, node, fmt::format("no value is given for '{}'", leaf.name),
            fmt::format("feed a tensor of type {}", leaf.type.to_string()));
}

// A fed tensor as the declared type; [1] is accepted for [].
Tensor checked_feed(const Node& node, const Leaf& leaf, const Feeds& feeds) {
  const Tensor& value = feeds.find(leaf.name)->second;
  if (value.type() == leaf.type) return value;
  const bool one_element =
      value.dtype() == leaf.type.dtype && leaf.type.dims.empty() && value.dims() == StaticDims{1};
  if (one_element) return value.reshaped({});
  fail_feed(value.dtype() == leaf.type.dtype ? ErrorCode::Shape : ErrorCode::DType, node,
            fmt::format("'{}' is {}, but {} is fed", leaf.name, leaf.type.to_string(),
                        value.type().to_string()));
}

std::string result_types(const Node& node) {
  std::vector<std::string> types;
  for (const Type& t : node.types) types.push_back(t.to_string());
  return join(types, ", ");
}

[[noreturn]] void out_of_memory(const Node& node) {
  Diagnostic d{ErrorCode::OutOfMemory,
               std::string(node.op.mnemonic()),
               fmt::format("there is no room to compute {}", result_types(node)),
               {},
               {},
               {}};
  if (node.provenance) d.where = node.provenance->where;
  throw UserError(std::move(d));
}

// Runs a node's kernel; a fault that does not say which op it is about, or where, learns it here.
void evaluate_located(const Node& node, EvalContext& context) {
  try {
    evaluate(context);
  } catch (const UserError& e) {
    if (e.code() == ErrorCode::Stopped) throw;
    std::vector<Diagnostic> ds = e.diagnostics();
    Diagnostic& d = ds.front();
    const bool placed = d.where.known() || !d.where.file.empty();
    if (placed && !d.detail.empty()) throw;
    if (d.detail.empty()) {
      d.detail = node.op.mnemonic();
      if (d.code == ErrorCode::OutOfMemory) d.notes.push_back("to compute " + result_types(node));
    }
    if (!placed && node.provenance) d.where = node.provenance->where;
    throw UserError(std::move(ds));
  } catch (const std::bad_alloc&) {
    out_of_memory(node);
  } catch (const std::length_error&) {
    out_of_memory(node);
  }
}

class Interpreter {
 public:
  explicit Interpreter(const InterpretOptions& options) : options_(options) {}

  // `leaf(node)` supplies inputs and params.
  template <class LeafValue>
  std::vector<Tensor> run(const Graph& graph, LeafValue&& leaf) {
    std::vector<std::size_t> uses = graph.use_counts();
    std::vector<std::vector<Tensor>> values(graph.size());
    throw_if_set(stop_);  // a body may have no nodes
    for (NodeId id = 0; id < graph.size(); ++id) {
      throw_if_set(stop_);
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
      evaluate_located(node, context);
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
  const StopFlag* stop_ = current_stop_flag();
};

void check_given_symbols(const Graph& graph, const SymbolBindings& given) {
  if (given.empty()) return;
  const std::set<std::string> symbols = graph.symbols();
  for (const auto& [symbol, size] : given) {
    if (!symbols.contains(symbol)) {
      throw UserError(ErrorCode::Name, fmt::format("no dimension is named '{}'", symbol));
    }
    if (size < 0) {
      throw UserError(ErrorCode::Shape, fmt::format("{} is not a size for '{}'", size, symbol));
    }
  }
}

// Every node is run, so every symbol needs a size.
void require_bound(const Graph& graph, const SymbolBindings& bindings) {
  for (const std::string& symbol : graph.symbols()) {
    if (bindings.contains(symbol)) continue;
    throw UserError(
        ErrorCode::NeedsStaticDim, fmt::format("nothing says how large '{}' is", symbol),
        fmt::format("give its size: 'ricci run --size {0}=3', or InterpretOptions::symbols in C++",
                    symbol));
  }
}

}  // namespace

// Inference runs again with the sizes filled in, and may refuse them.
Graph bind_sizes(const Graph& graph, const SymbolBindings& bindings) {
  if (bindings.empty()) return graph;
  try {
    return graph.bind(bindings);
  } catch (const UserError& e) {
    std::vector<std::string> sizes;
    for (const auto& [symbol, size] : bindings)
      sizes.push_back(fmt::format("{} = {}", symbol, size));
    std::vector<Diagnostic> ds = e.diagnostics();
    ds.front().notes.push_back("with the sizes " + join(sizes, ", "));
    throw UserError(std::move(ds));
  }
}

CheckedFeeds check_feeds(const Graph& graph, const Feeds& feeds, const SymbolBindings& symbols) {
  for (const auto& [name, unused] : feeds) (void)graph.find_or_throw(name);
  for (const Node& node : graph.nodes()) {
    const auto leaf = leaf_of(node);
    if (leaf && !feeds.contains(leaf->name)) fail_missing(node, *leaf);
  }
  check_given_symbols(graph, symbols);
  CheckedFeeds checked{{}, bindings_from_feeds(graph, feeds, symbols)};
  require_bound(graph, checked.bindings);
  for (const Node& node : graph.nodes()) {
    auto leaf = leaf_of(node);
    if (!leaf) continue;
    leaf->type = leaf->type.bind(checked.bindings);
    checked.values.push_back(checked_feed(node, *leaf, feeds));
  }
  return checked;
}

std::size_t output_named(std::span<const std::string> names, std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  std::vector<std::string> known(names.begin(), names.end());
  const auto close = nearest(name, known);
  if (known.empty()) known.emplace_back("none");
  throw UserError(ErrorCode::Name, fmt::format("no output is called '{}'", shortened(name)),
                  close ? fmt::format("did you mean '{}'?", *close)
                        : fmt::format("they are: {}", shortened(join(known, ", "), 1000)));
}

const Tensor& Outputs::operator[](std::string_view name) const& {
  return at(output_named(names(), name));
}

Outputs interpret(const Graph& graph, const Feeds& feeds, const InterpretOptions& options) {
  const DefaultFloatEnvironment floats;
  const StopScope stoppable(options.stop);
  const CheckedFeeds checked = check_feeds(graph, feeds, options.symbols);
  const Graph bound = bind_sizes(graph, checked.bindings);
  require_memory(bound, options.memory_limit);
  std::size_t next = 0;
  auto names = std::make_shared<const std::vector<std::string>>(graph.output_names());
  return {Interpreter(options).run(bound, [&](const Node&) { return checked.values[next++]; }),
          std::move(names)};
}

}  // namespace ricci
