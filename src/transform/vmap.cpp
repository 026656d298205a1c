#include "ricci/transform/vmap.h"

#include <set>

#include <fmt/format.h>

#include "ricci/build/build.h"

#include "transform/batching.h"
#include "transform/tidy.h"

namespace ricci {
namespace {

// Where a batch axis is in a shape that has it; `what` for the message.
std::size_t batch_axis(std::int64_t axis, std::size_t rank_with_batch, std::string_view what) {
  const auto rank = static_cast<std::int64_t>(rank_with_batch);
  if (axis < -rank || axis >= rank) {
    throw UserError(
        ErrorCode::Attr,
        fmt::format("batch axis {} is outside of {}, which has rank {} with it", axis, what, rank),
        fmt::format("axes run from {} to {}", -rank, rank - 1));
  }
  return static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
}

Value from_front(Value v, std::size_t to) {
  if (to == 0) return v;
  Axes perm;
  for (std::size_t i = 1; i < v.rank(); ++i) perm.emplace_back(static_cast<std::int64_t>(i));
  perm.insert(perm.begin() + static_cast<std::ptrdiff_t>(to), Axis(0));
  return transpose(v, {.perm = perm});
}

}  // namespace

Transformed vmap(const Graph& graph, const std::vector<BatchedInput>& batched, const Dim& size,
                 const VmapOptions& options) {
  const std::size_t outputs = graph.outputs().size();
  if (options.out_axes.size() > 1 && options.out_axes.size() != outputs) {
    throw UserError(
        ErrorCode::Attr,
        fmt::format("{} out_axes are given for {} outputs", options.out_axes.size(), outputs),
        "give none, one for all, or one per output");
  }
  if (size.try_value().value_or(0) < 0) {
    throw UserError(ErrorCode::Shape, fmt::format("a batch cannot have {} examples", size.value()));
  }
  Batching batching(graph, size, options.random);
  std::set<NodeId> seen;
  for (const BatchedInput& in : batched) {
    const NodeId leaf = graph.find_or_throw(in.name);
    if (!seen.insert(leaf).second) {
      throw UserError(ErrorCode::Name, fmt::format("'{}' is listed twice", in.name));
    }
    batching.batch_leaf(leaf, batch_axis(in.axis, graph.node(leaf).types[0].rank() + 1,
                                         fmt::format("'{}'", in.name)));
  }
  batching.sweep();
  std::vector<Value> lifted;
  for (std::size_t i = 0; i < outputs; ++i) {
    const Value v = batching.lifted(graph.outputs()[i]);
    const std::int64_t axis = options.out_axes.empty()       ? 0
                              : options.out_axes.size() == 1 ? options.out_axes[0]
                                                             : options.out_axes[i];
    lifted.push_back(from_front(v, batch_axis(axis, v.rank(), fmt::format("output {}", i))));
  }
  Transformed t = batching.finish(lifted);
  t.graph.set_name(graph.name() + "_vmap");
  t = tidied(std::move(t));
  t.graph.copy_output_names(graph);
  return t;
}

}  // namespace ricci
