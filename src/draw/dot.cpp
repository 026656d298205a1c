#include <fmt/format.h>

#include "ricci/ir/text.h"

#include "draw/draw.h"
#include "draw/scene.h"

namespace ricci::draw {
namespace {

std::string_view colour_of(const std::string& style) {
  constexpr std::pair<std::string_view, std::string_view> Colours[] = {
      {"input", "#dbeafe"},      {"param", "#fef3c7"},     {"constant", "#f3f4f6"},
      {"structured", "#ede9fe"}, {"composite", "#cffafe"}, {"control", "#fff1f2"},
      {"custom", "#fae8ff"},     {"block", "#fae8ff"}};
  for (const auto& [key, colour] : Colours) {
    if (key == style) return colour;
  }
  return "#f8fafc";
}

std::string dot_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// Statements for one graph. Bodies are clusters; a dashed edge ties each to its node.
void write_graph(const Graph& graph, const std::string& prefix, int depth, std::string& out) {
  const auto names = value_names(graph);
  const std::string indent(static_cast<std::size_t>(depth) * 2, ' ');
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.nodes()[id];
    const std::string self = fmt::format("{}{}", prefix, id);
    std::string label = shortened(title_of(node), 44);
    for (std::size_t r = 0; r < node.types.size(); ++r) {
      if (node.wanted[r])
        label += fmt::format("\n%{} : {}", names[id][r], node.types[r].to_string());
    }
    if (const std::string attrs = attributes_of(node); !attrs.empty()) {
      label += "\n" + shortened(attrs, 44);
    }
    out += fmt::format("{}{} [label={}, fillcolor=\"{}\"];\n", indent, dot_quoted(self),
                       dot_quoted(label), colour_of(style_of(node)));
    for (const ValueId v : node.operands) {
      out += fmt::format("{}{} -> {};\n", indent, dot_quoted(fmt::format("{}{}", prefix, v.node)),
                         dot_quoted(self));
    }
    for (const Body& body : node.bodies) {
      const std::string inner = fmt::format("{}.{}.", self, body.role);
      out +=
          fmt::format("{}subgraph {} {{\n{}  label={};\n", indent, dot_quoted("cluster_" + inner),
                      indent, dot_quoted(fmt::format("{} of {}", body.role, node.op.mnemonic())));
      write_graph(*body.graph, inner, depth + 1, out);
      out += indent + "}\n";
      if (body.graph->size() != 0) {
        out += fmt::format("{}{} -> {} [style=dashed, arrowhead=none];\n", indent, dot_quoted(self),
                           dot_quoted(inner + "0"));
      }
    }
  }
  const std::vector<std::string> called = graph.output_names();
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    const std::string self = dot_quoted(fmt::format("{}out{}", prefix, i));
    std::string label = fmt::format("out{}", i);
    if (called[i] != label) label += " " + shortened(called[i], 44);
    out += fmt::format("{}{} [label={}, shape=oval, fillcolor=\"#dcfce7\"];\n", indent, self,
                       dot_quoted(label));
    out += fmt::format("{}{} -> {};\n", indent,
                       dot_quoted(fmt::format("{}{}", prefix, graph.outputs()[i].node)), self);
  }
}

}  // namespace

std::string to_dot(const Graph& graph) {
  std::string out =
      fmt::format("digraph {} {{\n  node [shape=box, style=\"filled,rounded\", fontname=monospace, "
                  "fontsize=10];\n",
                  dot_quoted(graph.name()));
  write_graph(graph, "n", 1, out);
  return out + "}\n";
}

}  // namespace ricci::draw
