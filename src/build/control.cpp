// Builders of control flow: bodies are made by calling the user's function on fresh inputs.
#include "ricci/build/control.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "ricci/build/build.h"
#include "ricci/ir/rebuild.h"
#include "ricci/op/leaf.h"

#include "build/aliases.h"
#include "build/body_names.h"

namespace ricci {
namespace {

std::vector<Type> types_of(std::span<const Value> values) {
  std::vector<Type> out;
  for (const Value& v : values) out.push_back(v.type());
  return out;
}

std::vector<Value> chain(std::span<const Value> a, std::span<const Value> b) {
  std::vector<Value> out(a.begin(), a.end());
  out.insert(out.end(), b.begin(), b.end());
  return out;
}

}  // namespace

BodyGraph make_body(std::string name, std::span<const Type> inputs, const BodyFunction& build,
                    const Registry& registry) {
  Graph outer("outer", registry);
  return make_body(std::move(name), inputs, build, outer);
}

namespace {

// A body with nothing in it but its inputs.
Graph begun_body(std::string name, std::span<const Type> inputs, const BodyFunction& build,
                 const Graph& outer) {
  if (!build) {
    throw UserError(ErrorCode::Attr, fmt::format("the body '{}' is empty", name),
                    "give a function that builds it, or a graph");
  }
  Graph body(std::move(name), outer.registry());
  body.keep_leaf_order();
  body.reserve_keys(outer.next_key());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    (void)body.input(fmt::format("in{}", i), inputs[i]);
  }
  return body;
}

std::vector<Value> inputs_of(Graph& body) {
  std::vector<Value> out;
  for (const NodeId id : body.inputs()) out.push_back(body.value({id, 0}));
  return out;
}

}  // namespace

BodyGraph make_body(std::string name, std::span<const Type> inputs, const BodyFunction& build,
                    Graph& outer) {
  Graph body = begun_body(std::move(name), inputs, build, outer);
  body.set_outputs(build(body, inputs_of(body)));
  outer.reserve_keys(body.next_key());
  return std::make_shared<const Graph>(std::move(body));
}

Body BodySource::make(std::string role, std::span<const Type> inputs, Graph& outer) const {
  BodyGraph graph = ready_ ? ready_ : make_body(role, inputs, build_, outer);
  return {std::move(role), std::move(graph)};
}

OpenBody BodySource::make_open(std::string role, std::span<const Type> inputs, Graph& outer) const {
  if (ready_) return {{std::move(role), ready_}, {}, {}};
  Graph body = begun_body(role, inputs, build_, outer);
  body.capture_from(outer);
  body.set_outputs(build_(body, inputs_of(body)));
  outer.reserve_keys(body.next_key());
  OpenBody out;
  for (const Graph::Captured& c : body.captures()) {
    out.captured.push_back(c.outer);
    out.params.push_back(*body.node(c.param).leaf_name());
  }
  body.end_captures();
  out.body = {std::move(role), std::make_shared<const Graph>(std::move(body))};
  return out;
}

std::vector<Value> captured_by(std::span<const OpenBody> bodies) {
  std::vector<Value> out;
  for (const OpenBody& b : bodies) {
    for (const Value& v : b.captured) {
      if (std::ranges::find(out, v) == out.end()) out.push_back(v);
    }
  }
  return out;
}

Body closed(const OpenBody& open, std::span<const Value> captured, std::size_t position) {
  if (captured.empty()) return open.body;
  const Graph& body = *open.body.graph;
  const std::vector<NodeId> inputs = body.inputs();
  position = std::min(position, inputs.size());
  Rebuilder build(body);
  for (std::size_t i = 0; i < position; ++i) build.copy(inputs[i]);
  std::set<std::string> taken;
  for (const NodeId id : body.leaves()) taken.insert(*body.node(id).leaf_name());
  std::vector<bool> is_capture(body.size(), false);
  for (const Value& v : captured) {
    const auto at = std::ranges::find(open.captured, v) - open.captured.begin();
    const bool used = static_cast<std::size_t>(at) < open.captured.size();
    std::string name = used ? open.params[static_cast<std::size_t>(at)] : std::string("unused");
    for (int k = 2; !used && !taken.insert(name).second; ++k) name = fmt::format("unused_{}", k);
    const Value input = build.to().input(name, v.type());
    if (!used) continue;
    const NodeId param = body.find_or_throw(name);
    is_capture[param] = true;
    build.map({param, 0}, input);
  }
  for (std::size_t i = position; i < inputs.size(); ++i) build.copy(inputs[i]);
  for (NodeId id = 0; id < body.size(); ++id) {
    if (!body.node(id).op.is<op::Input>() && !is_capture[id]) build.copy(id);
  }
  return {open.body.role, std::make_shared<const Graph>(build.finish())};
}

ClosedBody close_over(const Graph& body, std::optional<std::size_t> position) {
  const std::vector<NodeId> inputs = body.inputs();
  const std::size_t at = position.value_or(inputs.size());
  if (at > inputs.size()) {
    throw UserError(
        ErrorCode::Attr,
        fmt::format("captures cannot follow input {} of a body with {} inputs", at, inputs.size()));
  }
  ClosedBody closed;
  Rebuilder build(body);
  for (std::size_t i = 0; i < at; ++i) build.copy(inputs[i]);
  for (const NodeId id : body.params()) {
    const auto& param = *body.node(id).op.as<op::Param>();
    Node node = body.node(id);
    node.op = Op(op::Input{.name = param.name, .type = param.type, .role = {}});
    build.map({id, 0}, ValueId{build.to().append(std::move(node)), 0});
    closed.captured.push_back(param.name);
    closed.types.push_back(param.type);
  }
  for (std::size_t i = at; i < inputs.size(); ++i) build.copy(inputs[i]);
  for (NodeId id = 0; id < body.size(); ++id) {
    if (!body.node(id).is_leaf()) build.copy(id);
  }
  closed.graph = std::make_shared<const Graph>(build.finish());
  return closed;
}

std::vector<Value> captured_params(Graph& outer, const ClosedBody& body, std::source_location loc) {
  std::vector<Value> out;
  for (std::size_t i = 0; i < body.captured.size(); ++i) {
    const auto found = outer.find(body.captured[i]);
    out.push_back(found ? outer.value({*found, 0})
                        : outer.param(body.captured[i], body.types[i], loc));
    if (out.back().type() != body.types[i]) {
      throw UserError(ErrorCode::Shape,
                      fmt::format("the body captures '{}' as {}, but the graph '{}' has it as {}",
                                  body.captured[i], body.types[i].to_string(), outer.name(),
                                  out.back().type().to_string()));
    }
  }
  return out;
}

std::vector<Value> cond(Value predicate, std::span<const Value> captures,
                        const BodySource& then_body, const BodySource& else_body,
                        std::source_location loc) {
  const std::vector<Type> types = types_of(captures);
  const std::vector<Value> operands = chain(std::array{predicate}, captures);
  Graph& graph = detail::graph_of(operands, "if", loc);
  const std::array bodies = {then_body.make_open("then", types, graph),
                             else_body.make_open("else", types, graph)};
  const std::vector<Value> more = captured_by(bodies);
  return graph.add_node(
      Op(op::If{}), chain(operands, more),
      {closed(bodies[0], more, types.size()), closed(bodies[1], more, types.size())}, loc);
}

std::vector<Value> scan(std::span<const Value> carries, const ScanOptions& options,
                        const BodySource& body, std::source_location loc) {
  std::vector<Value> operands = chain(chain(carries, options.bcasts), options.xs);
  if (operands.empty() || (!options.length && options.xs.empty())) {
    throw UserError(ErrorCode::Attr, "a scan needs a carry or xs, and a length or xs",
                    "give ScanOptions::length");
  }
  std::vector<Type> step = types_of(operands);
  for (std::size_t k = carries.size() + options.bcasts.size(); k < step.size(); ++k) {
    if (step[k].dims.empty()) {
      throw UserError(ErrorCode::Shape, "an xs of a scan needs a first axis to run along");
    }
    step[k].dims.erase(step[k].dims.begin());
  }
  Graph& graph = detail::graph_of(operands, "scan", loc);
  const OpenBody open = body.make_open("body", step, graph);
  // What is captured is seen whole by every step.
  const std::size_t behind = carries.size() + options.bcasts.size();
  Body made = closed(open, open.captured, behind);
  operands.insert(operands.begin() + static_cast<std::ptrdiff_t>(behind), open.captured.begin(),
                  open.captured.end());
  require_names(*made.graph, options.saving.names, "the body of a scan");
  op::Scan op{.length = options.length ? *options.length : options.xs[0].dims()[0],
              .num_carry = static_cast<std::int64_t>(carries.size()),
              .num_bcast = static_cast<std::int64_t>(options.bcasts.size() + open.captured.size()),
              .num_xs = static_cast<std::int64_t>(options.xs.size()),
              .save_trajectory = options.trajectory,
              .num_checkpoints = options.trajectory ? 0 : options.checkpoints,
              .reverse = options.reverse,
              .save = options.saving.policy,
              .save_names = options.saving.names,
              .save_bytes = options.saving.bytes};
  return graph.add_node(Op(std::move(op)), operands, {std::move(made)}, loc);
}

namespace {

Value scan_one(Value init, const ScanOptions& options, const BodySource& body,
               std::source_location loc) {
  const std::vector<Value> results = scan(std::array{init}, options, body, loc);
  if (results.size() != 1) {
    throw UserError(ErrorCode::Shape,
                    fmt::format("the body gives {} values, but this scan has one carry and nothing "
                                "else",
                                results.size()),
                    "scan(carries, options, body) gives all results");
  }
  return results[0];
}

}  // namespace

Value scan(Value init, const BodySource& body, const Dim& length, std::source_location loc) {
  return scan_one(init, {.length = length}, body, loc);
}

Value scan_trajectory(Value init, const BodySource& body, const Dim& length,
                      std::source_location loc) {
  return scan_one(init, {.length = length, .trajectory = true}, body, loc);
}

Value scan_with_xs(Value init, std::span<const Value> xs, const BodySource& body, const Dim& length,
                   std::source_location loc) {
  return scan_one(init, {.xs = {xs.begin(), xs.end()}, .length = length}, body, loc);
}

Value scan_with_bcasts_and_xs(Value init, std::span<const Value> bcasts, std::span<const Value> xs,
                              const BodySource& body, const Dim& length, std::source_location loc) {
  return scan_one(
      init,
      {.bcasts = {bcasts.begin(), bcasts.end()}, .xs = {xs.begin(), xs.end()}, .length = length},
      body, loc);
}

Value scan_checkpointed(Value init, const BodySource& body, const Dim& length,
                        std::int64_t checkpoints, std::source_location loc) {
  if (checkpoints < 1) {
    throw UserError(ErrorCode::Attr,
                    fmt::format("checkpoints is {}, but at least 1 is needed", checkpoints),
                    "1 ≤ checkpoints ≤ length");
  }
  return scan_one(init, {.length = length, .checkpoints = checkpoints}, body, loc);
}

namespace {

// The op has carries only: a body that gives its inputs behind the first `carries` back as they
// are.
Body handing_on(const Body& body, std::size_t carries) {
  const std::vector<NodeId> inputs = body.graph->inputs();
  if (inputs.size() <= carries || body.graph->outputs().size() != carries) return body;
  Graph longer = *body.graph;
  std::vector<ValueId> outputs(longer.outputs().begin(), longer.outputs().end());
  for (std::size_t i = carries; i < inputs.size(); ++i) outputs.push_back({inputs[i], 0});
  longer.set_outputs(std::move(outputs));
  return {body.role, std::make_shared<const Graph>(std::move(longer))};
}

}  // namespace

WhileResult while_loop(std::span<const Value> carries, const BodySource& condition,
                       const BodySource& body, const WhileOptions& options,
                       std::source_location loc) {
  if (carries.empty()) throw UserError(ErrorCode::Attr, "a while loop needs at least one carry");
  if (options.tapes && !options.max_iterations) {
    throw UserError(ErrorCode::UnboundedLoop, "a loop without a bound has no tapes",
                    "give WhileOptions::max_iterations");
  }
  std::vector<Value> operands = chain(carries, options.bcasts);
  const std::vector<Type> types = types_of(operands);
  Graph& graph = detail::graph_of(operands, "while", loc);
  const std::array open = {condition.make_open("cond", types, graph),
                           body.make_open("body", types, graph)};
  const std::vector<Value> captured = captured_by(open);
  operands.insert(operands.end(), captured.begin(), captured.end());
  const std::vector<Value> all =
      graph.add_node(Op(op::While{.max_iterations = options.max_iterations,
                                  .num_checkpoints = options.checkpoints}),
                     operands,
                     {closed(open[0], captured, types.size()),
                      handing_on(closed(open[1], captured, types.size()), carries.size())},
                     loc);
  WhileResult out;
  const auto given = static_cast<std::ptrdiff_t>(carries.size());
  const auto finals = all.begin() + static_cast<std::ptrdiff_t>(operands.size());
  out.carries.assign(all.begin(), all.begin() + given);
  if (options.trip_count) out.trip_count = *finals;
  if (options.tapes) out.tapes.assign(finals + 1, finals + 1 + given);
  if (options.trip_count) graph.set_wanted(finals->id(), true);
  for (const Value& tape : out.tapes) graph.set_wanted(tape.id(), true);
  return out;
}

WhileResult while_taped(std::span<const Value> carries, const BodySource& condition,
                        const BodySource& body, std::int64_t max_iterations,
                        std::int64_t checkpoints, std::source_location loc) {
  return while_loop(carries, condition, body,
                    {.max_iterations = max_iterations,
                     .checkpoints = checkpoints,
                     .trip_count = true,
                     .tapes = true},
                    loc);
}

}  // namespace ricci
