// A graph as boxes and lines with places: what the SVG and HTML writers draw.
#pragma once

#include <string>
#include <vector>

#include "ricci/ir/graph.h"

#include "draw/layout.h"

namespace ricci::draw {

struct Box {
  std::string id;     ///< `3`, and inside bodies `3.body.1`
  std::string style;  ///< what it looks like: an op class, `input`, `param`, `output`, `frame`
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
  std::vector<std::string> lines;  ///< the first is the title
  std::string details;             ///< everything there is to say, several lines
};

struct Line {
  std::string from;  ///< ids of boxes
  std::string to;
  std::vector<Point> points;
};

struct Scene {
  std::vector<Box> boxes;  ///< outer before inner
  std::vector<Line> lines;
  double width = 0;
  double height = 0;
};

[[nodiscard]] Scene make_scene(const Graph& graph);

/// How a node is drawn: its op's class, told apart for the leaves.
[[nodiscard]] std::string style_of(const Node& node);
/// The op, with the name of an input or param.
[[nodiscard]] std::string title_of(const Node& node);
/// A node's attributes that differ from their defaults: `{axis = 1}`; empty when all are.
[[nodiscard]] std::string attributes_of(const Node& node);
/// `text`, or its beginning and an ellipsis; counts characters, not bytes.
[[nodiscard]] std::string shortened(const std::string& text, std::size_t most);

/// The size of a letter in the fixed-width font boxes are written in.
inline constexpr double LetterWidth = 7.3;
inline constexpr double LineHeight = 16;
inline constexpr double Padding = 8;

}  // namespace ricci::draw
