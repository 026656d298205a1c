#include "ricci/build/custom.h"

#include <limits>

#include <fmt/format.h>

#include "ricci/op/leaf.h"

namespace ricci {
namespace {

using Kind = op::InputRole::Kind;

Graph& graph_of(std::span<const Value> inputs, std::string_view what) {
  if (inputs.empty()) {
    throw UserError(ErrorCode::Attr, fmt::format("'{}' needs at least one input", what));
  }
  return inputs[0].graph();
}

// Builds the body of a derivative: primals, then special inputs under their conventional names.
class RuleBody {
 public:
  RuleBody(std::string role, std::span<const Type> primals, const Registry& registry)
      : body_(std::move(role), registry) {
    body_.keep_leaf_order();
    for (std::size_t i = 0; i < primals.size(); ++i) {
      primals_.push_back(body_.input(fmt::format("in{}", i), primals[i]));
    }
  }
  [[nodiscard]] std::vector<Value> primals() const { return primals_; }
  [[nodiscard]] Graph& graph() noexcept { return body_; }
  Value special(Kind kind, std::size_t index, const Type& type) {
    const op::InputRole role{kind, static_cast<std::int64_t>(index)};
    return body_.input(op::conventional_name(role), type, role);
  }
  [[nodiscard]] BodyGraph finish(const std::vector<Value>& outputs) {
    body_.set_outputs(outputs);
    return std::make_shared<const Graph>(std::move(body_));
  }

 private:
  Graph body_;
  std::vector<Value> primals_;
};

struct FnTypes {
  std::vector<Type> inputs;
  std::vector<Type> outputs;
  std::vector<Type> residuals;
  std::vector<bool> differentiable;  // one per input
};

FnTypes types_of(std::span<const Value> inputs, const Graph& fwd, const CustomFnRules& rules) {
  FnTypes t;
  for (const Value& v : inputs) {
    t.inputs.push_back(v.type());
    t.differentiable.push_back(is_differentiable(v.dtype()));
  }
  for (const std::int64_t k : rules.no_gradient) {
    if (k >= 0 && k < static_cast<std::int64_t>(t.inputs.size())) {
      t.differentiable[static_cast<std::size_t>(k)] = false;
    }
  }
  const auto total = static_cast<std::int64_t>(fwd.outputs().size());
  for (std::int64_t i = 0; i < total; ++i) {
    auto& list = i < total - rules.num_residuals ? t.outputs : t.residuals;
    list.push_back(fwd.type(fwd.outputs()[static_cast<std::size_t>(i)]));
  }
  return t;
}

BodyGraph make_vjp(const FnTypes& t, const VjpFunction& build, const Registry& registry) {
  RuleBody body("vjp", t.inputs, registry);
  VjpInputs in{.primals = body.primals(), .outputs = {}, .d_outputs = {}, .residuals = {}};
  for (std::size_t i = 0; i < t.outputs.size(); ++i) {
    in.outputs.push_back(body.special(Kind::PrimalOutput, i, t.outputs[i]));
  }
  for (std::size_t i = 0; i < t.outputs.size(); ++i) {
    const bool has = is_differentiable(t.outputs[i].dtype);
    in.d_outputs.push_back(has ? body.special(Kind::DOutput, i, t.outputs[i]) : Value());
  }
  for (std::size_t i = 0; i < t.residuals.size(); ++i) {
    in.residuals.push_back(body.special(Kind::Residual, i, t.residuals[i]));
  }
  return body.finish(build(body.graph(), in));
}

BodyGraph make_jvp(const FnTypes& t, const JvpFunction& build, const Registry& registry) {
  RuleBody body("jvp", t.inputs, registry);
  JvpInputs in{.primals = body.primals(), .tangents = {}, .outputs = {}};
  for (std::size_t k = 0; k < t.inputs.size(); ++k) {
    in.tangents.push_back(t.differentiable[k] ? body.special(Kind::Tangent, k, t.inputs[k])
                                              : Value());
  }
  for (std::size_t i = 0; i < t.outputs.size(); ++i) {
    in.outputs.push_back(body.special(Kind::PrimalOutput, i, t.outputs[i]));
  }
  return body.finish(build(body.graph(), in));
}

std::vector<Value> build_custom_fn(std::span<const Value> inputs, const BodySource& fwd,
                                   const CustomFnRules& rules, std::size_t most,
                                   std::source_location loc) {
  Graph& graph = graph_of(inputs, "custom_fn");
  const Registry& registry = graph.registry();
  std::vector<Type> types;
  for (const Value& v : inputs) types.push_back(v.type());
  std::vector<Body> bodies{fwd.make("fwd", types, graph)};
  const FnTypes t = types_of(inputs, *bodies[0].graph, rules);
  if (t.outputs.size() > most) {
    throw UserError(ErrorCode::Shape,
                    fmt::format("fwd gives {} outputs, but custom_fn has one", t.outputs.size()),
                    "use custom_fn_multi");
  }
  if (rules.vjp_body) {
    bodies.push_back({"vjp", rules.vjp_body});
  } else if (rules.vjp) {
    bodies.push_back({"vjp", make_vjp(t, rules.vjp, registry)});
  }
  if (rules.jvp_body) {
    bodies.push_back({"jvp", rules.jvp_body});
  } else if (rules.jvp) {
    bodies.push_back({"jvp", make_jvp(t, rules.jvp, registry)});
  }
  std::vector<Value> results =
      graph.add_node(Op(op::CustomFn{.num_residuals = rules.num_residuals,
                                     .no_gradient = rules.no_gradient,
                                     .transpose_jvp = rules.transpose_jvp}),
                     inputs, std::move(bodies), loc);
  results.resize(t.outputs.size());
  return results;
}

}  // namespace

Value custom_fn(std::span<const Value> inputs, const BodySource& fwd, const CustomFnRules& rules,
                std::source_location loc) {
  return build_custom_fn(inputs, fwd, rules, 1, loc)[0];
}

Value custom_fn(std::span<const Value> inputs, Graph fwd, std::optional<Graph> vjp,
                std::optional<Graph> jvp, std::source_location loc) {
  CustomFnRules rules;
  if (vjp) rules.vjp_body = std::make_shared<const Graph>(std::move(*vjp));
  if (jvp) rules.jvp_body = std::make_shared<const Graph>(std::move(*jvp));
  return custom_fn(inputs, BodySource(std::move(fwd)), rules, loc);
}

MultiOutputHandle custom_fn_multi(std::span<const Value> inputs, const BodySource& fwd,
                                  const CustomFnRules& rules, std::source_location loc) {
  constexpr auto Any = std::numeric_limits<std::size_t>::max();
  return MultiOutputHandle(build_custom_fn(inputs, fwd, rules, Any, loc));
}

Value MultiOutputHandle::output(const Graph& graph, std::size_t i) const {
  if (i >= outputs_.size()) {
    throw UserError(ErrorCode::Name,
                    fmt::format("there is no output {}; the function has {}", i, outputs_.size()));
  }
  if (&outputs_[i].graph() != &graph) {
    throw UserError(ErrorCode::Name,
                    fmt::format("the function was built in the graph '{}', not in '{}'",
                                outputs_[i].graph().name(), graph.name()));
  }
  return outputs_[i];
}

std::vector<Value> custom_op(std::string name, Bytes attrs, std::span<const Value> inputs,
                             std::int64_t version, std::source_location loc) {
  Graph& graph = graph_of(inputs, name);
  return graph.add_node(
      Op(op::Custom{.name = std::move(name), .version = version, .attrs = std::move(attrs)}),
      inputs, {}, loc);
}

Value custom_op_packed(std::string name, Bytes attrs, std::span<const Value> inputs,
                       const Type& out, std::int64_t version, std::source_location loc) {
  const std::vector<Value> results = custom_op(name, std::move(attrs), inputs, version, loc);
  // [1] stands for [] where a caller asserts a type.
  const bool one_element = results.size() == 1 && results[0].type().dims.empty() &&
                           out == results[0].type().with(Dims{1});
  if (results.size() != 1 || (results[0].type() != out && !one_element)) {
    throw UserError(ErrorCode::Shape,
                    fmt::format("'{}' gives {}, but {} is declared", name,
                                results.size() == 1 ? results[0].type().to_string()
                                                    : fmt::format("{} results", results.size()),
                                out.to_string()));
  }
  return results[0];
}

}  // namespace ricci
