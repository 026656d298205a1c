// Derivatives and batching of registered ops: as their registry entries say. An entry without a
// rule refuses; nothing is dropped silently.
#include <fmt/format.h>

#include "ricci/op/custom.h"

#include "op/call_custom.h"
#include "rule/derivative_parts.h"
#include "rule/rule_fault.h"
#include "rule/tables/batch_rules.h"
#include "rule/tables/jvp_rules.h"
#include "rule/tables/vjp_rules.h"

namespace ricci {
namespace {

UserError no_rule(const CustomOp& op, std::string_view rule, const std::string& asked,
                  std::string help) {
  return {ErrorCode::Refused,
          fmt::format("the registered op '{}' version {} has no {}, but {}", op.name(),
                      op.version(), rule, asked),
          std::move(help)};
}

std::string differentiable_help(std::string_view rule, std::size_t operand) {
  return fmt::format(
      "override CustomOp::{}, or let differentiable({}) say that the operand has no derivative",
      rule, operand);
}

// The first operand a mask picks.
template <class Mask>
std::size_t first_of(std::size_t size, Mask&& mask) {
  std::size_t k = 0;
  while (k + 1 < size && !mask(k)) ++k;
  return k;
}

std::shared_ptr<const CustomOp> entry(const Graph& graph, const op::Custom& op) {
  return graph.registry().find_or_throw(op.name, op.version);
}

}  // namespace

// [custom-no-silent-drop]
std::vector<Value> CustomOp::vjp(const Bytes&, const VjpContext& c) const {
  const std::size_t k = first_of(c.size(), [&](std::size_t i) { return c.needs(i); });
  throw no_rule(
      *this, "reverse rule",
      fmt::format("the gradient of its operand {} ({}) is asked for", k, c[k].type().to_string()),
      differentiable_help("vjp", k));
}

std::vector<Value> CustomOp::jvp(const Bytes&, JvpContext& c) const {
  const std::size_t k = first_of(c.size(), [&](std::size_t i) { return c.live(i); });
  throw no_rule(*this, "forward rule",
                fmt::format("its operand {} ({}) has a tangent", k, c[k].type().to_string()),
                differentiable_help("jvp", k));
}

std::vector<BatchedValue> CustomOp::vmap(const Bytes&, const VmapContext& c) const {
  const std::size_t k = first_of(c.size(), [&](std::size_t i) { return c.batched(i); });
  throw no_rule(
      *this, "batching rule",
      fmt::format("its operand {} ({} for one example) is batched", k, c.type(k).to_string()),
      "override CustomOp::vmap");
}

namespace rule {

Cotangents vjp(const op::Custom& op, const VjpContext& c) {
  return call_custom(op, "the reverse rule",
                     [&] { return entry(c.graph(), op)->vjp(op.attrs, c); });
}

Tangents jvp(const op::Custom& op, JvpContext& c) {
  return call_custom(op, "the forward rule",
                     [&] { return entry(c.graph(), op)->jvp(op.attrs, c); });
}

BatchedValues batch(const op::Custom& op, const VmapContext& c) {
  BatchedValues out =
      call_custom(op, "the batching rule", [&] { return entry(c.graph(), op)->vmap(op.attrs, c); });
  if (out.size() != c.node().types.size()) return out;  // the driver says so
  for (std::size_t r = 0; r < out.size(); ++r) {
    if (out[r].value.valid() || !c.node().wanted[r]) continue;
    fail_rule(c.node(), fmt::format("the batching rule of {} gives nothing for result {}",
                                    name_in_messages(c.node()), r));
  }
  return out;
}

}  // namespace rule
}  // namespace ricci
