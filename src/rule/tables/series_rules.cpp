#include "rule/tables/series_rules.h"

#include <algorithm>

#include "ricci/build/build.h"
#include "ricci/compiler/rule/expand.h"
#include "ricci/compiler/rule/jvp.h"
#include "ricci/ir/rebuild.h"
#include "ricci/op/table.h"

#include "rule/control/body_masks.h"
#include "rule/tables/jvp_rules.h"

namespace ricci {
namespace {

bool joint(const Op& op) {
  return op.is<op::If>() || op.is<op::Scan>() || op.is<op::While>() || op.is<op::Checkpoint>();
}

bool is_binary(const Op& op, BinaryKind kind) {
  const auto* binary = op.as<op::Binary>();
  return binary != nullptr && binary->kind == kind;
}

// A function without a forward rule is differentiated as its parts.
bool is_bare_function(const Node& node) {
  return node.op.is<op::CustomFn>() && node.body("jvp") == nullptr;
}

}  // namespace

SeriesForm series_form(const Node& node, const std::vector<bool>& moves) {
  const RuleSource source = descriptor(node.op.kind()).jvp;
  if (source == RuleSource::Expansion || is_bare_function(node)) return SeriesForm::Parts;
  if (joint(node.op)) return SeriesForm::Joint;
  // In one operand alone a product or quotient is linear, which the forward rule shows.
  if (std::ranges::count(moves, true) > 1 &&
      (source == RuleSource::Multilinear || is_binary(node.op, BinaryKind::Mul))) {
    return SeriesForm::Product;
  }
  if (is_binary(node.op, BinaryKind::Div) && moves[1]) return SeriesForm::Quotient;
  return SeriesForm::Rate;
}

std::vector<Value> series_parts(const Node& node, std::span<const Value> operands, Graph& graph) {
  if (!is_bare_function(node)) return expand_node(node, {operands.begin(), operands.end()}, graph);
  std::vector<Value> all = inline_subgraph(*node.body("fwd"), operands, graph);
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (!node.wanted[r]) all[r] = Value();
  }
  return all;
}

std::vector<std::size_t> SeriesContext::degrees() const {
  std::vector<std::size_t> out;
  for (const Series& s : series) out.push_back(s.size());
  return out;
}

Value SeriesContext::coefficient_or_zero(std::size_t k, std::size_t j) const {
  const bool present = j <= series[k].size() && series[k][j - 1].valid();
  return present ? series[k][j - 1] : filled(graph, operands[k].type(), 0);
}

SeriesResults apply_series(const SeriesContext& c) {
  if (const auto* op = c.node.op.as<op::If>()) return rule::series(*op, c);
  if (const auto* op = c.node.op.as<op::Scan>()) return rule::series(*op, c);
  if (const auto* op = c.node.op.as<op::While>()) return rule::series(*op, c);
  if (const auto* op = c.node.op.as<op::Checkpoint>()) return rule::series(*op, c);
  throw InternalError("this op has no rule for series");
}

namespace rule {

SeriesLayout::SeriesLayout(std::vector<std::size_t> degrees, const std::vector<std::size_t>& ends)
    : degrees_(std::move(degrees)), values_(degrees_.size()), firsts_(degrees_.size()) {
  std::size_t first = 0;
  for (const std::size_t end : ends) {
    const std::size_t before = size_;
    for (std::size_t k = first; k < end; ++k) values_[k] = size_++;
    for (std::size_t k = first; k < end; ++k) {
      firsts_[k] = size_;
      size_ += degrees_[k];
    }
    group_sizes_.push_back(size_ - before);
    first = end;
  }
}

std::vector<Value> SeriesLayout::arranged(std::span<const Value> list,
                                          const SeriesLayout& from) const {
  return arranged([&](std::size_t k, std::size_t j) {
    return list[j == 0 ? from.value(k) : from.coefficient(k, j)];
  });
}

SeriesResults SeriesLayout::split(std::span<const Value> list) const {
  SeriesResults out;
  for (std::size_t k = 0; k < degrees_.size(); ++k) {
    out.values.push_back(list[value(k)]);
    Series& s = out.series.emplace_back();
    for (std::size_t j = 1; j <= degrees_[k]; ++j) s.push_back(list[coefficient(k, j)]);
  }
  return out;
}

std::vector<Value> arranged_operands(const SeriesContext& c, const SeriesLayout& layout,
                                     std::size_t first) {
  return layout.arranged([&](std::size_t k, std::size_t j) {
    return j == 0 ? c.operands[first + k] : c.coefficient_or_zero(first + k, j);
  });
}

std::shared_ptr<const Graph> with_layouts(const Graph& body, const BodySeries& over,
                                          const SeriesLayout& in, const SeriesLayout& out,
                                          Graph& outer) {
  const std::vector<Type> types = input_types(body);
  const SeriesLayout plain_in(in.degrees(), {in.degrees().size()});
  const SeriesLayout plain_out(out.degrees(), {out.degrees().size()});
  return make_body(
      "body", in.arranged([&](std::size_t k, std::size_t) { return types[k]; }),
      [&](Graph& graph, std::span<const Value> inputs) {
        return out.arranged(inline_subgraph(*over.graph, plain_in.arranged(inputs, in), graph),
                            plain_out);
      },
      outer);
}

std::vector<std::size_t> loop_degrees(const SeriesContext& c, const Graph& body,
                                      std::size_t carries) {
  std::vector<std::size_t> degrees = c.degrees();
  std::vector<bool> live;
  for (const std::size_t d : degrees) live.push_back(d > 0);
  live = loop_closure(live, carries,
                      [&](const auto& inputs) { return c.bodies.depends(body, inputs); });
  for (std::size_t k = 0; k < carries; ++k) degrees[k] = live[k] ? c.order : 0;
  return degrees;
}

namespace {

// A tangent is a series of one coefficient.
template <class T>
Tangents first_order(const T& op, JvpContext& c) {
  std::vector<Series> of_operands;
  for (std::size_t k = 0; k < c.size(); ++k) {
    of_operands.push_back(c.live(k) ? Series{c.tangent(k)} : Series{});
  }
  SeriesResults results =
      series(op, {c.graph(), c.node(), c.operands(), of_operands, 1, c.bodies()});
  c.give_results(std::move(results.values));
  Tangents out;
  for (const Series& s : results.series) out.push_back(s.empty() ? Value() : s[0]);
  return out;
}

}  // namespace

Tangents jvp(const op::If& op, JvpContext& c) { return first_order(op, c); }
Tangents jvp(const op::Scan& op, JvpContext& c) { return first_order(op, c); }
Tangents jvp(const op::While& op, JvpContext& c) { return first_order(op, c); }
Tangents jvp(const op::Checkpoint& op, JvpContext& c) { return first_order(op, c); }

}  // namespace rule
}  // namespace ricci
