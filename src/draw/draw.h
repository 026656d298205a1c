// Pictures of graphs: boxes in layers, operands above, results below, bodies as frames inside the
// box of their node.
#pragma once

#include <string>

#include "ricci/ir/graph.h"

namespace ricci::draw {

[[nodiscard]] std::string to_svg(const Graph& graph);
/// A page that needs nothing else: the picture with pan, zoom, search and details on hover.
[[nodiscard]] std::string to_html(const Graph& graph);
/// Text for Graphviz, which does its own layout.
[[nodiscard]] std::string to_dot(const Graph& graph);

}  // namespace ricci::draw
