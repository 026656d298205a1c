// Weights alone in few bits.
#include <fmt/format.h>

#include "ricci/build/build.h"
#include "ricci/build/quant.h"
#include "ricci/compiler/rewrite/cleanup.h"
#include "ricci/compiler/rewrite/quantize.h"
#include "ricci/model/quantization.h"
#include "ricci/op/ops.h"
#include "ricci/support/error.h"

#include "model/param_graphs.h"
#include "model/product_layers.h"
#include "support/float_environment.h"

namespace ricci {
namespace {

using quant::SchemeKind;

// The parts of a weight as dequant_matmul takes them, in its order.
std::vector<Tensor> operands_of(const quant::Scheme& scheme, std::int64_t k, std::int64_t n,
                                const quant::Matrix& m) {
  const auto floats = [](const std::vector<float>& numbers, StaticDims dims) {
    return Tensor::of<float>(std::move(dims), std::span<const float>(numbers));
  };
  const auto bytes = [](const std::vector<std::byte>& b, DType dtype, Dims dims) {
    return Tensor::from_bytes({dtype, std::move(dims)}, b);
  };
  const auto all = static_cast<std::int64_t>(m.codes.size());
  const auto blocks = [&](std::size_t count) { return static_cast<std::int64_t>(count) / n; };
  switch (scheme.kind) {
    case SchemeKind::Packed: return {bytes(m.codes, DType::U8, {all})};
    case SchemeKind::Int8Block:
      return {bytes(m.codes, DType::I8, {k, n}), floats(m.scales, {blocks(m.scales.size()), n})};
    case SchemeKind::Int8BlockAsym:
      return {bytes(m.codes, DType::I8, {k, n}), floats(m.scales, {blocks(m.scales.size()), n}),
              floats(m.zero_points, {blocks(m.zero_points.size()), n})};
    case SchemeKind::Int4Block:
      return {bytes(m.codes, DType::U8, {all}), floats(m.scales, {blocks(m.scales.size()), n}),
              floats(m.zero_points, {blocks(m.zero_points.size()), n})};
    case SchemeKind::Fp8E4m3:
    case SchemeKind::Fp8E5m2: return {bytes(m.codes, DType::U8, {k, n}), floats(m.scales, {n})};
    case SchemeKind::Nvfp4Block:
      return {bytes(m.codes, DType::U8, {all}),
              bytes(m.fp8_scales, DType::U8, {blocks(m.fp8_scales.size()), n}),
              floats({m.global}, {1})};
  }
  return {};
}

constexpr std::array<const char*, 3> PartNames = {"_packed", "_scales", "_offsets"};

class WeightsOnly {
 public:
  WeightsOnly(const Graph& graph, const Feeds& params, const quant::Scheme& scheme,
              const QuantizationPolicy& policy)
      : written_(write_out_products(graph)),
        params_(params),
        scheme_(scheme),
        layers_(product_layers(written_.graph, policy)) {}

  Quantized run(std::span<const Feeds> batches, const std::optional<Device>& device,
                const SymbolBindings& symbols) {
    encode();
    Quantized out = rebuilt();
    std::vector<Compared> values;
    out.layers.reserve(layers_.size());  // pointers to them are kept
    for (const ProductLayer& layer : layers_) {
      LayerReport& r = out.layers.emplace_back();
      r.name = layer.name;
      r.op = before().nodes()[layer.id].op.mnemonic();
      r.why = layer.why_not;
      if (!r.why.empty()) continue;
      r.became = quant::to_string(scheme_);
      r.weight_sqnr = sqnr_.at(layer.id);
      const ValueId v{layer.id, 0};
      values.push_back({.before = v, .after = map_(v), .report = &r});
    }
    compare_outputs(before(), out, values);
    compare(before(), out.graph, values, params_, out.params, batches, device, symbols);
    return out;
  }

 private:
  [[nodiscard]] const Graph& before() const { return written_.graph; }

  // Why a weight cannot be in this scheme; empty when it can.
  [[nodiscard]] std::string obstacle(const ProductLayer& layer) const {
    const Node& node = before().nodes()[layer.id];
    if (!layer.weight) return "of two activations";
    if (!node.op.is<op::Matmul>()) return "a convolution";
    const Type& w = before().type(node.operands[1]);
    if (*layer.weight != 1 || w.rank() != 2 || !w.is_static()) {
      return "its weight is no matrix behind the activation";
    }
    const std::int64_t k = w.dims[0].value();
    const std::int64_t block = scheme_.is_packed() ? scheme_.group() : 1;
    if (k % block == 0) return {};
    return fmt::format("blocks of {} do not divide its depth {}", block, k);
  }

  void encode() {
    std::vector<ValueId> values;
    std::vector<const ProductLayer*> chosen;
    for (ProductLayer& layer : layers_) {
      if (layer.why_not.empty()) layer.why_not = obstacle(layer);
      if (!layer.why_not.empty()) continue;
      values.push_back(before().nodes()[layer.id].operands[1]);
      chosen.push_back(&layer);
    }
    const std::vector<Tensor> weights = evaluate_params(before(), values, params_);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const std::int64_t k = weights[i].dims()[0];
      const std::int64_t n = weights[i].dims()[1];
      const std::vector<float> w = weights[i].elements<float>();
      quant::Matrix m = encoded(*chosen[i], k, n, w);
      std::vector<float> again(w.size());
      quant::decode_matrix(scheme_, k, n, m.parts(), again);
      double signal = 0;
      double error = 0;
      for (std::size_t j = 0; j < w.size(); ++j) {
        const double gap = double{w[j]} - double{again[j]};
        signal += double{w[j]} * double{w[j]};
        error += gap * gap;
      }
      sqnr_[chosen[i]->id] = sqnr_db(signal, error);
      parts_.try_emplace(values[i], operands_of(scheme_, k, n, m));
    }
  }

  [[nodiscard]] quant::Matrix encoded(const ProductLayer& layer, std::int64_t k, std::int64_t n,
                                      std::span<const float> w) const {
    try {
      return quant::encode_matrix(scheme_, k, n, w);
    } catch (const UserError& e) {
      if (e.code() == ErrorCode::Stopped) throw;
      throw UserError(ErrorCode::Attr,
                      fmt::format("the weight of {} has no codes in {}: {}", layer.name,
                                  quant::to_string(scheme_), e.what()),
                      "leave the layer out by its name");
    }
  }

  Quantized rebuilt() {
    Rebuilder rebuild(before());
    Feeds values = params_;
    std::map<ValueId, std::vector<Value>> made;
    const auto weight = [&](ValueId w) -> const std::vector<Value>& {
      const auto [at, fresh] = made.try_emplace(w);
      if (!fresh) return at->second;
      const Node& node = before().node(w.node);
      const std::string base = node.is_leaf() ? *node.leaf_name() : first_param(before(), node);
      for (std::size_t p = 0; p < parts_.at(w).size(); ++p) {
        std::string name = rebuild.to().unique_name(base + PartNames[p]);
        while (before().find(name)) name += "_2";
        at->second.push_back(rebuild.to().param(name, parts_.at(w)[p].type()));
        values.insert_or_assign(name, parts_.at(w)[p]);
      }
      return at->second;
    };
    for (const ProductLayer& layer : layers_) by_id_.emplace(layer.id, &layer);
    for (NodeId id = 0; id < before().size(); ++id) {
      const auto layer = by_id_.find(id);
      if (layer == by_id_.end() || !layer->second->why_not.empty()) {
        rebuild.copy(id);
        continue;
      }
      const Node& node = before().nodes()[id];
      const ProvenanceScope scope(rebuild.to(), node.provenance ? *node.provenance : Provenance{});
      op::DequantMatmul op;
      op.scheme = quant::to_string(scheme_);
      const Value y = dequant_matmul(rebuild.value(node.operands[0]), weight(node.operands[1]), op);
      if (!node.names[0].empty()) y.named(node.names[0]);
      rebuild.map({id, 0}, y);
    }
    const Graph all = rebuild.finish();
    PassResult live = dead_code_elimination(all);
    FoldedParams read = read_params(live.graph, values);
    map_ = rebuild.id_map().then(live.map).then(read.map);
    return {std::move(read.graph), std::move(read.params), {}, {}, {}};
  }

  PassResult written_;
  const Feeds& params_;
  const quant::Scheme& scheme_;
  std::vector<ProductLayer> layers_;
  std::map<NodeId, const ProductLayer*> by_id_;
  std::map<NodeId, double> sqnr_;
  std::map<ValueId, std::vector<Tensor>> parts_;
  IdMap map_;
};

}  // namespace

Quantized quantize_weights(const Graph& graph, const Feeds& params, const quant::Scheme& scheme,
                           const QuantizationPolicy& policy, std::span<const Feeds> batches,
                           const std::optional<Device>& device, const SymbolBindings& symbols) {
  const DefaultFloatEnvironment floats;
  return WeightsOnly(graph, params, scheme, policy).run(batches, device, symbols);
}

}  // namespace ricci
