// Functions that bring rules of their own, as `custom_fn` ops. A rule is about the arguments; by
// what a function captures it is differentiated as any function is.
#include <fmt/format.h>

#include "ricci/array/create.h"
#include "ricci/array/ops.h"
#include "ricci/array/transform.h"
#include "ricci/op/ops.h"
#include "ricci/support/error.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/jvp.h"

#include "array/graph.h"
#include "array/node.h"
#include "array/transform_cache.h"

namespace ricci::detail {
namespace {

using Kind = op::InputRole::Kind;

class CustomCall {
 public:
  CustomCall(const TracedFunction& f, std::span<const Array> args, Tracing& tracing,
             const RuleInputs& inputs, bool reverse, std::source_location where)
      : f_(f),
        graph_(f.callee->graph),
        args_(args),
        tracing_(tracing),
        inputs_(inputs),
        reverse_(reverse),
        where_(where) {}

  std::vector<Array> run(std::span<const Array> rule) {
    std::vector<Array> outputs = checked(rule);
    captures_ = f_.captures;
    find_captures(tracing_.trace(), outputs, captures_);
    for (std::size_t k = 0; k < f_.captures.size(); ++k) {
      const Array& x = f_.captures[k];
      if (x.node()->trace && is_differentiable(x.dtype())) live_.push_back(k);
    }
    if (!live_.empty()) add_captured(outputs);
    tracing_.end();
    std::vector<Array> operands(args_.begin(), args_.end());
    operands.insert(operands.end(), captures_.begin(), captures_.end());
    const char* role = reverse_ ? "vjp" : "jvp";
    return results_of(op_node(Op(op::CustomFn{.num_residuals = 0,
                                              .no_gradient = without_gradient(operands),
                                              .transpose_jvp = !reverse_}),
                              operands, where_,
                              {{"fwd", std::make_shared<const Graph>(forward(operands))},
                               {role, std::make_shared<const Graph>(graph_between(
                                          role, rule_graph_inputs(operands), outputs))}}));
  }

 private:
  [[nodiscard]] const char* what() const { return reverse_ ? "custom_vjp" : "custom_jvp"; }

  // Rules speak of everything; the op asks for what has a derivative.
  [[nodiscard]] std::vector<Array> checked(std::span<const Array> rule) const {
    const std::vector<Array>& about = reverse_ ? inputs_.arguments : inputs_.results;
    if (rule.size() != about.size()) {
      refuse(ErrorCode::Shape, "rule",
             fmt::format("the rule of '{}' gives {} arrays, {} are wanted", what(), rule.size(),
                         about.size()),
             reverse_ ? "one cotangent an argument, a tuple for several"
                      : "the tangent of the result, with its structure",
             where_);
    }
    std::vector<Array> out;
    for (std::size_t i = 0; i < rule.size(); ++i) {
      if (!is_differentiable(about[i].dtype())) continue;
      const bool spread = rule[i].shape() != about[i].shape() && rule[i].rank() == 0;
      out.push_back(spread ? broadcast_to(rule[i], about[i].shape(), where_) : rule[i]);
    }
    return out;
  }

  // What the rule's part by the captures is.
  void add_captured(std::vector<Array>& outputs) {
    try {
      const auto made = made_from(f_.callee, words(), [&](const Graph& g) {
        Transformed t =
            reverse_ ? vjp(g, references(g), GradOptions::training()) : jvp(g, references(g));
        return MadeFunctions{.functions = {make_function(std::move(t))}};
      });
      std::vector<Array> at = inputs_.arguments;
      at.insert(at.end(), f_.captures.begin(), f_.captures.end());
      NamedArrays named = named_inputs(graph_, at);
      const MadeFunction& made_function = made->functions[0];
      reverse_ ? name_cotangents(made_function, named) : name_tangents(made_function, named);
      const std::vector<Array> found = call_made(made_function, named, where_);
      const std::size_t values = graph_.outputs().size();
      if (reverse_) {
        outputs.insert(outputs.end(), found.begin() + static_cast<std::ptrdiff_t>(values),
                       found.end());
        return;
      }
      for (std::size_t i = 0, next = 0; i < values; ++i) {
        if (!is_differentiable(inputs_.results[i].dtype())) continue;
        outputs[next] = add(outputs[next], found[values + i], where_);
        ++next;
      }
    } catch (const UserError& e) {
      if (e.code() == ErrorCode::Stopped) throw;
      const Array& x = f_.captures[live_[0]];
      refuse(
          ErrorCode::Refused, "capture",
          fmt::format("the function of '{}' captures {}, which is being traced by '{}', and "
                      "cannot be differentiated by it: {}",
                      what(), x.type().to_string(), x.node()->trace->what, e.diagnostic().message),
          "pass it as an argument: the rule says what its derivative is", where_);
    }
  }

  [[nodiscard]] std::string words() const {
    std::string out = fmt::format("{} by captures", reverse_ ? "vjp" : "jvp");
    for (const std::size_t k : live_) out += fmt::format(" {}", args_.size() + k);
    return out;
  }
  [[nodiscard]] std::vector<ValueRef> references(const Graph& g) const {
    const std::vector<NodeId> ports = g.leaves();
    std::vector<ValueRef> out;
    for (const std::size_t k : live_) out.emplace_back(ValueId{ports[args_.size() + k], 0});
    return out;
  }

  void name_cotangents(const MadeFunction& made, NamedArrays& named) const {
    for (std::size_t i = 0; i < inputs_.along.size(); ++i) {
      if (!is_differentiable(inputs_.along[i].dtype())) continue;
      named.emplace(made.name_of(fmt::format("d_output_{}", i)), inputs_.along[i]);
    }
  }
  void name_tangents(const MadeFunction& made, NamedArrays& named) {
    const std::vector<NodeId> ports = graph_.leaves();
    for (const std::size_t k : live_) {
      const std::size_t port = args_.size() + k;
      const Array& t = tangents_.emplace_back(tracing_.placeholder(f_.captures[k].type()));
      named.emplace(made.name_of("tangent_" + *graph_.node(ports[port]).leaf_name()), t);
    }
  }

  [[nodiscard]] std::vector<std::int64_t> without_gradient(const std::vector<Array>& operands) {
    std::vector<std::int64_t> out;
    for (std::size_t k = args_.size(); k < operands.size(); ++k) {
      const bool live = std::ranges::find(live_, k - args_.size()) != live_.end();
      if (!live && is_differentiable(operands[k].dtype())) {
        out.push_back(static_cast<std::int64_t>(k));
      }
    }
    return out;
  }

  // The function itself, with what the rule captures as inputs it does not use.
  [[nodiscard]] Graph forward(const std::vector<Array>& operands) const {
    Graph fwd = graph_;
    fwd.set_name("fwd");
    for (std::size_t k = args_.size() + f_.captures.size(); k < operands.size(); ++k) {
      (void)fwd.input(fmt::format("rule.{}", k), operands[k].type());
    }
    return fwd;
  }

  [[nodiscard]] std::vector<GraphInput> rule_graph_inputs(
      const std::vector<Array>& operands) const {
    std::vector<GraphInput> in;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      const bool argument = k < args_.size();
      in.push_back({argument ? inputs_.arguments[k] : operands[k], fmt::format("in{}", k)});
    }
    const auto special = [&](Kind kind, std::size_t i, const Array& x) {
      const op::InputRole role{kind, static_cast<std::int64_t>(i)};
      if (x.node()->trace) in.push_back({x, op::conventional_name(role), role});
    };
    const auto all = [&](Kind kind, const std::vector<Array>& arrays) {
      for (std::size_t i = 0; i < arrays.size(); ++i) special(kind, i, arrays[i]);
    };
    if (!reverse_) {
      all(Kind::Tangent, inputs_.along);
      for (std::size_t i = 0; i < tangents_.size(); ++i) {
        special(Kind::Tangent, args_.size() + live_[i], tangents_[i]);
      }
    }
    all(Kind::PrimalOutput, inputs_.results);
    if (reverse_) all(Kind::DOutput, inputs_.along);
    return in;
  }

  const TracedFunction& f_;
  const Graph& graph_;
  std::span<const Array> args_;
  Tracing& tracing_;
  const RuleInputs& inputs_;
  bool reverse_;
  std::source_location where_;
  std::vector<Array> captures_;    // of the function, then of the rule alone
  std::vector<std::size_t> live_;  // those of the function that have a derivative
  std::vector<Array> tangents_;    // of these, in forward mode
};

}  // namespace

RuleInputs rule_inputs(Tracing& tracing, const TracedFunction& f, std::size_t arguments,
                       bool reverse) {
  const Graph& graph = f.callee->graph;
  const std::vector<NodeId> ports = graph.leaves();
  RuleInputs in;
  for (std::size_t k = 0; k < arguments; ++k) {
    in.arguments.push_back(tracing.placeholder(graph.node(ports[k]).types[0]));
  }
  for (const ValueId v : graph.outputs()) {
    in.results.push_back(tracing.placeholder(graph.type(v)));
  }
  const auto add_along = [&](const Type& type) {
    in.along.push_back(is_differentiable(type.dtype) ? tracing.placeholder(type)
                                                     : zeros(type.dims, {.dtype = type.dtype}));
  };
  if (reverse) {
    for (const ValueId v : graph.outputs()) add_along(graph.type(v));
  } else {
    for (std::size_t k = 0; k < arguments; ++k) add_along(graph.node(ports[k]).types[0]);
  }
  return in;
}

std::vector<Array> custom_call(const TracedFunction& f, std::span<const Array> args,
                               Tracing& tracing, const RuleInputs& inputs,
                               std::span<const Array> rule, bool reverse,
                               std::source_location where) {
  return CustomCall(f, args, tracing, inputs, reverse, where).run(rule);
}

}  // namespace ricci::detail
