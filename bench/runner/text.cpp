#include "runner/text.h"

#include <algorithm>

#include <fmt/format.h>

#include "ricci/ir/text.h"
#include "ricci/support/error.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/higher_order.h"
#include "ricci/transform/jvp.h"

#include "runner/leaves.h"

namespace ricci::bench {
namespace {

Graph transformed(const Graph& graph, const TransformRequest& request) {
  const auto& [kind, names] = request;
  const std::vector<ValueRef> values(names.begin(), names.end());
  if (kind == "grad") return grad(graph, values, {.external_seed = true}).graph;
  if (kind == "value_and_grad") return value_and_grad(graph, values).graph;
  if (kind == "jvp") return jvp(graph, values).graph;
  if (kind == "hvp") return hvp(graph, values).graph;
  throw UserError(ErrorCode::Name, fmt::format("no transform is named '{}'", kind));
}

}  // namespace

Workload workload_of_text(const std::string& text,
                          const std::vector<TransformRequest>& transforms) {
  Workload workload{.name = "text", .graph = parse_graph(text)};
  for (const TransformRequest& request : transforms) {
    workload.graph = transformed(workload.graph, request);
  }
  for (std::size_t i = 0; i < workload.graph.outputs().size(); ++i) {
    workload.outputs.push_back(std::to_string(i));
  }
  return workload;
}

Feeds feeds_from(const Graph& graph, const io::NamedTensors& arrays) {
  Feeds feeds;
  for (const Leaf& leaf : leaves_of(graph)) {
    const auto array = std::ranges::find(arrays, leaf.name, &io::NamedTensors::value_type::first);
    if (array == arrays.end()) {
      throw UserError(ErrorCode::Name, fmt::format("no array is named '{}'", leaf.name));
    }
    const Tensor& given = array->second;
    feeds.emplace(leaf.name,
                  given.dtype() == leaf.type.dtype
                      ? given
                      : Tensor::from_numbers<double>(leaf.type, given.numbers<double>()));
  }
  return feeds;
}

}  // namespace ricci::bench
