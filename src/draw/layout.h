// Layered layout of a directed acyclic graph: nodes in horizontal layers, edges pointing down.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace ricci::draw {

struct Point {
  double x = 0;
  double y = 0;
};

struct LayoutNode {
  double width = 0;
  double height = 0;
  bool near_use = false;  ///< sits right above its first use, not at the top
};

/// Edges go from lower to higher node numbers.
struct LayoutEdge {
  std::size_t from = 0;
  std::size_t to = 0;
  double from_x = 0;  ///< where it leaves and enters, from the node's centre
  double to_x = 0;
};

struct Layout {
  std::vector<Point> corners;              ///< top left corner of each node
  std::vector<std::vector<Point>> routes;  ///< of each edge, from source to target
  double width = 0;
  double height = 0;
};

[[nodiscard]] Layout layered_layout(std::span<const LayoutNode> nodes,
                                    std::span<const LayoutEdge> edges);

}  // namespace ricci::draw
