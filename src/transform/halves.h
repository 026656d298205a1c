// Cutting a gradient in two: what the forward computes and saves, and what the backward makes of
// it.
#pragma once

#include "ricci/compiler/rule/body_transforms.h"

namespace ricci {

/// A body and its gradient in one graph, and where to cut it.
struct Cut {
  std::size_t forward_nodes = 0;    ///< the first so many nodes are those of the body
  std::size_t forward_outputs = 0;  ///< the first so many outputs are those of the body
  std::vector<bool> varying;        ///< inputs of the body; only what depends on one is saved
  SavesValue saves;
};

[[nodiscard]] BodyHalves cut_in_halves(Graph joint, const Cut& cut);

}  // namespace ricci
