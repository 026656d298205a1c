// From arrays to graphs: what lies between the placeholders of a trace and the results of the
// function that was called with them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ricci/array/array.h"
#include "ricci/ir/graph.h"

#include "array/node.h"

namespace ricci::detail {

/// Arrays that the results depend on and that do not depend on the trace, each once, in the order a
/// walk meets them: what the function captured. Constant expressions are none: graphs hold them.
/// UserError(refused) when one belongs to a trace that has ended.
void find_captures(const Trace& trace, std::span<const Array> results,
                   std::vector<Array>& captures);

/// An input of a graph and the array it stands for.
struct GraphInput {
  Array array;
  std::string name;
  op::InputRole role = {};
};
/// The graph that computes `outputs` from `inputs`: all that they depend on is among the inputs,
/// constant, or an op in between.
[[nodiscard]] Graph graph_between(std::string name, std::span<const GraphInput> inputs,
                                  std::span<const Array> outputs);

/// Copies one node into a graph; a call becomes what it stands for.
void append_node(Graph& graph, const ArrayNode& node, std::span<const ValueId> operands,
                 std::vector<ValueId>& results);

}  // namespace ricci::detail
