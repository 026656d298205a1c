// Builders of control flow: bodies are made by calling the user's function on fresh inputs.
#include <fmt/format.h>

#include "ricci/build/build.h"

namespace ricci {
namespace {

std::vector<Type> types_of(std::span<const Value> values) {
  std::vector<Type> out;
  for (const Value& v : values) out.push_back(v.type());
  return out;
}

}  // namespace

std::shared_ptr<const Graph> make_body(std::string name, std::span<const Type> inputs,
                                       const BodyFunction& build, const Registry& registry) {
  Graph body(std::move(name), registry);
  std::vector<Value> values;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    values.push_back(body.input(fmt::format("in{}", i), inputs[i]));
  }
  body.set_outputs(build(body, values));
  return std::make_shared<const Graph>(std::move(body));
}

std::vector<Value> cond(Value predicate, std::span<const Value> captures,
                        const BodyFunction& then_body, const BodyFunction& else_body,
                        std::source_location loc) {
  const std::vector<Type> types = types_of(captures);
  const Registry& registry = predicate.graph().registry();
  std::vector<Value> operands{predicate};
  operands.insert(operands.end(), captures.begin(), captures.end());
  return predicate.graph().add_node(Op(op::If{}), operands,
                                    {{"then", make_body("then", types, then_body, registry)},
                                     {"else", make_body("else", types, else_body, registry)}},
                                    loc);
}

std::vector<Value> scan(std::span<const Value> carries, const ScanOptions& options,
                        const BodyFunction& body, std::source_location loc) {
  std::vector<Value> operands(carries.begin(), carries.end());
  operands.insert(operands.end(), options.bcasts.begin(), options.bcasts.end());
  operands.insert(operands.end(), options.xs.begin(), options.xs.end());
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
  op::Scan op{.length = options.length ? *options.length : options.xs[0].dims()[0],
              .num_carry = static_cast<std::int64_t>(carries.size()),
              .num_bcast = static_cast<std::int64_t>(options.bcasts.size()),
              .num_xs = static_cast<std::int64_t>(options.xs.size()),
              .save_trajectory = options.trajectory,
              .num_checkpoints = options.checkpoints,
              .reverse = options.reverse};
  return graph.add_node(Op(std::move(op)), operands,
                        {{"body", make_body("body", step, body, graph.registry())}}, loc);
}

}  // namespace ricci
