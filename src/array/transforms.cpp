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

// Integers among other leaves have zeros; where there is nothing else, somebody forgot a point.
void require_floats(std::string_view what, std::span<const Array> args, const Places& wrt,
                    std::source_location where) {
  const auto counts = [&](std::size_t k) { return is_differentiable(args[k].dtype()); };
  if (wrt.empty() || std::ranges::any_of(wrt, counts)) return;
  refuse(
      ErrorCode::DType, std::string(what),
      fmt::format("'{}' is by {}, which has no derivative", what, args[wrt[0]].type().to_string()),
      "it is by floats: 3.0 in place of 3, cast(x, DType::F32)", where);
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

MadeFunctions one(Transformed made) { return {.functions = {make_function(std::move(made))}}; }

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
  require_floats("grad", args, wrt, where);
  const std::vector<Array> all = with_captures(f, args);
  const auto made = made_from(f.callee, words("grad", args, wrt), [&](const Graph& g) {
    return one(value_and_grad(g, references(g, args, wrt), GradOptions::training()));
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
    return one(jvp(g, references(g, args, wrt)));
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
    named.emplace(made->functions[0].name_of(name), t);
  }
  return call_made(made->functions[0], named, where);
}

std::vector<Array> jacobians(const TracedFunction& f, std::span<const Array> args,
                             const Places& wrt, bool forward, std::source_location where) {
  require_floats(forward ? "jacfwd" : "jacrev", args, wrt, where);
  const Graph& graph = f.callee->graph;
  const auto made =
      made_from(f.callee, words(forward ? "jacfwd" : "jacrev", args, wrt), [&](const Graph& g) {
        const std::vector<ValueRef> refs = references(g, args, wrt);
        return one(forward ? jacfwd(g, refs) : jacrev(g, refs));
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
  require_floats("hessian", args, wrt, where);
  const auto counts = [&](std::size_t k) { return is_differentiable(args[k].dtype()); };
  const auto made = made_from(f.callee, words("hessian", args, wrt), [&](const Graph& g) {
    return one(hessian(g, references(g, args, wrt)));
  });
  const std::vector<Array> found =
      call_made(made->functions[0], named_inputs(graph, with_captures(f, args)), where);
  const DType dtype = graph.type(graph.outputs()[0]).dtype;
  std::vector<Array> out;
  std::size_t next = 0;
  for (const std::size_t i : wrt) {
    for (const std::size_t k : wrt) {
      const Dims dims = joined(args[i].shape(), args[k].shape());
      out.push_back(counts(i) && counts(k) ? reshape(found[next++], dims, where)
                                           : zeros(dims, {.dtype = dtype}, where));
    }
  }
  return out;
}

void require_axes(std::size_t given, std::size_t arguments, std::source_location where) {
  if (given <= arguments) return;
  refuse(ErrorCode::Attr, "vmap",
         fmt::format("'vmap' is given axes of {} arguments, the function has {}", given, arguments),
         "one entry an argument; for the arrays of a struct give a struct of numbers", where);
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
                           std::span<const std::optional<std::int64_t>> out_axes,
                           std::source_location where) {
  const Graph& graph = f.callee->graph;
  std::string what = fmt::format("vmap {}", size.to_string());
  std::vector<std::int64_t> out;
  for (const auto& axis : out_axes) {
    if (!axis) {
      refuse(ErrorCode::Attr, "vmap", "a result of 'vmap' has no place for its batch axis",
             "every result has one; take one example of it where all are the same", where);
    }
    out.push_back(*axis);
    what += fmt::format(" {}", *axis);
  }
  std::vector<BatchedInput> inputs;
  const std::vector<NodeId> ports = graph.leaves();
  for (std::size_t k = 0; k < args.size(); ++k) {
    if (!axes[k]) continue;
    inputs.emplace_back(*graph.node(ports[k]).leaf_name(), *axes[k]);
    what += fmt::format(" {}:{}", k, *axes[k]);
  }
  const auto made = made_from(f.callee, what, [&](const Graph& g) {
    return one(vmap(g, inputs, size, {.out_axes = out}));
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

}  // namespace ricci::detail
