#include <map>
#include <set>

#include <fmt/format.h>

#include "ricci/ir/text.h"
#include "ricci/op/leaf.h"
#include "ricci/op/table.h"
#include "ricci/support/text.h"

#include "support/float_environment.h"
#include "type/elements.h"

namespace ricci {
namespace {

constexpr std::int64_t MostListed = 16;  // longer constants print as hex

std::string own_name(const Node& node, std::size_t result) {
  if (!node.names[result].empty()) return node.names[result];
  return node.is_leaf() ? *node.leaf_name() : std::string();
}

std::string print_elements(const Tensor& t, std::size_t axis) {
  if (axis == t.rank()) return detail::print_element(t.dtype(), t.data());
  std::vector<std::string> parts;
  for (std::int64_t i = 0; i < t.dims()[axis]; ++i) {
    parts.push_back(print_elements(t.narrowed(axis, i, 1), axis + 1));
  }
  return "[" + join(parts, ", ") + "]";
}

std::string print_payload(const Tensor& t) {
  if (t.rank() == 0) return detail::print_element(t.dtype(), t.data());
  if (t.is_splat()) return "splat " + detail::print_element(t.dtype(), t.data());
  if (t.numel() <= MostListed) return print_elements(t, 0);
  return "hex " + quote(to_hex(t.contiguous().bytes()));
}

// A comment ends with its line, whatever a label holds.
std::string one_line(std::string text) {
  for (char& c : text) c = c == '\n' || c == '\r' ? ' ' : c;
  return text;
}

class Printer {
 public:
  Printer(const PrintOptions& options, std::string& out) : options_(options), out_(out) {}

  // `body_role` is empty for a graph of the file.
  void block(const Graph& graph, int depth, std::string_view body_role = {}) {
    const bool names_imply_roles = op::names_imply_roles(body_role);
    const auto names = value_names(graph);
    out_ += "{\n";
    for (NodeId id = 0; id < graph.size(); ++id) {
      statement(graph, names, id, depth + 1, names_imply_roles);
    }
    indent(depth + 1);
    out_ += "return";
    for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
      const ValueId v = graph.outputs()[i];
      out_ += fmt::format("{}%{}", i == 0 ? " " : ", ", names[v.node][v.result]);
      if (const std::string& name = graph.given_output_name(i); !name.empty()) {
        out_ += " as " + quote(name);
      }
    }
    out_ += '\n';
    indent(depth);
    out_ += '}';
  }

 private:
  using Names = std::vector<std::vector<std::string>>;

  void indent(int depth) { out_.append(static_cast<std::size_t>(depth) * 2, ' '); }

  void statement(const Graph& graph, const Names& names, NodeId id, int depth,
                 bool names_imply_roles) {
    const Node& node = graph.nodes()[id];
    indent(depth);
    const std::vector<std::size_t> shown = results(node, names[id]);
    out_ += fmt::format(" = {}", node.op.mnemonic());
    std::vector<std::string> braces = attributes(node);
    if (names_imply_roles && denies_its_name(node)) braces.emplace_back("role = none");
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const ValueId v = node.operands[i];
      out_ += fmt::format("{}%{}", i == 0 ? " " : ", ", names[v.node][v.result]);
    }
    if (!braces.empty()) out_ += fmt::format(" {{{}}}", join(braces, ", "));
    for (const Body& body : node.bodies) {
      out_ += fmt::format(" {} ", body.role);
      block(*body.graph, depth, body.role);
    }
    for (std::size_t i = 0; i < shown.size(); ++i) {
      out_ += (i == 0 ? " : " : ", ") + node.types[shown[i]].to_string();
    }
    if (options_.locations && node.provenance) location(*node.provenance);
    out_ += '\n';
  }

  // Writes the results' names; unwanted ones as `_`, optional ones at the end not at all.
  std::vector<std::size_t> results(const Node& node, const std::vector<std::string>& names) {
    std::size_t count = node.types.size();
    while (count > 1 && count > node.optional_from && !node.wanted[count - 1]) --count;
    std::vector<std::size_t> shown;
    for (std::size_t r = 0; r < count; ++r) {
      if (r != 0) out_ += ", ";
      out_ += node.wanted[r] ? "%" + names[r] : "_";
      shown.push_back(r);
    }
    if (count == 0) out_ += "_";
    return shown;
  }

  // An ordinary input whose name would be read as a role.
  static bool denies_its_name(const Node& node) {
    const auto* in = node.op.as<op::Input>();
    return in != nullptr && in->role == op::InputRole{} &&
           op::implied_role(in->name) != op::InputRole{};
  }

  // Positional fields go before the operands; the rest, where it differs from its default, in
  // braces.
  std::vector<std::string> attributes(const Node& node) {
    const OpDescriptor& d = descriptor(node.op.kind());
    std::vector<std::string> braces;
    const std::vector<NamedAttr> attrs = node.op.attrs();
    for (std::size_t i = 0; i < attrs.size(); ++i) {
      const FieldInfo& field = d.fields[i];
      const AttrValue& value = attrs[i].value;
      if (value.get<Type>() != nullptr) continue;               // the result's type says it
      if (!d.family.empty() && field.name == "kind") continue;  // the mnemonic says it
      if (field.presence == Presence::Positional) {
        const auto* tensor = value.get<std::shared_ptr<const Tensor>>();
        out_ += " " + (tensor != nullptr ? print_payload(**tensor) : value.to_string());
      } else if (field.presence == Presence::Required || !(value == field.default_value)) {
        braces.push_back(fmt::format("{} = {}", field.name, value.to_string()));
      }
    }
    return braces;
  }

  void location(const Provenance& p) {
    if (!p.where.known() && p.label.empty() && p.origin.empty()) return;
    out_ += fmt::format("  // {}", p.where.to_string());
    if (!p.label.empty()) out_ += fmt::format(" ({})", one_line(p.label));
    if (!p.origin.empty()) out_ += fmt::format(" [{}]", one_line(p.origin));
  }

  const PrintOptions& options_;
  std::string& out_;
};

}  // namespace

std::vector<std::vector<std::string>> value_names(const Graph& graph) {
  // The first value with a name keeps it; later ones with the same get `_2`, `_3`, …
  std::set<std::string> reserved;
  for (const Node& node : graph.nodes()) {
    for (std::size_t r = 0; r < node.types.size(); ++r) reserved.insert(own_name(node, r));
  }
  std::set<std::string> used;
  std::map<std::string, int> next_suffix;
  std::size_t next_number = 0;
  std::vector<std::vector<std::string>> names;
  names.reserve(graph.size());
  for (const Node& node : graph.nodes()) {
    std::vector<std::string>& mine = names.emplace_back();
    for (std::size_t r = 0; r < node.types.size(); ++r) {
      std::string name = own_name(node, r);
      if (!is_identifier(name)) {
        name = node.wanted[r] ? std::to_string(next_number++) : "_";
      } else if (!used.insert(name).second) {
        int& suffix = next_suffix.try_emplace(name, 2).first->second;
        std::string candidate = fmt::format("{}_{}", name, suffix);
        while (reserved.contains(candidate) || used.contains(candidate)) {
          candidate = fmt::format("{}_{}", name, ++suffix);
        }
        used.insert(candidate);
        name = std::move(candidate);
      }
      mine.push_back(std::move(name));
    }
  }
  return names;
}

std::string print(const Graph& graph, const PrintOptions& options) {
  const DefaultFloatEnvironment floats;
  std::string out =
      fmt::format("graph @{} ", is_identifier(graph.name()) ? graph.name() : quote(graph.name()));
  Printer(options, out).block(graph, 0);
  return out + "\n";
}

std::string print_file(std::span<const Graph> graphs, const PrintOptions& options) {
  std::string out = "ricci 1\n";
  for (const Graph& g : graphs) out += "\n" + print(g, options);
  return out;
}

}  // namespace ricci
