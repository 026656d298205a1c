// The products of a graph as layers: their weights, and whether a policy quantises them.
#pragma once

#include <string>
#include <vector>

#include "ricci/model/quantization.h"

namespace ricci {

/// A matmul, or a convolution of images.
struct ProductLayer {
  NodeId id = 0;
  std::optional<std::size_t> weight;  ///< the operand that depends on params alone, if one does
  std::string name;
  std::string why_not;  ///< it stays as it is; empty: it is to be quantised
};
[[nodiscard]] std::vector<ProductLayer> product_layers(const Graph& graph,
                                                       const QuantizationPolicy& policy);

/// `values` of a graph with params alone; UserError(name) when a param has no value.
[[nodiscard]] std::vector<Tensor> evaluate_params(const Graph& graph,
                                                  std::span<const ValueId> values,
                                                  const Feeds& params);

/// Signal to error in dB.
[[nodiscard]] double sqnr_db(double signal, double error);

/// Compares values of two graphs over batches; both lists go together, and a value without a
/// counterpart is left out. Fills in what layers say about results. What it points to outlives it.
struct Compared {
  ValueId before;
  std::optional<ValueId> after;
  LayerReport* report = nullptr;
  const CodeParams* after_codes = nullptr;  ///< `after` is in these codes, with one scale
  const CodeParams* params = nullptr;       ///< in what codes the layer takes its activation
  ValueId activation = {};                  ///< of `before`, where there are such
};
/// Adds the outputs of a graph to what is compared, with reports of their own.
void compare_outputs(const Graph& before, Quantized& out, std::vector<Compared>& values);
void compare(const Graph& before, const Graph& after, const std::vector<Compared>& values,
             const Feeds& params, const Feeds& new_params, std::span<const Feeds> batches,
             const std::optional<Device>& device, const SymbolBindings& symbols);

}  // namespace ricci
