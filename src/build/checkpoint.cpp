// Builders that decide what a gradient keeps.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ricci/build/build.h"

#include "build/body_names.h"
#include "support/float_environment.h"

namespace ricci {
namespace {

// Bytes of one row of all carries.
std::int64_t row_bytes(std::span<const Type> carries) {
  std::int64_t total = 0;
  for (const Type& type : carries) {
    const auto count = type.numel();
    if (!count) {
      throw UserError(ErrorCode::NeedsStaticDim,
                      fmt::format("the size of a carry {} is not known", type.to_string()),
                      "bind its symbols first, or choose the number of checkpoints yourself");
    }
    total += *count * size_of(type.dtype);
  }
  return total;
}

}  // namespace

void require_names(const Graph& body, std::span<const std::string> names, std::string_view what) {
  for (const std::string& name : names) {
    const bool found = std::ranges::any_of(body.nodes(), [&](const Node& node) {
      return std::ranges::find(node.names, name) != node.names.end();
    });
    if (found) continue;
    throw UserError(ErrorCode::Name, fmt::format("{} has no value named '{}'", what, name),
                    "name values of the body with Value::named");
  }
}

std::vector<Value> checkpoint(std::span<const Value> inputs, const BodySource& body,
                              const CheckpointOptions& options, std::source_location loc) {
  if (inputs.empty()) {
    throw UserError(ErrorCode::Attr, "a checkpoint needs at least one input",
                    "hand in what its body depends on");
  }
  std::vector<Type> types;
  for (const Value& v : inputs) types.push_back(v.type());
  Graph& graph = detail::graph_of(inputs, "checkpoint", loc);
  const OpenBody open = body.make_open("body", types, graph);
  Body made = closed(open, open.captured, inputs.size());
  require_names(*made.graph, options.names, "the checkpointed body");
  std::vector<Value> operands(inputs.begin(), inputs.end());
  operands.insert(operands.end(), open.captured.begin(), open.captured.end());
  return graph.add_node(Op(op::Checkpoint{.policy = options.policy, .names = options.names}),
                        operands, {std::move(made)}, loc);
}

std::int64_t checkpoints_for_budget(std::span<const Type> carries, std::int64_t length,
                                    std::int64_t bytes) {
  const DefaultFloatEnvironment floats;
  if (length < 0 || bytes < 0) {
    throw UserError(ErrorCode::Attr,
                    fmt::format("length = {} and bytes = {} may not be negative", length, bytes));
  }
  const std::int64_t row = row_bytes(carries);
  if (row == 0 || length <= bytes / row) return 0;
  const std::int64_t rows = bytes / row;
  const auto window = [&](std::int64_t k) { return (length - 1) / k + 1; };
  // K + ⌈L/K⌉ grows from √L on, so the last K that fits is found by halving.
  auto least = static_cast<std::int64_t>(std::sqrt(static_cast<double>(length)));
  least = std::clamp<std::int64_t>(least, 1, length);
  if (least + window(least) > rows) return least;
  std::int64_t fits = least;
  std::int64_t fails = length;
  while (fails - fits > 1) {
    const std::int64_t middle = fits + (fails - fits) / 2;
    (middle + window(middle) <= rows ? fits : fails) = middle;
  }
  return fits;
}

}  // namespace ricci
