#include "model/product_layers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "ricci/ir/text.h"
#include "ricci/op/ops.h"
#include "ricci/support/error.h"

#include "model/extract.h"
#include "op/code_range.h"
#include "rewrite/code_ops.h"
#include "rewrite/name_pattern.h"
#include "rewrite/params_alone.h"

namespace ricci {
namespace {

// Params that a value is made of.
void collect_params(const Graph& graph, ValueId v, std::set<std::string>& names) {
  std::set<NodeId> seen;
  std::vector<NodeId> open = {v.node};
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    if (!seen.insert(id).second) continue;
    const Node& node = graph.node(id);
    if (const std::string* name = node.leaf_name()) names.insert(*name);
    for (const ValueId x : node.operands) open.push_back(x.node);
  }
}

bool is_chosen(const QuantizationPolicy& policy, const Node& node,
               const std::set<std::string>& params) {
  for (auto rule = policy.rules.rbegin(); rule != policy.rules.rend(); ++rule) {
    const auto fits = [&](const std::string& name) { return matches_pattern(rule->pattern, name); };
    if (is_meant(rule->pattern, node) || std::ranges::any_of(params, fits)) return rule->quantize;
  }
  return true;
}

std::string layer_name(const Node& node, const std::string& in_text) {
  if (node.provenance && !node.provenance->label.empty()) return node.provenance->label;
  return "%" + in_text;
}

std::string why_not(const Graph& graph, const Node& node, const std::vector<bool>& alone,
                    const QuantizationPolicy& policy) {
  std::set<std::string> params;
  const bool a = alone[node.operands[0].node];
  const bool b = alone[node.operands[1].node];
  if (a) collect_params(graph, node.operands[0], params);
  if (b) collect_params(graph, node.operands[1], params);
  if (!is_chosen(policy, node, params)) return "left out by name";
  if (node.types[0].dtype != DType::F32) {
    return fmt::format("computes in {}", name(node.types[0].dtype));
  }
  // Neither has values to find scales by, nor do packed bytes of nothing say how many columns there
  // are.
  const auto is_empty = [&](ValueId v) { return graph.type(v).numel() == 0; };
  if (is_empty(node.operands[0]) || is_empty(node.operands[1])) return "of no elements";
  if (a && b) return "of params alone";
  if (!a && !b && !policy.activation_products) return "of two activations";
  if (node.op.is<op::Conv>() && graph.type(node.operands[1]).rank() != 4) return "not of images";
  if (node.op.is<op::Conv>() && a) return "its image is a param";
  return {};
}

}  // namespace

std::vector<ProductLayer> product_layers(const Graph& graph, const QuantizationPolicy& policy) {
  const std::vector<bool> alone = params_alone(graph);
  const auto names = value_names(graph);
  std::vector<ProductLayer> out;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.nodes()[id];
    if (!node.op.is<op::Matmul>() && !node.op.is<op::Conv>()) continue;
    ProductLayer layer{id, std::nullopt, layer_name(node, names[id][0]),
                       why_not(graph, node, alone, policy)};
    if (alone[node.operands[0].node]) layer.weight = 0;
    if (alone[node.operands[1].node]) layer.weight = 1;
    out.push_back(std::move(layer));
  }
  return out;
}

std::vector<Tensor> evaluate_params(const Graph& graph, std::span<const ValueId> values,
                                    const Feeds& params) {
  if (values.empty()) return {};
  return ValueRun(graph, values, std::nullopt).run(params);
}

double sqnr_db(double signal, double error) {
  if (error == 0) return std::numeric_limits<double>::infinity();
  return 10 * std::log10(signal / error);
}

namespace {

struct Sums {
  double signal = 0;
  double error = 0;
  std::int64_t activations = 0;
  std::int64_t outside = 0;
};

void add_gap(const Tensor& before, const Tensor& after, const CodeParams* codes, Sums& sums,
             LayerReport& report) {
  const std::vector<double> x = before.numbers<double>();
  std::vector<double> y = after.numbers<double>();
  if (codes != nullptr) {
    for (double& code : y) {
      code = (code - static_cast<double>(zero_point(*codes, 0))) * codes->scales[0].value;
    }
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x[i]) || !std::isfinite(y[i])) continue;
    sums.signal += x[i] * x[i];
    sums.error += (x[i] - y[i]) * (x[i] - y[i]);
    report.max_error = std::max(report.max_error, std::abs(x[i] - y[i]));
    ++report.compared;
  }
}

void count_outside(const Tensor& values, const CodeParams& params, Sums& sums) {
  if (is_floating_code(params.to) || params.axis) return;
  const CodeRange codes = range_of(params.to);
  for (const double x : values.numbers<double>()) {
    if (!std::isfinite(x)) continue;
    const double code =
        std::nearbyint(x / params.scales[0].value) + static_cast<double>(zero_point(params, 0));
    ++sums.activations;
    const bool inside =
        code >= static_cast<double>(codes.low) && code <= static_cast<double>(codes.high);
    if (!inside) ++sums.outside;
  }
}

Feeds with(const Feeds& params, const Feeds& batch) {
  Feeds all = batch;
  all.insert(params.begin(), params.end());
  return all;
}

}  // namespace

void compare(const Graph& before, const Graph& after, const std::vector<Compared>& values,
             const Feeds& params, const Feeds& new_params, std::span<const Feeds> batches,
             const std::optional<Device>& device, const SymbolBindings& symbols) {
  std::vector<const Compared*> met;
  std::vector<ValueId> old;
  std::vector<ValueId> now;
  for (const Compared& c : values) {
    if (!c.after) continue;
    met.push_back(&c);
    old.push_back(c.before);
    now.push_back(*c.after);
  }
  for (const Compared* c : met) {
    if (c->params != nullptr) old.push_back(c->activation);
  }
  if (met.empty() || batches.empty()) return;
  const ValueRun first(before, old, device);
  const ValueRun second(after, now, device);
  std::vector<Sums> sums(met.size());
  for (const Feeds& batch : batches) {
    const std::vector<Tensor> x = first.run(with(params, batch), symbols);
    const std::vector<Tensor> y = second.run(with(new_params, batch), symbols);
    std::size_t activation = met.size();
    for (std::size_t i = 0; i < met.size(); ++i) {
      const Compared& c = *met[i];
      add_gap(x[i], y[i], c.after_codes, sums[i], *c.report);
      if (c.params != nullptr) count_outside(x[activation++], *c.params, sums[i]);
    }
  }
  for (std::size_t i = 0; i < met.size(); ++i) {
    met[i]->report->sqnr = sqnr_db(sums[i].signal, sums[i].error);
    if (sums[i].activations == 0) continue;
    met[i]->report->saturated =
        static_cast<double>(sums[i].outside) / static_cast<double>(sums[i].activations);
  }
}

}  // namespace ricci
