// Functions of functions, on what was traced of them.
#include <algorithm>

#include <fmt/format.h>

#include "ricci/array/create.h"
#include "ricci/array/ops.h"
#include "ricci/array/transform.h"
#include "ricci/op/ops.h"
#include "ricci/support/error.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/higher_order.h"
#include "ricci/transform/jvp.h"
#include "ricci/transform/vmap.h"

#include "array/graph.h"
#include "array/node.h"
#include "array/transform_cache.h"

namespace ricci::detail {
namespace {

std::vector<Array> with_captures(const TracedFunction& f, std::span<const Array> args) {
  std::vector<Array> all(args.begin(), args.end());
  all.insert(all.end(), f.captures.begin(), f.captures.end());
  return all;
}

// The places that have a derivative, as references into a graph.
std::vector<ValueRef> references(const Graph& graph, std::span<const Array> args,
                                 const Places& wrt) {
  const std::vector<NodeId> ports = graph.leaves();
  std::vector<ValueRef> out;
  for (const std::size_t k : wrt) {
    if (is_differentiable(args[k].dtype())) out.emplace_back(ValueId{ports[k], 0});
  }
  return out;
}

std::string words(std::string_view what, std::span<const Array> args, const Places& wrt) {
  std::string out(what);
  for (const std::size_t k : wrt) {
    if (is_differentiable(args[k].dtype())) out += fmt::format(" {}", k);
  }
  return out;
}

Places all_places(std::size_t n) {
  Places out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = i;
  return out;
}

Dims joined(const Dims& a, const Dims& b) {
  Dims out = a;
  out.insert(out.end(), b.begin(), b.end());
  return out;
}

MadeFunctions one(Graph graph) { return {.functions = {make_function(std::move(graph))}}; }

}  // namespace

void require_loss(const TracedFunction& f, std::string_view what, std::source_location where) {
  const Graph& graph = f.callee->graph;
  const Type& type = graph.type(graph.outputs()[0]);
  if (type.numel() != 1) {
    refuse(ErrorCode::Shape, "loss",
           fmt::format("'{}' wants a function that gives one number, it gives {}", what,
                       type.to_string()),
           "sum or mean it; for more numbers there are vjp, jacrev and jacfwd", where);
  }
  if (!is_differentiable(type.dtype)) {
    refuse(ErrorCode::DType, "loss",
           fmt::format("'{}' wants a function that gives a float, it gives {}", what,
                       type.to_string()),
           "cast it: cast(x, DType::F32)", where);
  }
}

std::vector<Array> gradients(const TracedFunction& f, std::span<const Array> args,
                             const Places& wrt, std::source_location where) {
  const std::vector<Array> all = with_captures(f, args);
  const auto made = made_from(f.callee, words("grad", args, wrt), [&](const Graph& g) {
    return one(value_and_grad(g, references(g, args, wrt), GradOptions::training()).graph);
  });
  const std::vector<Array> found =
      call_made(made->functions[0], named_inputs(f.callee->graph, all), where);
  const std::size_t values = f.callee->graph.outputs().size();
  std::vector<Array> out(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(values));
  std::size_t next = values;
  for (const std::size_t k : wrt) {
    out.push_back(is_differentiable(args[k].dtype()) ? found[next++] : zeros_like(args[k], where));
  }
  return out;
}

std::vector<Array> tangents(const TracedFunction& f, std::span<const Array> args,
                            std::span<const Array> along, std::source_location where) {
  const Graph& graph = f.callee->graph;
  if (along.size() != args.size()) {
    refuse(ErrorCode::Shape, "tangent",
           fmt::format("there are {} arrays and {} tangents", args.size(), along.size()),
           "a tangent has the structure of what it is a tangent of", where);
  }
  const Places wrt = all_places(args.size());
  const auto made = made_from(f.callee, words("jvp", args, wrt), [&](const Graph& g) {
    return one(jvp(g, references(g, args, wrt)).graph);
  });
  NamedArrays named = named_inputs(graph, with_captures(f, args));
  const std::vector<NodeId> ports = graph.leaves();
  for (std::size_t k = 0; k < args.size(); ++k) {
    if (!is_differentiable(args[k].dtype())) continue;
    const std::string name = "tangent_" + *graph.node(ports[k]).leaf_name();
    const Array t = strengthened(along[k], args[k].dtype(), where);
    if (t.type() != args[k].type()) {
      refuse(
          ErrorCode::Shape, "tangent",
          fmt::format("the tangent of {} is {}", args[k].type().to_string(), t.type().to_string()),
          "it has the type of what it is a tangent of", where);
    }
    named.emplace(name, t);
  }
  return call_made(made->functions[0], named, where);
}

std::vector<Array> jacobians(const TracedFunction& f, std::span<const Array> args,
                             const Places& wrt, bool forward, std::source_location where) {
  const Graph& graph = f.callee->graph;
  const auto made =
      made_from(f.callee, words(forward ? "jacfwd" : "jacrev", args, wrt), [&](const Graph& g) {
        const std::vector<ValueRef> refs = references(g, args, wrt);
        return one((forward ? jacfwd(g, refs) : jacrev(g, refs)).graph);
      });
  const std::vector<Array> found =
      call_made(made->functions[0], named_inputs(graph, with_captures(f, args)), where);
  std::vector<Array> out;
  std::size_t next = 0;
  for (const ValueId v : graph.outputs()) {
    for (const std::size_t k : wrt) {
      const Dims dims = joined(graph.type(v).dims, args[k].shape());
      out.push_back(is_differentiable(args[k].dtype())
                        ? reshape(found[next++], dims, where)
                        : zeros(dims, {.dtype = graph.type(v).dtype}, where));
    }
  }
  return out;
}

std::vector<Array> hessians(const TracedFunction& f, std::span<const Array> args, const Places& wrt,
                            std::source_location where) {
  const Graph& graph = f.callee->graph;
  if (!is_differentiable(args[wrt[0]].dtype())) {
    refuse(ErrorCode::DType, "hessian",
           fmt::format("there is no derivative by {}", args[wrt[0]].type().to_string()),
           "cast it: cast(x, DType::F32)", where);
  }
  const auto made = made_from(f.callee, words("hessian", args, wrt), [&](const Graph& g) {
    return one(hessian(g, references(g, args, wrt)).graph);
  });
  std::vector<Array> found =
      call_made(made->functions[0], named_inputs(graph, with_captures(f, args)), where);
  for (std::size_t i = 0; i < wrt.size(); ++i) {
    for (std::size_t k = 0; k < wrt.size(); ++k) {
      Array& h = found[i * wrt.size() + k];
      h = reshape(h, joined(args[wrt[i]].shape(), args[wrt[k]].shape()), where);
    }
  }
  return found;
}

Dim batch_size(std::span<const Array> leaves, std::span<const std::optional<std::int64_t>> axes,
               const std::optional<Dim>& given, std::source_location where) {
  std::optional<Dim> size = given;
  for (std::size_t k = 0; k < leaves.size(); ++k) {
    if (!axes[k]) continue;
    const auto axis = normalized_axis(*axes[k], leaves[k].rank());
    if (!axis) {
      refuse(ErrorCode::Shape, "vmap",
             fmt::format("'vmap' maps over axis {} of {}", *axes[k], leaves[k].type().to_string()),
             "say which arguments have a batch: vmap(f, {.in_axes = {0, {}}})", where);
    }
    const Dim n = leaves[k].shape()[static_cast<std::size_t>(*axis)];
    if (size && *size != n) {
      refuse(
          ErrorCode::Shape, "vmap",
          fmt::format("'vmap' maps over batches of {} and of {}", size->to_string(), n.to_string()),
          "all arguments with a batch have one of the same size; the others are shared: "
          "vmap(f, {.in_axes = {0, {}}})",
          where);
    }
    size = n;
  }
  if (!size) {
    refuse(ErrorCode::Shape, "vmap", "no argument of 'vmap' has a batch axis",
           "give MapOptions::size", where);
  }
  return *size;
}

Array example_of(Tracing& tracing, const Array& batch, std::optional<std::int64_t> axis) {
  if (!axis) return tracing.placeholder(batch);
  Type type = batch.type();
  type.dims.erase(type.dims.begin() + *normalized_axis(*axis, type.rank()));
  return tracing.placeholder(type);
}

std::vector<Array> batched(const TracedFunction& f, std::span<const Array> args,
                           std::span<const std::optional<std::int64_t>> axes, const Dim& size,
                           std::int64_t out_axis, std::source_location where) {
  const Graph& graph = f.callee->graph;
  std::string what = fmt::format("vmap {} {}", size.to_string(), out_axis);
  std::vector<BatchedInput> inputs;
  const std::vector<NodeId> ports = graph.leaves();
  for (std::size_t k = 0; k < args.size(); ++k) {
    if (!axes[k]) continue;
    inputs.emplace_back(*graph.node(ports[k]).leaf_name(), *axes[k]);
    what += fmt::format(" {}:{}", k, *axes[k]);
  }
  const auto made = made_from(f.callee, what, [&](const Graph& g) {
    return one(vmap(g, inputs, size, {.out_axes = {out_axis}}).graph);
  });
  return call_made(made->functions[0], named_inputs(graph, with_captures(f, args)), where);
}

std::vector<Array> checkpointed(const TracedFunction& f, std::span<const Array> args,
                                const CheckpointOptions& options, std::source_location where) {
  Graph body = f.callee->graph;
  body.set_name("body");
  const std::size_t values = body.outputs().size();
  std::vector<Array> all = results_of(op_node(
      Op(op::Checkpoint{.policy = options.policy, .names = options.names, .num_kept = 0}),
      with_captures(f, args), where, {{"body", std::make_shared<const Graph>(std::move(body))}}));
  all.resize(values);
  return all;
}

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
  const auto add = [&](const Type& type) {
    in.along.push_back(is_differentiable(type.dtype) ? tracing.placeholder(type)
                                                     : zeros(type.dims, {.dtype = type.dtype}));
  };
  if (reverse) {
    for (const ValueId v : graph.outputs()) add(graph.type(v));
  } else {
    for (std::size_t k = 0; k < arguments; ++k) add(graph.node(ports[k]).types[0]);
  }
  return in;
}

std::vector<Array> custom_call(const TracedFunction& f, std::span<const Array> args,
                               Tracing& tracing, const RuleInputs& inputs,
                               std::span<const Array> rule, bool reverse,
                               std::source_location where) {
  using Kind = op::InputRole::Kind;
  const char* what = reverse ? "custom_vjp" : "custom_jvp";
  tracing.end();
  const Graph& graph = f.callee->graph;
  std::vector<Array> captures = f.captures;
  find_captures(tracing.trace(), rule, captures);
  for (const Array& x : captures) {
    if (x.node()->trace == nullptr || !is_differentiable(x.dtype())) continue;
    refuse(ErrorCode::Refused, "capture",
           fmt::format("the function of '{}' captures {}, which is being traced by '{}'", what,
                       x.type().to_string(), x.node()->trace->what),
           "pass it as an argument: the rule says what its derivative is", where);
  }
  std::vector<Array> operands(args.begin(), args.end());
  operands.insert(operands.end(), captures.begin(), captures.end());
  // The function itself, with what the rule captures as inputs it does not use.
  Graph fwd = graph;
  fwd.set_name("fwd");
  for (std::size_t k = args.size() + f.captures.size(); k < operands.size(); ++k) {
    (void)fwd.input(fmt::format("rule.{}", k), operands[k].type());
  }
  std::vector<GraphInput> in;
  std::vector<std::int64_t> no_gradient;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    in.push_back({k < args.size() ? inputs.arguments[k] : operands[k], fmt::format("in{}", k)});
    if (k >= args.size() && is_differentiable(operands[k].dtype())) {
      no_gradient.push_back(static_cast<std::int64_t>(k));
    }
  }
  const auto special = [&](Kind kind, std::size_t i, const Array& x) {
    const op::InputRole role{kind, static_cast<std::int64_t>(i)};
    if (x.node()->trace) in.push_back({x, op::conventional_name(role), role});
  };
  if (!reverse) {
    for (std::size_t i = 0; i < inputs.along.size(); ++i) {
      special(Kind::Tangent, i, inputs.along[i]);
    }
  }
  for (std::size_t i = 0; i < inputs.results.size(); ++i) {
    special(Kind::PrimalOutput, i, inputs.results[i]);
  }
  if (reverse) {
    for (std::size_t i = 0; i < inputs.along.size(); ++i) {
      special(Kind::DOutput, i, inputs.along[i]);
    }
  }
  // Rules speak of everything; the op asks for what has a derivative.
  const std::vector<Array>& about = reverse ? inputs.arguments : inputs.results;
  if (rule.size() != about.size()) {
    refuse(ErrorCode::Shape, "rule",
           fmt::format("the rule of '{}' gives {} arrays, {} are wanted", what, rule.size(),
                       about.size()),
           reverse ? "one cotangent an argument, a tuple for several"
                   : "the tangent of the result, with its structure",
           where);
  }
  std::vector<Array> outputs;
  for (std::size_t i = 0; i < rule.size(); ++i) {
    if (!is_differentiable(about[i].dtype())) continue;
    Array out = rule[i];
    if (out.shape() != about[i].shape() && out.rank() == 0) {
      out = broadcast_to(out, about[i].shape(), where);
    }
    outputs.push_back(std::move(out));
  }
  const char* role = reverse ? "vjp" : "jvp";
  return results_of(
      op_node(Op(op::CustomFn{.num_residuals = 0, .no_gradient = no_gradient}), operands, where,
              {{"fwd", std::make_shared<const Graph>(std::move(fwd))},
               {role, std::make_shared<const Graph>(graph_between(role, in, outputs))}}));
}

}  // namespace ricci::detail
