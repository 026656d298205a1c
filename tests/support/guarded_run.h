// Runs compiled graphs where a step over the edge of a buffer is a fault.
#pragma once

#include <cstddef>
#include <vector>

#include "ricci/interp/interpreter.h"
#include "ricci/runtime/compiled_graph.h"

namespace ricci::testing {

/// The outputs of a graph of known sizes, compiled and run three times: with inputs and outputs
/// that end at a page nobody may touch and temporaries where they are planned; with every
/// temporary and constant at such an edge too; and with all of them beginning at one.
///
/// UserError where the program reports a fault; std::runtime_error when an input that is not
/// donated was written, or when the runs do not give the same bits.
[[nodiscard]] std::vector<Tensor> run_between_guards(const Graph& graph, const Feeds& feeds,
                                                     const CompileOptions& options = {});

/// How many runs there were in this process.
[[nodiscard]] std::size_t runs_between_guards();

}  // namespace ricci::testing
