#include "commands/rule_matrix.h"

#include <fmt/format.h>

namespace ricci::tool {
namespace {

// A transform applied to what another one made. What the rules build is made of ops that have rules
// themselves, so that a second transform needs none of its own.
std::string_view composed(RuleSource derivative) {
  switch (derivative) {
    case RuleSource::Zero:
    case RuleSource::Leaf:
    case RuleSource::Refused: return name(derivative);
    default: return "derived";
  }
}

std::string row(const OpDescriptor& d) {
  const std::string_view twice = composed(d.vjp);
  return fmt::format("| [`{0}`](#{0}) | {1} | {2} | {3} | {4} | {4} | {4} | {4} |\n", d.info->name,
                     name(d.vjp), name(d.jvp), name(d.batch), twice);
}

}  // namespace

std::string rules_of(const OpDescriptor& d) {
  std::string out = fmt::format("- rules: vjp {}{}, jvp {}, vmap {}\n", name(d.vjp),
                                d.info->keeps_residuals ? " (its forward keeps residuals)" : "",
                                name(d.jvp), name(d.batch));
  if (!d.info->no_gradient.empty()) {
    out += fmt::format("- without derivative: {}\n", d.info->no_gradient);
  }
  return out;
}

std::string rule_matrix() {
  std::string out =
      "\n## Transforms\n\nWhere the rules of each op come from, for reverse mode (`vjp`), forward "
      "mode (`jvp`) and batching (`vmap`), and for one transform applied to the result of "
      "another.\n\n"
      "- `rule`: written for the op\n"
      "- `linear`: the op applied to tangents\n"
      "- `multilinear`: the op once per operand that has a tangent, summed\n"
      "- `element-wise`: the op itself, ranks aligned\n"
      "- `expansion`: what the op expands into is transformed\n"
      "- `derived`: the rules of the ops that the first transform left\n"
      "- `zero`: no derivative, by definition\n"
      "- `leaf`: nothing goes in; the transform itself deals with it\n"
      "- `refused`: legal only after lowering\n\n"
      "| op | vjp | jvp | vmap | jvp of vjp | vjp of vjp | vjp of vmap | vmap of vjp |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const OpDescriptor& d : all_ops()) out += row(d);
  return out;
}

}  // namespace ricci::tool
