// Quantisation: a trained graph in floats in, one that multiplies codes out, with what that costs
// each layer; and the graph to train so that it costs little.
//
//   Graph rounding = quantize_for_training(loss, {.weights = 4});  // then train it as any other
//   Quantized q = quantize_to_int8(graph, params, batches);     // weights and activations
//   Quantized p = quantize_weights(graph, params, *quant::scheme_from_name("q4_k"));
//   q.graph, q.params                                           // the program and its new params
//   std::puts(q.report().c_str());                              // a table
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ricci/interp/interpreter.h"
#include "ricci/model/calibration.h"
#include "ricci/quant/scheme.h"
#include "ricci/runtime/device.h"

namespace ricci {

/// Which products are quantised, and how.
struct QuantizationPolicy {
  RangeOptions activations = {};
  RangeOptions weights = {.symmetric = true};
  bool per_channel = true;           ///< a scale for every column of a weight, not one for all
  bool activation_products = false;  ///< products of two activations too

  /// Whether single products are: the last rule that matches one holds. A pattern has `*` for any
  /// characters and `?` for one, and is compared with the op's name (`conv`), the names of the
  /// node's results, the label its builder gave it, and the names of the params its weight is made
  /// of.
  struct Rule {
    std::string pattern;
    bool quantize = true;
  };
  std::vector<Rule> rules = {};

  /// The weights' codes become params in the place of the floats; otherwise the params stay, and
  /// are rounded in every run.
  bool store_codes = true;
};

/// What became of one product, over all batches. Its result is compared where the quantised graph
/// has it in floats again: behind the bias and the activation, if codes go that far.
struct LayerReport {
  std::string name;    ///< the builder's label, or `%` and the name in text
  std::string op;      ///< `matmul`
  std::string became;  ///< `q_matmul i8`, `q4_k`; or empty: it stays as it is, see `why`
  std::string why;
  double weight_sqnr = 0;     ///< dB, of the weight alone; infinity where nothing is lost
  std::int64_t compared = 0;  ///< numbers; 0: there were no batches
  double sqnr = 0;            ///< dB, of the result: signal to error
  double max_error = 0;
  double saturated = 0;  ///< the share of the activations that lie outside of their codes' range
};

struct Quantized {
  Graph graph;
  Feeds params;        ///< for all params of the graph that values were given for
  QuantRecord record;  ///< how values of the graph in products became codes; of the graph as it was
                       ///< after `write_out_products`
  std::vector<LayerReport> layers;
  std::vector<LayerReport> outputs;  ///< the same for the graph's outputs

  /// All of it as a table.
  [[nodiscard]] std::string report() const;
};

/// What products read is rounded to while a graph is trained.
struct TrainingBits {
  std::int64_t weights = 8;      ///< 2 to 16; 0: they stay as they are
  std::int64_t activations = 8;  ///< the same
  SteKind ste = SteKind::Identity;
};

/// The graph with fake_quantize in the products that the policy quantises (ranges and codes of the
/// policy play no part). Its params are those of before, so a network and its loss take the same.
[[nodiscard]] Graph quantize_for_training(const Graph& graph, const TrainingBits& bits = {},
                                          const QuantizationPolicy& policy = {});

/// Products become q_matmul and q_conv2d, with activations in codes as calibrated on `batches`.
/// Each batch is fed together with `params`. Bodies of loops stay in floats. A graph that was
/// trained with fake_quantize or fake_quantize_lsq, in 8 bits or fewer, keeps the codes it was
/// trained for: weights lose nothing, and activations have as many codes. UserError(attr) when
/// there are no batches, UserError(name) when a param has no value.
[[nodiscard]] Quantized quantize_to_int8(const Graph& graph, const Feeds& params,
                                         std::span<const Feeds> batches,
                                         const QuantizationPolicy& policy = {},
                                         const std::optional<Device>& device = std::nullopt,
                                         const SymbolBindings& symbols = {});

/// Weights become dequant_matmul's in a scheme of few bits; activations stay as they are. Products
/// whose depth no block divides, and convolutions, stay too. `batches` are for the report alone.
[[nodiscard]] Quantized quantize_weights(const Graph& graph, const Feeds& params,
                                         const quant::Scheme& scheme,
                                         const QuantizationPolicy& policy = {},
                                         std::span<const Feeds> batches = {},
                                         const std::optional<Device>& device = std::nullopt,
                                         const SymbolBindings& symbols = {});

/// Computes what depends on params alone, once: such values become params themselves, named as they
/// are, and params nobody reads any more are gone. Values larger than what they are made of stay.
struct FoldedParams {
  Graph graph;
  Feeds params;
  IdMap map;
};
[[nodiscard]] FoldedParams fold_params(const Graph& graph, const Feeds& params);

}  // namespace ricci
