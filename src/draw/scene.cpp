#include "draw/scene.h"

#include <algorithm>

#include <fmt/format.h>

#include "ricci/ir/text.h"
#include "ricci/op/leaf.h"
#include "ricci/op/table.h"
#include "ricci/support/stop.h"
#include "ricci/support/text.h"

namespace ricci::draw {
namespace {

constexpr std::size_t LongestLine = 44;
constexpr double LeastWidth = 72;
constexpr double FrameGap = 12;

std::size_t letters(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned>(c) & 0xC0U) != 0x80U; }));
}

double text_width(const std::vector<std::string>& lines) {
  std::size_t most = 0;
  for (const std::string& line : lines) most = std::max(most, letters(line));
  return std::max(LeastWidth, static_cast<double>(most) * LetterWidth + 2 * Padding);
}

double text_height(const std::vector<std::string>& lines) {
  return static_cast<double>(lines.size()) * LineHeight + 2 * Padding - 4;
}

void move(Scene& scene, double dx, double dy) {
  for (Box& b : scene.boxes) {
    b.x += dx;
    b.y += dy;
  }
  for (Line& l : scene.lines) {
    for (Point& p : l.points) p = {p.x + dx, p.y + dy};
  }
}

void append(Scene& into, Scene&& part) {
  std::ranges::move(part.boxes, std::back_inserter(into.boxes));
  std::ranges::move(part.lines, std::back_inserter(into.lines));
}

// Where the k-th of n lines meets a box, from its centre.
double port(std::size_t k, std::size_t n, double width) {
  const double spread = std::min(width - 2 * Padding, 28.0 * static_cast<double>(n - 1));
  return n < 2 ? 0 : spread * (static_cast<double>(k) / static_cast<double>(n - 1) - 0.5);
}

std::string results_text(const Node& node, const std::vector<std::string>& names, std::size_t r) {
  return fmt::format("{}{} : {}", node.wanted[r] ? "%" : "", names[r], node.types[r].to_string());
}

std::string payload(const Node& node) {
  const auto* c = node.op.as<op::Constant>();
  return c == nullptr ? std::string() : c->value.to_string();
}

std::string details_of(const Graph& graph, const std::vector<std::vector<std::string>>& names,
                       NodeId id) {
  const Node& node = graph.nodes()[id];
  std::string out = fmt::format("{} ({})", node.op.mnemonic(), name(node.op.op_class()));
  for (std::size_t r = 0; r < node.types.size(); ++r) {
    out += "\n" + results_text(node, names[id], r);
  }
  const OpDescriptor& d = descriptor(node.op.kind());
  for (std::size_t k = 0; k < node.operands.size(); ++k) {
    const ValueId v = node.operands[k];
    out += fmt::format("\n{} = %{} : {}", parameter_name(d.operands, k, node.operands.size()),
                       names[v.node][v.result], graph.type(v).to_string());
  }
  for (const NamedAttr& a : node.op.attrs()) {
    if (a.value.absent() || a.value.get<std::shared_ptr<const Tensor>>() != nullptr) continue;
    out += fmt::format("\n{} = {}", a.name, shortened(a.value.to_string(), 200));
  }
  if (const std::string p = payload(node); !p.empty()) out += "\n" + p;
  if (node.provenance) {
    const Provenance& p = *node.provenance;
    if (!p.label.empty()) out += "\nlabel: " + p.label;
    if (!p.origin.empty()) out += "\nfrom: " + p.origin;
    if (p.where.known()) out += "\nat " + p.where.to_string();
  }
  return out;
}

class SceneMaker {
 public:
  SceneMaker(const Graph& graph, std::string prefix)
      : graph_(graph),
        prefix_(std::move(prefix)),
        names_(value_names(graph)),
        output_names_(graph.output_names()) {}

  // Bodies nest as deep as the parser lets them, so the recursion is bounded.
  Scene make() {
    for (NodeId id = 0; id < graph_.size(); ++id) {
      throw_if_stopped();
      add_node(id);
    }
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) add_output(i);
    std::vector<LayoutNode> sizes;
    for (const Box& b : boxes_) {
      const bool leaf = b.style == "param" || b.style == "constant";
      sizes.push_back({b.width, b.height, leaf});
    }
    const Layout layout = layered_layout(sizes, edges());
    Scene scene;
    scene.width = layout.width;
    scene.height = layout.height;
    for (std::size_t i = 0; i < boxes_.size(); ++i) {
      boxes_[i].x = layout.corners[i].x;
      boxes_[i].y = layout.corners[i].y;
      scene.boxes.push_back(boxes_[i]);
      move(inside_[i], boxes_[i].x, boxes_[i].y);
      append(scene, std::move(inside_[i]));
    }
    for (std::size_t e = 0; e < ends_.size(); ++e) {
      scene.lines.push_back({ends_[e].first, ends_[e].second, layout.routes[e]});
    }
    return scene;
  }

 private:
  void add_node(NodeId id) {
    const Node& node = graph_.nodes()[id];
    Box box;
    box.id = fmt::format("{}{}", prefix_, id);
    box.style = style_of(node);
    box.lines.push_back(shortened(title_of(node), LongestLine));
    for (std::size_t r = 0; r < node.types.size(); ++r) {
      if (!node.wanted[r]) continue;
      box.lines.push_back(shortened(results_text(node, names_[id], r), LongestLine));
    }
    for (const std::string& extra : {attributes_of(node), payload(node)}) {
      if (!extra.empty()) box.lines.push_back(shortened(extra, LongestLine));
    }
    box.details = details_of(graph_, names_, id);
    box.width = text_width(box.lines);
    box.height = text_height(box.lines);
    Scene inside = frames(node, box);
    boxes_.push_back(std::move(box));
    inside_.push_back(std::move(inside));
  }

  void add_output(std::size_t i) {
    Box box;
    box.id = fmt::format("{}out{}", prefix_, i);
    box.style = "output";
    const ValueId v = graph_.outputs()[i];
    const std::string place = fmt::format("out{}", i);
    const std::string& called = output_names_[i];
    box.lines = {shortened(called == place ? place : place + " " + called, LongestLine)};
    box.details = fmt::format("output {} {}\n%{} : {}", i, called, names_[v.node][v.result],
                              graph_.type(v).to_string());
    box.width = text_width(box.lines);
    box.height = text_height(box.lines);
    boxes_.push_back(std::move(box));
    inside_.emplace_back();
  }

  // The node's bodies side by side below its text; the box grows to hold them.
  Scene frames(const Node& node, Box& box) {
    Scene all;
    double x = FrameGap;
    double deepest = 0;
    const double top = box.height;
    for (const Body& body : node.bodies) {
      Scene inner = SceneMaker(*body.graph, fmt::format("{}.{}.", box.id, body.role)).make();
      Box frame;
      frame.id = fmt::format("{}.{}", box.id, body.role);
      frame.style = "frame";
      frame.lines = {body.role};
      frame.x = x;
      frame.y = top;
      frame.width = std::max(inner.width, LeastWidth) + 2 * FrameGap;
      frame.height = inner.height + LineHeight + 2 * FrameGap;
      move(inner, x + (frame.width - inner.width) / 2, top + LineHeight + FrameGap);
      x += frame.width + FrameGap;
      deepest = std::max(deepest, frame.height);
      all.boxes.push_back(std::move(frame));
      append(all, std::move(inner));
    }
    if (!node.bodies.empty()) {
      box.width = std::max(box.width, x);
      box.height = top + deepest + FrameGap;
    }
    return all;
  }

  std::vector<LayoutEdge> edges() {
    std::vector<LayoutEdge> out;
    const auto connect = [&](ValueId from, std::size_t to, double to_x) {
      const Node& source = graph_.nodes()[from.node];
      const double from_x = port(from.result, source.types.size(), boxes_[from.node].width);
      out.push_back({from.node, to, from_x, to_x});
      ends_.emplace_back(boxes_[from.node].id, boxes_[to].id);
    };
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_.nodes()[id];
      for (std::size_t k = 0; k < node.operands.size(); ++k) {
        connect(node.operands[k], id, port(k, node.operands.size(), boxes_[id].width));
      }
    }
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      connect(graph_.outputs()[i], graph_.size() + i, 0);
    }
    return out;
  }

  const Graph& graph_;
  std::string prefix_;
  std::vector<std::vector<std::string>> names_;
  std::vector<std::string> output_names_;
  std::vector<Box> boxes_;
  std::vector<Scene> inside_;  // each node's bodies, placed from its corner
  std::vector<std::pair<std::string, std::string>> ends_;
};

}  // namespace

Scene make_scene(const Graph& graph) {
  constexpr double Margin = 16;
  Scene scene = SceneMaker(graph, "").make();
  move(scene, Margin, Margin);
  scene.width += 2 * Margin;
  scene.height += 2 * Margin;
  return scene;
}

std::string style_of(const Node& node) {
  if (node.op.is<op::Input>()) return "input";
  if (node.op.is<op::Param>()) return "param";
  if (node.op.is<op::Constant>()) return "constant";
  return std::string(name(node.op.op_class()));
}

std::string title_of(const Node& node) {
  std::string title(node.op.mnemonic());
  return node.is_leaf() ? title + " " + *node.leaf_name() : title;
}

std::string attributes_of(const Node& node) {
  const OpDescriptor& d = descriptor(node.op.kind());
  const std::vector<NamedAttr> attrs = node.op.attrs();
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < attrs.size(); ++i) {
    const FieldInfo& field = d.fields[i];
    const bool said = field.presence == Presence::Positional || field.kind == "type" ||
                      attrs[i].value.get<Type>() != nullptr ||
                      (!d.family.empty() && field.name == "kind");
    const bool plain =
        field.presence == Presence::Defaulted && attrs[i].value == field.default_value;
    if (!said && !plain)
      parts.push_back(fmt::format("{} = {}", field.name, attrs[i].value.to_string()));
  }
  return parts.empty() ? std::string() : "{" + join(parts, ", ") + "}";
}

std::string shortened(const std::string& text, std::size_t most) {
  if (letters(text) <= most) return text;
  std::size_t seen = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    const bool starts = (static_cast<unsigned>(text[at]) & 0xC0U) != 0x80U;
    if (starts && ++seen == most) break;
    ++at;
  }
  return text.substr(0, at) + "…";
}

}  // namespace ricci::draw
