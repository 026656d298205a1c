// ricci doc: the op reference, written from the op table, so that it cannot fall behind it.
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "ricci/compiler/rule/expand.h"
#include "ricci/ir/alias.h"
#include "ricci/op/elementwise.h"
#include "ricci/op/table.h"
#include "ricci/support/text.h"

#include "commands/commands.h"
#include "commands/rule_matrix.h"
#include "source.h"

namespace ricci::tool {
namespace {

// Text inside a table cell or a code span.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string listed(const std::vector<Parameter>& parameters) {
  std::vector<std::string> parts;
  for (const Parameter& p : parameters) {
    parts.push_back(p.name + (p.optional ? "?" : "") + (p.variadic ? "…" : ""));
  }
  return join(parts, ", ");
}

bool names_member(const OpDescriptor& d, const FieldInfo& f) {
  return !d.family.empty() && f.name == "kind";  // written as the op's name
}

std::string signature(const OpDescriptor& d, std::string_view spelling) {
  std::string out = fmt::format("{} = {}", listed(d.results), spelling);
  for (const FieldInfo& f : d.fields) {
    if (f.presence == Presence::Positional) out += fmt::format(" <{}>", f.name);
  }
  if (!d.operands.empty()) out += " " + listed(d.operands);
  std::vector<std::string> braces;
  for (const FieldInfo& f : d.fields) {
    if (f.presence == Presence::Positional || f.kind == "type" || names_member(d, f)) continue;
    braces.push_back(f.name + (f.presence == Presence::Required ? "" : "?"));
  }
  if (!braces.empty()) out += fmt::format(" {{{}}}", join(braces, ", "));
  for (const Parameter& b : d.bodies) {
    out += fmt::format(" {}{} {{ … }}", b.name, b.optional ? "?" : "");
  }
  return out;
}

// A family is written under its members' names, one line each.
std::string signatures(const OpDescriptor& d) {
  if (d.family.empty()) return signature(d, d.info->name);
  std::vector<std::string> lines;
  for (const std::string& member : d.family) lines.push_back(signature(d, member));
  return join(lines, "\n");
}

std::string traits_of(const OpInfo& info) {
  constexpr std::pair<Trait, const char*> Names[] = {
      {Trait::Elementwise, "element-wise"},  {Trait::Linear, "linear"},
      {Trait::Multilinear, "multilinear"},   {Trait::Random, "random"},
      {Trait::NoGradient, "no gradient"},    {Trait::DataMovement, "data movement"},
      {Trait::Commutative, "commutative"},   {Trait::Faults, "may fault"},
      {Trait::Conjugates, "not holomorphic"}};
  std::vector<std::string> parts;
  for (const auto& [trait, text] : Names) {
    if (has(info.traits, trait)) parts.emplace_back(text);
  }
  return join(parts, ", ");
}

std::string dtypes_of(DTypeSet set) {
  constexpr std::pair<DTypeSet, const char*> Groups[] = {
      {dtypes::floats, "floats"}, {dtypes::ints, "ints"}, {dtypes::complexes, "complex"}};
  std::vector<std::string> parts;
  for (const auto& [group, text] : Groups) {
    if ((set | group) == set) {
      parts.emplace_back(text);
      continue;
    }
    for (const DType d : AllDTypes) {
      if (group.has(d) && set.has(d)) parts.emplace_back(name(d));
    }
  }
  if (set.has(DType::Bool)) parts.emplace_back("bool");
  return join(parts, ", ");
}

const ElementwiseRow* row_of(OpKind kind, const std::string& member) {
  if (kind == OpKind::Unary) return &row(*enum_from_name<UnaryKind>(member));
  if (kind == OpKind::Binary) return &row(*enum_from_name<BinaryKind>(member));
  if (kind == OpKind::Compare) return &row(*enum_from_name<CompareKind>(member));
  return nullptr;
}

// What a member of the other families gives.
std::string_view formula_of(const std::string& member) {
  constexpr std::pair<std::string_view, std::string_view> Formulas[] = {
      {"cumsum", "Σ x[…, j, …] over j ≤ i"},
      {"cumprod", "Π x[…, j, …] over j ≤ i"},
      {"cummax", "max x[…, j, …] over j ≤ i"},
      {"cummin", "min x[…, j, …] over j ≤ i"},
      {"arg_max", "the smallest i with x[…, i, …] = max_axis x"},
      {"arg_min", "the smallest i with x[…, i, …] = min_axis x"}};
  for (const auto& [name, formula] : Formulas) {
    if (name == member) return formula;
  }
  throw InternalError(fmt::format("no formula is written for '{}'", member));
}

std::string default_of(const FieldInfo& f) {
  switch (f.presence) {
    case Presence::Required: return "required";
    case Presence::Positional: return "written first";
    case Presence::Defaulted: break;
  }
  return f.default_value.absent() ? "absent" : fmt::format("`{}`", f.default_value.to_string());
}

std::string fields_table(const OpDescriptor& d) {
  std::string rows;
  for (const FieldInfo& f : d.fields) {
    if (names_member(d, f)) continue;
    rows += fmt::format("| `{}` | {} | {} | {} |\n", f.name, cell(f.kind), cell(default_of(f)),
                        cell(f.help));
  }
  if (rows.empty()) return {};
  return "\n| field | type | default | meaning |\n| --- | --- | --- | --- |\n" + rows;
}

std::string_view result_of(Gives gives) {
  switch (gives) {
    case Gives::Same: break;
    case Gives::Truth: return "bool";
    case Gives::RealPart: return "the operand's, of complex ones their parts'";
    case Gives::Complex: return "the complex dtype with such parts";
  }
  return "the operands'";
}

std::string family_table(const OpDescriptor& d) {
  if (d.family.empty()) return {};
  if (row_of(d.kind, d.family.front()) == nullptr) {
    std::string out = "\n| name | formula |\n| --- | --- |\n";
    for (const std::string& m : d.family) {
      out += fmt::format("| `{}` | {} |\n", m, cell(formula_of(m)));
    }
    return out;
  }
  std::string out = "\n| name | operands | result | formula |\n| --- | --- | --- | --- |\n";
  for (const std::string& member : d.family) {
    const ElementwiseRow& r = *row_of(d.kind, member);
    out += fmt::format("| `{}` | {} | {} | {} |\n", member, dtypes_of(r.dtypes), result_of(r.gives),
                       cell(r.formula));
  }
  return out;
}

// Every op infers, evaluates, prints and parses, and has test cases; not all have an expansion.
std::string verbs_of(const OpDescriptor& d) {
  return has_expansion(d.kind) ? "infer, eval, text, cases, expand" : "infer, eval, text, cases";
}

std::string section(const OpDescriptor& d) {
  std::string out = fmt::format("\n## {}\n\n{}.\n\n```text\n{}\n```\n\n", d.info->name,
                                d.info->help, signatures(d));
  out += fmt::format("- class: {}\n", name(d.op_class));
  const std::string traits = traits_of(*d.info);
  if (!traits.empty()) out += fmt::format("- traits: {}\n", traits);
  out += fmt::format("- verbs: {}\n", verbs_of(d)) + rules_of(d);
  if (!d.info->formula.empty()) out += fmt::format("\n```text\n{}\n```\n", d.info->formula);
  out += fields_table(d) + family_table(d);
  if (!d.constraints.empty()) {
    out += "\nConstraints:\n\n";
    for (const Constraint& c : d.constraints) {
      out += fmt::format("- `{}.{}_{}`: {}\n", name(c.code), d.info->name, c.label, c.text);
    }
  }
  return out;
}

std::string alias_table() {
  std::string out =
      "\n## Other names\n\nText may use these names too. Each sets some attributes or keeps one "
      "result of an op, and prints as that op.\n\n| name | op |\n| --- | --- |\n";
  for (const std::string& alias : all_aliases()) {
    std::vector<std::string> ops;
    for (const OpKind kind : alias_ops(alias)) {
      ops.push_back(fmt::format("[`{0}`](#{0})", descriptor(kind).info->name));
    }
    out += fmt::format("| `{}` | {} |\n", alias, join(ops, ", "));
  }
  return out;
}

std::string reference() {
  std::string out =
      "# Op reference\n\nWritten by `ricci doc` from the op table. Operands and results marked `?` "
      "are optional, `…` stands for any number.\n\n"
      "| op | class | operands | results | verbs | what it does |\n"
      "| --- | --- | --- | --- | --- | --- |\n";
  for (const OpDescriptor& d : all_ops()) {
    out += fmt::format("| [`{0}`](#{0}) | {1} | {2} | {3} | {4} | {5} |\n", d.info->name,
                       name(d.op_class), listed(d.operands), listed(d.results), verbs_of(d),
                       cell(d.info->help));
  }
  for (const OpDescriptor& d : all_ops()) out += section(d);
  return out + rule_matrix() + alias_table();
}

}  // namespace

void add_doc(CLI::App& app, Action& action) {
  auto out = std::make_shared<std::string>("-");
  CLI::App* command = app.add_subcommand("doc", "writes the op reference as Markdown");
  command->add_option("-o,--out", *out, "where to write (default: standard output)")
      ->type_name("FILE");
  command->callback([out, &action] { action = [out] { write_text(*out, reference()); }; });
}

}  // namespace ricci::tool
