#include "ricci/model/quantization.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "ricci/compiler/rewrite/cleanup.h"
#include "ricci/op/ops.h"
#include "ricci/support/error.h"

#include "model/product_layers.h"
#include "model/trained_codes.h"
#include "op/code_range.h"
#include "rewrite/code_ops.h"
#include "support/float_environment.h"

namespace ricci {
namespace {

// Where the channels of a weight are that can have scales of their own.
std::optional<Axis> channel_axis(const Graph& graph, const Node& node, std::size_t operand) {
  if (node.op.is<op::Conv>()) return Axis(0);
  if (operand == 0) return std::nullopt;
  return Axis(static_cast<std::int64_t>(graph.type(node.operands[1]).rank()) - 1);
}

// Signal to error of a weight in codes.
double weight_sqnr(const Tensor& weight, const CodeParams& params) {
  const Tensor values = weight.contiguous();
  const CodeRange codes = range_of(params.to);
  std::size_t inner = 1;
  for (std::size_t i = params.axis ? params.axis->index() + 1 : 0; i < values.rank(); ++i) {
    inner *= static_cast<std::size_t>(values.dims()[i]);
  }
  double signal = 0;
  double error = 0;
  const std::vector<double> numbers = values.numbers<double>();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::size_t c = params.axis ? i / inner % params.scales.size() : 0;
    const double scale = params.scales[c].value;
    const auto zero = static_cast<double>(zero_point(params, c));
    const double code = std::clamp(std::nearbyint(numbers[i] / scale) + zero,
                                   static_cast<double>(codes.low), static_cast<double>(codes.high));
    const double gap = numbers[i] - (code - zero) * scale;
    signal += numbers[i] * numbers[i];
    error += gap * gap;
  }
  return sqnr_db(signal, error);
}

// Everything a conversion to codes goes through, from layers to the report.
class ToInt8 {
 public:
  ToInt8(const Graph& graph, const Feeds& params, std::span<const Feeds> batches,
         const QuantizationPolicy& policy, const std::optional<Device>& device,
         const SymbolBindings& symbols)
      : written_(take_out_roundings(write_out_products(graph).graph, params)),
        params_(params),
        batches_(batches),
        policy_(policy),
        device_(device),
        symbols_(symbols),
        layers_(product_layers(layered(), policy)) {}

  Quantized run() {
    code_weights();
    code_activations();
    Quantized out{convert(), params_, record_, {}, {}};
    if (policy_.store_codes) {
      FoldedParams folded = fold_params(out.graph, params_);
      out.graph = std::move(folded.graph);
      out.params = std::move(folded.params);
      map_ = map_.then(folded.map);
      after_pairs_ = after_pairs_.then(folded.map);
    }
    report(out);
    return out;
  }

 private:
  [[nodiscard]] const Graph& layered() const { return written_.result.graph; }
  [[nodiscard]] const Node& node(const ProductLayer& layer) const {
    return layered().nodes()[layer.id];
  }

  void code_weights() {
    std::vector<ValueId> values;
    std::vector<ProductLayer*> with_weight;
    for (ProductLayer& layer : layers_) {
      if (!layer.why_not.empty() || !layer.weight) continue;
      values.push_back(node(layer).operands[*layer.weight]);
      with_weight.push_back(&layer);
    }
    const std::vector<Tensor> weights = evaluate_params(layered(), values, params_);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      ProductLayer& layer = *with_weight[i];
      const CodeParams params = weight_params(layer, values[i], weights[i]);
      const auto [at, fresh] = record_.emplace(values[i], params);
      if (!fresh && !(at->second == params)) layer.why_not = "its weight is in other codes";
      weight_sqnr_[layer.id] = weight_sqnr(weights[i], params);
    }
  }

  // Those a weight was trained for, or those that lose least.
  [[nodiscard]] CodeParams weight_params(const ProductLayer& layer, ValueId value,
                                         const Tensor& weight) const {
    const std::optional<Axis> axis = channel_axis(layered(), node(layer), *layer.weight);
    if (policy_.weights.to == CodeKind::I8) {
      if (auto trained = trained_codes(layered(), value, axis, params_)) return *trained;
    }
    return params_for(weight, policy_.per_channel ? axis : std::nullopt, policy_.weights);
  }

  void code_activations() {
    std::vector<Tap> taps;
    std::vector<ValueId> tapped;
    for (ProductLayer& layer : layers_) {
      for (std::size_t k = 0; k < 2 && layer.why_not.empty(); ++k) {
        if (layer.weight == k) continue;
        if (k == 1 && code_dtype_of(policy_.activations.to) != DType::I8) {
          layer.why_not = "codes of its second factor need a sign";
          break;
        }
        const ValueId v = node(layer).operands[k];
        if (std::ranges::find(tapped, v) != tapped.end()) continue;
        tapped.push_back(v);
        taps.push_back({v});
      }
    }
    if (taps.empty()) return;
    if (batches_.empty()) {
      throw UserError(ErrorCode::Attr, "there are no inputs to calibrate on",
                      "give at least one batch; weights alone need none");
    }
    Calibration seen(layered(), taps, policy_.activations, device_);
    for (const Feeds& batch : batches_) {
      Feeds all = batch;
      all.insert(params_.begin(), params_.end());
      seen.observe(all, symbols_);
    }
    QuantRecord record = seen.record();
    for (auto& [value, params] : record) {
      const auto trained = written_.roundings.find(value);
      if (trained == written_.roundings.end() || params.to != CodeKind::I8) continue;
      params = in_bits(params, trained->second);
    }
    record_.merge(record);
  }

  Graph convert() {
    std::vector<bool> reads(layered().size(), false);
    for (const ProductLayer& layer : layers_) reads[layer.id] = layer.why_not.empty();
    const Node* first = layered().nodes().data();
    const PassResult pairs = insert_q_dq(layered(), record_, [&](const Node& reader) {
      return static_cast<bool>(reads[static_cast<std::size_t>(&reader - first)]);
    });
    find_codes(pairs);
    const PassResult moved = propagate_codes(pairs.graph);
    const PassResult converted = convert_to_codes(moved.graph);
    const PassResult merged = common_subexpression_elimination(converted.graph);
    PassResult last = dead_code_elimination(merged.graph);
    after_pairs_ = moved.map.then(converted.map).then(merged.map).then(last.map);
    map_ = pairs.map.then(after_pairs_);
    return std::move(last.graph);
  }

  // Where the codes of recorded values are, among the pairs.
  void find_codes(const PassResult& pairs) {
    std::map<ValueId, ValueId> by_operand;
    for (NodeId id = 0; id < pairs.graph.size(); ++id) {
      const Node& n = pairs.graph.nodes()[id];
      if (n.op.is<op::Quantize>()) by_operand.emplace(n.operands[0], ValueId{id, 0});
    }
    for (const auto& [value, params] : record_) {
      const auto now = pairs.map(value);
      if (now && by_operand.contains(*now)) codes_.emplace(value, by_operand.at(*now));
    }
  }

  // The next value of a layer: behind its bias, behind its activation, where it is read from.
  [[nodiscard]] std::optional<ValueId> next(ValueId v, const std::vector<std::size_t>& uses) const {
    if (uses[v.node] != 1) return std::nullopt;
    for (NodeId id = v.node + 1; id < layered().size(); ++id) {
      const Node& n = layered().nodes()[id];
      if (std::ranges::find(n.operands, v) == n.operands.end()) continue;
      const bool goes_on =
          n.op.has(Trait::Elementwise) || n.op.has(Trait::DataMovement) || n.op.is<op::Pool>();
      return goes_on ? std::optional(ValueId{id, 0}) : std::nullopt;
    }
    return std::nullopt;
  }

  // Where the result of a layer is afterwards: the first place where it is floats again, or codes.
  void locate(const ProductLayer& layer, const Graph& now, Compared& c, LayerReport& report) const {
    const std::vector<std::size_t> uses = layered().use_counts();
    const std::string made = node(layer).op.is<op::Conv>() ? "q_conv2d" : "q_matmul";
    for (std::optional<ValueId> v = ValueId{layer.id, 0}; v; v = next(*v, uses)) {
      c.before = *v;
      c.after = map_(*v);
      if (c.after) {
        const bool stays = now.node(c.after->node).op.kind() == node(layer).op.kind();
        report.became = stays ? report.op + ", rounded" : made + " i32";
        return;
      }
      const auto codes = codes_.find(*v);
      if (codes == codes_.end()) continue;
      c.after = after_pairs_(codes->second);
      if (!c.after) continue;
      c.after_codes = &record_.at(*v);
      report.became = made + " " + std::string(name(code_dtype_of(c.after_codes->to)));
      return;
    }
  }

  void report(Quantized& out) const {
    std::vector<Compared> values;
    out.layers.reserve(layers_.size());  // pointers to them are kept
    for (const ProductLayer& layer : layers_) {
      LayerReport& r = out.layers.emplace_back();
      r.name = layer.name;
      r.op = node(layer).op.mnemonic();
      r.why = layer.why_not;
      if (!r.why.empty()) continue;
      const auto sqnr = weight_sqnr_.find(layer.id);
      r.weight_sqnr = sqnr == weight_sqnr_.end() ? sqnr_db(1, 0) : sqnr->second;
      Compared c{.before = {}, .after = {}, .report = &r};
      locate(layer, out.graph, c, r);
      c.activation = node(layer).operands[layer.weight == 0 ? 1 : 0];
      c.params = &record_.at(c.activation);
      values.push_back(c);
    }
    compare_outputs(layered(), out, values);
    compare(layered(), out.graph, values, params_, out.params, batches_, device_, symbols_);
  }

  Unrounded written_;
  const Feeds& params_;
  std::span<const Feeds> batches_;
  const QuantizationPolicy& policy_;
  const std::optional<Device>& device_;
  const SymbolBindings& symbols_;
  std::vector<ProductLayer> layers_;
  QuantRecord record_;
  std::map<NodeId, double> weight_sqnr_;
  std::map<ValueId, ValueId> codes_;  // of recorded values, in the graph of pairs
  IdMap after_pairs_;                 // from the graph of pairs to the last one
  IdMap map_;                         // from the graph of layers to the last one
};

}  // namespace

Graph quantize_for_training(const Graph& graph, const TrainingBits& bits,
                            const QuantizationPolicy& policy) {
  const Graph written = write_out_products(graph).graph;
  std::vector<bool> chosen(written.size(), false);
  for (const ProductLayer& layer : product_layers(written, policy)) {
    chosen[layer.id] = layer.why_not.empty();
  }
  const Node* first = written.nodes().data();
  FakeQuantizeOptions options{.weight_bits = bits.weights,
                              .activation_bits = bits.activations,
                              .per_channel = policy.per_channel,
                              .activation_products = policy.activation_products,
                              .ste = bits.ste};
  options.products = [&](const Node& product) {
    return static_cast<bool>(chosen[static_cast<std::size_t>(&product - first)]);
  };
  return insert_fake_quantize(written, options).graph;
}

Quantized quantize_to_int8(const Graph& graph, const Feeds& params, std::span<const Feeds> batches,
                           const QuantizationPolicy& policy, const std::optional<Device>& device,
                           const SymbolBindings& symbols) {
  const DefaultFloatEnvironment floats;
  return ToInt8(graph, params, batches, policy, device, symbols).run();
}

}  // namespace ricci
