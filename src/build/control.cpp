// Builders of control flow: bodies are made by calling the user's function on fresh inputs.
#include "ricci/build/control.h"

#include <fmt/format.h>

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

BodyGraph make_body(std::string name, std::span<const Type> inputs, const BodyFunction& build,
                    Graph& outer) {
  if (!build) {
    throw UserError(ErrorCode::Attr, fmt::format("the body '{}' is empty", name),
                    "give a function that builds it, or a graph");
  }
  Graph body(std::move(name), outer.registry());
  body.reserve_keys(outer.next_key());
  std::vector<Value> values;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    values.push_back(body.input(fmt::format("in{}", i), inputs[i]));
  }
  body.set_outputs(build(body, values));
  outer.reserve_keys(body.next_key());
  return std::make_shared<const Graph>(std::move(body));
}

Body BodySource::make(std::string role, std::span<const Type> inputs, Graph& outer) const {
  BodyGraph graph = ready_ ? ready_ : make_body(role, inputs, build_, outer);
  return {std::move(role), std::move(graph)};
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
  Graph& graph = predicate.graph();
  return graph.add_node(
      Op(op::If{}), chain(std::array{predicate}, captures),
      {then_body.make("then", types, graph), else_body.make("else", types, graph)}, loc);
}

std::vector<Value> scan(std::span<const Value> carries, const ScanOptions& options,
                        const BodySource& body, std::source_location loc) {
  const std::vector<Value> operands = chain(chain(carries, options.bcasts), options.xs);
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
  Graph& graph = operands[0].graph();
  Body made = body.make("body", step, graph);
  require_names(*made.graph, options.saving.names, "the body of a scan");
  op::Scan op{.length = options.length ? *options.length : options.xs[0].dims()[0],
              .num_carry = static_cast<std::int64_t>(carries.size()),
              .num_bcast = static_cast<std::int64_t>(options.bcasts.size()),
              .num_xs = static_cast<std::int64_t>(options.xs.size()),
              .save_trajectory = options.trajectory,
              .num_checkpoints = options.checkpoints,
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

WhileResult while_loop(std::span<const Value> carries, const BodySource& condition,
                       const BodySource& body, const WhileOptions& options,
                       std::source_location loc) {
  if (carries.empty()) throw UserError(ErrorCode::Attr, "a while loop needs at least one carry");
  if (options.tapes && !options.max_iterations) {
    throw UserError(ErrorCode::UnboundedLoop, "a loop without a bound has no tapes",
                    "give WhileOptions::max_iterations");
  }
  const std::vector<Type> types = types_of(carries);
  Graph& graph = carries[0].graph();
  const std::vector<Value> all = graph.add_node(
      Op(op::While{.max_iterations = options.max_iterations,
                   .num_checkpoints = options.checkpoints}),
      carries, {condition.make("cond", types, graph), body.make("body", types, graph)}, loc);
  WhileResult out;
  const auto finals = all.begin() + static_cast<std::ptrdiff_t>(carries.size());
  out.carries.assign(all.begin(), finals);
  if (options.trip_count) out.trip_count = *finals;
  if (options.tapes) out.tapes.assign(finals + 1, all.end());
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
