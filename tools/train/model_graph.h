// What models compute, as graphs with params.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ricci/ir/graph.h"

#include "train/run_folder.h"

namespace ricci::tool {

/// What a trained model says of images: `x`, any number of them, in; `logits` and `class` out.
struct ImageProgram {
  Graph graph;
  std::vector<std::pair<std::string, Tensor>> params;
};
/// Of a run of a kind that looks at images. UserError(file) when its folder does not say which.
[[nodiscard]] ImageProgram image_program(const RunSettings& settings, const RunFolder& folder,
                                         const std::string& checkpoint);

}  // namespace ricci::tool
