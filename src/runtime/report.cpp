#include "runtime/report.h"

#include <array>
#include <map>
#include <set>

#include <fmt/format.h>

#include "ricci/compiler/schedule/cost.h"
#include "ricci/support/checked.h"
#include "ricci/support/text.h"

namespace ricci {
namespace {

std::string counted(std::size_t n, std::string_view what, std::string_view many) {
  return fmt::format("{} {}", n, n == 1 ? what : many);
}

// `2 kernels, 1 matmul`: how many steps each way of running them serves.
std::string served_by(const device::Outline& e) {
  std::map<std::string_view, std::size_t> counts;
  for (std::size_t s = 0; s < e.program().steps.size(); ++s) ++counts[e.served_by(s)];
  std::vector<std::string> parts;
  parts.reserve(counts.size());
  for (const auto& [how, n] : counts) {
    parts.push_back(how == "kernel" ? counted(n, "kernel", "kernels")
                                    : fmt::format("{} {}", n, how));
  }
  return join(parts, ", ");
}

std::size_t op_count(const Program& p) {
  std::set<NodeId> nodes;
  for (const Step& step : p.steps) nodes.insert(step.nodes.begin(), step.nodes.end());
  return nodes.size();
}

std::string heading(const device::Outline& e) {
  const Program& p = e.program();
  const StepCost cost = estimate_cost(p);
  return fmt::format("@{}: {} in {}{}{}; {} flops, {} bytes read, {} written\n", p.name,
                     counted(op_count(p), "op", "ops"), counted(p.steps.size(), "step", "steps"),
                     p.steps.empty() ? "" : ": ", served_by(e), short_number(cost.flops),
                     short_number(cost.bytes_read), short_number(cost.bytes_written));
}

std::string memory(const device::Outline& e) {
  const Program& p = e.program();
  std::array<std::int64_t, 5> bytes{};  // by role
  for (const Buffer& b : p.buffers) {
    std::int64_t& sum = bytes[static_cast<std::size_t>(b.role)];
    sum = saturating_add(sum, b.bytes());
  }
  return fmt::format("memory: arena {} bytes (lower bound {}), scratch {}; inputs {}, "
                     "outputs {}, constants {}\n",
                     p.arena_bytes, p.live_bytes, e.scratch_bytes(),
                     bytes[static_cast<std::size_t>(Buffer::Role::Input)],
                     bytes[static_cast<std::size_t>(Buffer::Role::Output)],
                     bytes[static_cast<std::size_t>(Buffer::Role::Constant)]);
}

void add_written_body(std::string& text, std::string_view role, const loop::WrittenBody& body,
                      std::size_t indent) {
  text += fmt::format("{:>7}{:{}}{}:\n", "", "", indent, role);
  text += fmt::format("{:>6} {:{}}{:<10}  {}\n", "", "", indent, "inline", functions_of(body));
}

void add_steps(std::string& text, const device::Outline& e, std::size_t indent) {
  const Program& p = e.program();
  for (std::size_t s = 0; s < p.steps.size(); ++s) {
    const Step& step = p.steps[s];
    const StepCost cost = estimate_cost(p, step);
    text += fmt::format("{:>6} {:{}}{:<10}{:>8}{:>8}  {}", s, "", indent, e.served_by(s),
                        short_number(cost.flops), short_number(cost.bytes()), step.label);
    if (const std::string_view other = e.served_where_not_finite(s); !other.empty()) {
      text += fmt::format("  (where not finite: {})", other);
    }
    if (!step.apart_because.empty()) text += fmt::format("  (apart: {})", step.apart_because);
    text += '\n';
    if (const auto* l = std::get_if<LoopStep>(&step.what)) {
      if (l->loop.condition) add_written_body(text, "cond", *l->loop.condition, indent + 2);
      add_written_body(text, "body", l->loop.body, indent + 2);
    }
    const auto* control = std::get_if<ControlStep>(&step.what);
    if (control == nullptr) continue;
    for (std::size_t b = 0; b < control->bodies.size(); ++b) {
      text += fmt::format("{:>7}{:{}}{}:\n", "", "", indent + 2, control->bodies[b].first);
      if (const device::Outline* body = e.body(s, b)) add_steps(text, *body, indent + 2);
    }
  }
}

}  // namespace

std::string short_number(double number) {
  static constexpr std::array Units = {"", "k", "M", "G", "T", "P"};
  std::size_t unit = 0;
  while (number >= 1000 && unit + 1 < Units.size()) {
    number /= 1000;
    ++unit;
  }
  return fmt::format("{:.3g}{}", number, Units[unit]);
}

std::string report_of(const device::Outline& outline) {
  std::string text = heading(outline) + memory(outline);
  text += fmt::format("{:>6} {:<10}{:>8}{:>8}  {}\n", "step", "by", "flops", "bytes", "ops");
  add_steps(text, outline, 0);
  return text;
}

}  // namespace ricci
