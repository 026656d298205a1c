// The text form of programs.
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "ricci/compiler/schedule/program.h"
#include "ricci/support/text.h"

#include "schedule/step_buffers.h"

namespace ricci {
namespace {

std::string indented(const std::string& text, int by) {
  std::string out;
  bool at_start = true;
  for (const char c : text) {
    if (at_start && c != '\n') out.append(static_cast<std::size_t>(by), ' ');
    out += c;
    at_start = c == '\n';
  }
  return out;
}

std::string buffer_name(BufferId b) { return b < 0 ? "_" : fmt::format("b{}", b); }

std::string view_text(const BufferView& v) {
  if (v.buffer < 0) return "_";
  const bool plain = loop::is_contiguous(v.layout, v.type.static_dims());
  std::string text = fmt::format("{} : {}", buffer_name(v.buffer), v.type.to_string());
  if (!plain)
    text += fmt::format(" at {} strides [{}]", v.layout.offset, fmt::join(v.layout.strides, ", "));
  return text;
}

std::string views_text(const std::vector<BufferView>& views) {
  std::vector<std::string> parts;
  for (const BufferView& v : views) parts.push_back(view_text(v));
  return join(parts, "; ");
}

std::string_view role_name(Buffer::Role role) {
  switch (role) {
    case Buffer::Role::Input: return "input";
    case Buffer::Role::Output: return "output";
    case Buffer::Role::Constant: return "constant";
    case Buffer::Role::Temporary: return "temporary";
    case Buffer::Role::Seed: return "seed";
  }
  return "?";
}

std::string launch_text(const Program& p, const Launch& launch) {
  std::vector<std::string> names;
  for (const BufferId b : launch.buffers) names.push_back(buffer_name(b));
  return fmt::format("{}({})  // {}\n", p.kernels[launch.kernel].name, join(names, ", "),
                     launch.from.label);
}

void print_control(std::string& text, const ControlStep& control) {
  auto out = std::back_inserter(text);
  const auto* plan = std::get_if<loop::LoopPlan>(&control.how);
  fmt::format_to(out, "  {}({}) -> ({}) workspace {}", plan != nullptr ? "loop" : "if",
                 views_text(control.operands), views_text(control.results),
                 buffer_name(control.workspace));
  for (const auto& [even, odd] : control.carries) {
    fmt::format_to(out, " carry {}/{}", buffer_name(even), buffer_name(odd));
  }
  text += '\n';
  if (plan != nullptr) text += indented(loop::to_string(*plan), 4);
  for (const auto& [role, body] : control.bodies) {
    fmt::format_to(out, "    {}:\n{}", role, indented(to_string(*body), 6));
  }
}

void print_step(std::string& text, const Program& p, const Step& step) {
  auto out = std::back_inserter(text);
  if (const auto* k = std::get_if<KernelStep>(&step.what)) {
    const bool alone = k->launches.size() == 1;
    text += alone ? "  launch " : "  launch side by side\n";
    for (const Launch& l : k->launches) text += (alone ? "" : "    ") + launch_text(p, l);
    return;
  }
  if (const auto* c = std::get_if<CallStep>(&step.what)) {
    if (c->before) text += "  first " + launch_text(p, *c->before);
    const bool host = std::holds_alternative<loop::HostCall>(c->call);
    fmt::format_to(out, "  {}{} {}({}) -> ({})\n", c->before ? "then " : "",
                   host ? "host call" : "call", p.reference_of(*c).name(), views_text(c->operands),
                   views_text(c->results));
    if (!host) fmt::format_to(out, "    as {}\n", to_string(c->call));
    if (c->after) text += "    then " + launch_text(p, *c->after);
    return;
  }
  if (const auto* l = std::get_if<LoopStep>(&step.what)) {
    fmt::format_to(out, "  loop({}) -> ({})\n{}", views_text(l->operands), views_text(l->results),
                   indented(loop::to_string(l->loop), 4));
    return;
  }
  print_control(text, std::get<ControlStep>(step.what));
}

// Values that stay inside a kernel have a temporary too, which no step names: it takes no place.
std::set<BufferId> named_by_steps(const Program& p) {
  std::set<BufferId> named;
  for (const Step& step : p.steps) {
    schedule::for_buffers(step, [&](BufferId b) { named.insert(b); });
  }
  return named;
}

}  // namespace

std::string to_string(const Program& p) {
  std::string text = fmt::format("program @{} arena {} bytes {{\n", p.name, p.arena_bytes);
  auto out = std::back_inserter(text);
  const std::set<BufferId> named = named_by_steps(p);
  for (std::size_t b = 0; b < p.buffers.size(); ++b) {
    const Buffer& buffer = p.buffers[b];
    const bool inside = buffer.role == Buffer::Role::Temporary;
    if (inside && !named.contains(static_cast<BufferId>(b))) continue;
    fmt::format_to(out, "  b{} : {} {}[{}]", b, role_name(buffer.role), name(buffer.dtype),
                   buffer.elements);
    if (buffer.role == Buffer::Role::Temporary) fmt::format_to(out, " at {}", buffer.offset);
    if (buffer.index >= 0) fmt::format_to(out, " #{}", buffer.index);
    fmt::format_to(out, "\n");
  }
  for (const Step& step : p.steps) print_step(text, p, step);
  text += "}\n";
  for (const loop::Kernel& k : p.kernels) text += loop::to_string(k);
  return text;
}

}  // namespace ricci
