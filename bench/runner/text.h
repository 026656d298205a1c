// Programs that come as text: what the survey of ops and programs measures.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ricci/io/npy.h"

#include "workloads/workload.h"

namespace ricci::bench {

/// The name of a transform and the values it is about: {"grad", {"x", "w"}}. Known are `grad`
/// (gradients alone, from an input `d_output`), `value_and_grad`, `jvp` and `hvp`.
using TransformRequest = std::pair<std::string, std::vector<std::string>>;

/// The first graph of a text after some transforms; its outputs are named "0", "1", …
[[nodiscard]] Workload workload_of_text(const std::string& text,
                                        const std::vector<TransformRequest>& transforms);

/// The graph's leaves among some arrays, converted to its dtypes: NumPy has no bf16.
[[nodiscard]] Feeds feeds_from(const Graph& graph, const io::NamedTensors& arrays);

}  // namespace ricci::bench
