// Derivatives and batching of `if`. A branch that is not taken is not differentiated either.
#include "rule/control/body_masks.h"
#include "rule/control/loop_rewriting.h"
#include "rule/lanes.h"
#include "rule/tables/batch_rules.h"
#include "rule/tables/series_rules.h"
#include "rule/tables/vjp_rules.h"

namespace ricci::rule {
namespace {

constexpr std::size_t FirstCapture = 1;

template <class Mask>
std::vector<bool> of_captures(const Mask& operands) {
  return {operands.begin() + FirstCapture, operands.end()};
}

std::vector<bool> either(const std::vector<bool>& a, const std::vector<bool>& b) {
  std::vector<bool> out;
  for (std::size_t i = 0; i < a.size(); ++i) out.push_back(a[i] || b[i]);
  return out;
}

std::vector<Value> add_if(Graph& graph, std::span<const Value> operands,
                          std::shared_ptr<const Graph> then_body,
                          std::shared_ptr<const Graph> else_body) {
  return graph.add_node(Op(op::If{}), operands,
                        {Body{"then", std::move(then_body)}, Body{"else", std::move(else_body)}});
}

}  // namespace

// [if-ad] One `if` over the derivatives of the branches.
Cotangents vjp(const op::If&, const VjpContext& c) {
  std::vector<Value> operands(c.operands().begin(), c.operands().end());
  std::vector<bool> live;
  for (std::size_t r = 0; r < c.node().types.size(); ++r) {
    live.push_back(c.cotangent(r).valid());
    if (live.back()) operands.push_back(c.cotangent(r));
  }
  const std::vector<bool> needs = of_captures(c.needs());
  const auto branch = [&](std::string_view role) {
    const auto gradient = c.bodies().vjp(
        *c.node().body(role), {.seeds = live, .live = live, .wanted = needs, .needed = needs});
    return without_roles(*gradient, c.graph());
  };
  return scattered(add_if(c.graph(), operands, branch("then"), branch("else")), c.needs());
}

// One `if` over the values and coefficients of the branches.
SeriesResults series(const op::If&, const SeriesContext& c) {
  const Graph& then_body = *c.node.body("then");
  const Graph& else_body = *c.node.body("else");
  const std::vector<std::size_t> all = c.degrees();
  const std::vector<std::size_t> degrees(all.begin() + FirstCapture, all.end());
  std::vector<bool> live;
  for (const std::size_t d : degrees) live.push_back(d > 0);
  const std::vector<bool> moves =
      either(c.bodies.depends(then_body, live), c.bodies.depends(else_body, live));
  std::vector<std::size_t> required;
  for (const bool m : moves) required.push_back(m ? c.order : 0);
  const BodySeries yes = c.bodies.series(then_body, degrees, required, c.order);
  const BodySeries no = c.bodies.series(else_body, degrees, required, c.order);
  check_internal(yes.degrees == no.degrees, "both branches give the same coefficients");
  const SeriesLayout captures(degrees, {degrees.size()});
  std::vector<Value> operands{c.operands[0]};
  const std::vector<Value> given = arranged_operands(c, captures, FirstCapture);
  operands.insert(operands.end(), given.begin(), given.end());
  return SeriesLayout(yes.degrees, {yes.degrees.size()})
      .split(add_if(c.graph, operands, yes.graph, no.graph));
}

namespace {

// One branch for the examples that take it, on the values of those. When no example does, it does
// not run.
std::vector<Value> run_for(const Lanes& lanes, const Graph& branch, const VmapContext& c) {
  const std::vector<bool> batched = of_captures(c.batched());
  const std::vector<bool> every(branch.outputs().size(), true);
  const BatchedBody over = c.bodies().batch(branch, batched, c.batch(), every);
  std::vector<Value> captures;
  for (std::size_t k = FirstCapture; k < c.size(); ++k) captures.push_back(c[k]);
  captures.push_back(lanes.active());
  const auto taken = [&](Graph& graph, std::span<const Value> in) {
    const Lanes going(in.back());
    std::vector<Value> values;
    for (std::size_t k = 0; k < batched.size(); ++k) {
      values.push_back(batched[k] ? going.safe(in[k]) : in[k]);
    }
    return inline_subgraph(*over.graph, values, graph);
  };
  const auto zeros = [&](Graph& graph, std::span<const Value>) {
    std::vector<Value> out;
    for (const Type& type : output_types(*over.graph)) out.push_back(filled(graph, type, 0));
    return out;
  };
  return cond(lanes.any(), captures, taken, zeros);
}

}  // namespace

BatchedValues batch(const op::If&, const VmapContext& c) {
  const Graph& then_body = *c.node().body("then");
  const Graph& else_body = *c.node().body("else");
  BatchedValues out;
  if (c.batched(0)) {
    const Lanes takes_then(all_set(c[0]));
    const Lanes takes_else(logical_not(takes_then.active()));
    const std::vector<Value> yes = run_for(takes_then, then_body, c);
    const std::vector<Value> no = run_for(takes_else, else_body, c);
    for (std::size_t r = 0; r < yes.size(); ++r) {
      out.emplace_back(takes_then.choose(yes[r], no[r]), true);
    }
    return out;
  }
  const std::vector<bool> batched = of_captures(c.batched());
  const std::vector<bool> outputs = either(c.bodies().batched_outputs(then_body, batched),
                                           c.bodies().batched_outputs(else_body, batched));
  const auto over = [&](const Graph& body) {
    return c.bodies().batch(body, batched, c.batch(), outputs).graph;
  };
  std::vector<Value> operands;
  for (std::size_t k = 0; k < c.size(); ++k) operands.push_back(c[k]);
  const std::vector<Value> all = add_if(c.graph(), operands, over(then_body), over(else_body));
  for (std::size_t r = 0; r < all.size(); ++r) out.emplace_back(all[r], outputs[r]);
  return out;
}

}  // namespace ricci::rule
