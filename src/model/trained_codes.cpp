#include "model/trained_codes.h"

#include <algorithm>
#include <cmath>

#include "ricci/build/build.h"
#include "ricci/build/elementwise.h"
#include "ricci/op/ops.h"

#include "model/extract.h"
#include "model/product_layers.h"
#include "rewrite/code_ops.h"
#include "rewrite/params_alone.h"
#include "rewrite/replace_nodes.h"

namespace ricci {
namespace {

constexpr double LeastTrainedScale = 1e-12;
constexpr std::int64_t MostBits = 8;

double most_code(std::int64_t bits) { return std::pow(2.0, static_cast<double>(bits - 1)) - 1; }

// Codes from -128 on that hold [low, high], both of which hold 0.
CodeParams over_range(double low, double high, std::int64_t bits) {
  const double steps = std::pow(2.0, static_cast<double>(bits)) - 1;
  const double scale = std::max((high - low) / steps, LeastTrainedScale);
  const double zero = std::clamp(std::nearbyint(-low / scale), 0.0, steps);
  return {.scales = {scale}, .zero_points = {static_cast<std::int64_t>(zero) - 128}};
}

CodeParams symmetric_codes(std::vector<double> scales, std::optional<Axis> axis = std::nullopt) {
  CodeParams out{.axis = axis, .scales = {}};
  for (const double s : scales) out.scales.emplace_back(std::max(s, LeastTrainedScale));
  return out;
}

// The largest magnitude for every index along the axis.
std::vector<double> largest(const Tensor& values, const std::optional<Axis>& axis) {
  const std::vector<double> x = values.numbers<double>();
  std::size_t inner = 1;
  for (std::size_t i = axis ? axis->index() + 1 : 0; i < values.rank(); ++i) {
    inner *= static_cast<std::size_t>(values.dims()[i]);
  }
  const auto channels = axis ? static_cast<std::size_t>(values.dims()[axis->index()]) : 1;
  std::vector<double> out(channels, 0.0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    double& most = out[axis ? i / inner % channels : 0];
    most = std::max(most, std::abs(x[i]));
  }
  return out;
}

// The scales with which a weight was rounded last.
std::vector<double> weight_scales(const Graph& graph, const Node& node, const Feeds& params) {
  const auto of = [&](std::size_t k) {
    return evaluate_params(graph, std::span(&node.operands[k], 1), params)[0];
  };
  const auto* fake = node.op.as<op::FakeQuantize>();
  if (fake == nullptr || fake->scale_mode == ScaleMode::Fixed) return of(1).numbers<double>();
  std::vector<double> scales = largest(of(0), fake->axis);
  for (double& s : scales) s /= most_code(fake->bits);
  if (fake->scale_mode == ScaleMode::PerBatch) return scales;
  const std::vector<double> state = of(1).numbers<double>();
  for (std::size_t c = 0; c < scales.size(); ++c) {
    if (state[c] > 0) scales[c] = fake->decay * state[c] + (1 - fake->decay) * scales[c];
  }
  return scales;
}

// What params say of how an activation is rounded; nothing where the samples have to.
std::optional<CodeParams> given_params(const Graph& graph, const Node& node,
                                       const std::vector<bool>& alone, const Feeds& params) {
  if (node.operands.size() < 2 || !alone[node.operands[1].node]) return std::nullopt;
  const std::vector<double> state =
      evaluate_params(graph, std::span(&node.operands[1], 1), params)[0].numbers<double>();
  const auto* fake = node.op.as<op::FakeQuantize>();
  if (fake == nullptr || !fake->asymmetric) {
    if (fake != nullptr && fake->scale_mode == ScaleMode::Ema && !(state[0] > 0)) {
      return std::nullopt;  // no step was taken yet
    }
    return symmetric_codes({state[0]});
  }
  if (!(state[1] > state[0])) return std::nullopt;
  return over_range(std::min(state[0], 0.0), std::max(state[1], 0.0), fake->bits);
}

// One rounding with one scale, of few enough bits.
std::optional<TrainedRounding> rounding_of(const Node& node) {
  if (const auto* fake = node.op.as<op::FakeQuantize>()) {
    const bool reads_scales = node.wanted.size() > 1 && node.wanted[1];
    if (fake->bits > MostBits || fake->axis || fake->group || reads_scales) return std::nullopt;
    return TrainedRounding{fake->bits, fake->asymmetric};
  }
  const auto* learned = node.op.as<op::FakeQuantizeLsq>();
  if (learned == nullptr || learned->bits > MostBits || learned->axis) return std::nullopt;
  return TrainedRounding{learned->bits, false};
}

std::vector<bool> read_by_products_alone(const Graph& graph) {
  std::vector<bool> out(graph.size(), true);
  for (const Node& node : graph.nodes()) {
    if (node.op.is<op::Matmul>() || node.op.is<op::Conv>()) continue;
    for (const ValueId v : node.operands) out[v.node] = false;
  }
  for (const ValueId v : graph.outputs()) out[v.node] = false;
  return out;
}

}  // namespace

Unrounded take_out_roundings(const Graph& graph, const Feeds& params) {
  const std::vector<bool> alone = params_alone(graph);
  const std::vector<bool> by_products = read_by_products_alone(graph);
  Unrounded out;
  std::map<ValueId, TrainedRounding> found;  // by values of the graph under construction
  const auto rewrite = [&](const NodeVisit& v) -> NewResults {
    const Node& old = graph.nodes()[v.id];
    auto rounding = rounding_of(old);
    if (!rounding || alone[v.id] || !by_products[v.id]) return std::nullopt;
    rounding->params = given_params(graph, old, alone, params);
    Value x = v.operands[0];
    if (rounding->params && !rounding->asymmetric) {
      const double most = most_code(rounding->bits) * rounding->params->scales[0].value;
      x = clamp(x, -most, most);
    }
    found.insert_or_assign(x.id(), *rounding);
    std::vector<Value> results(v.node.types.size());
    results[0] = x;
    return results;
  };
  out.result = replace_nodes(graph, "take_out_roundings", rewrite,
                             [](const Graph& body) { return unchanged(body); });
  out.roundings = std::move(found);
  return out;
}

std::optional<CodeParams> trained_codes(const Graph& graph, ValueId weight,
                                        const std::optional<Axis>& channels, const Feeds& params) {
  const Node& node = graph.node(weight.node);
  std::optional<Axis> axis;
  if (const auto* fake = node.op.as<op::FakeQuantize>()) {
    if (fake->bits > MostBits || fake->asymmetric || fake->group) return std::nullopt;
    axis = fake->axis;
  } else if (const auto* learned = node.op.as<op::FakeQuantizeLsq>()) {
    if (learned->bits > MostBits) return std::nullopt;
    axis = learned->axis;
  } else {
    return std::nullopt;
  }
  if (axis && axis != channels) return std::nullopt;
  return symmetric_codes(weight_scales(graph, node, params), axis);
}

CodeParams in_bits(const CodeParams& params, const TrainedRounding& rounding) {
  if (rounding.params) return *rounding.params;
  const double scale = params.scales[0].value;
  const auto zero = static_cast<double>(zero_point(params, 0));
  const double low = (-128 - zero) * scale;
  const double high = (127 - zero) * scale;
  if (rounding.asymmetric) {
    return rounding.bits == MostBits ? params : over_range(low, high, rounding.bits);
  }
  return symmetric_codes({std::max(-low, high) / most_code(rounding.bits)});
}

}  // namespace ricci
