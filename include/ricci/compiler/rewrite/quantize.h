// Passes of quantisation: from a graph in floats to one that multiplies codes. Ranges come from
// calibration (ricci/model/calibration.h), or are written down by hand:
//
//   QuantRecord record = {{h, CodeParams::per_tensor(0.05)},
//                         {w, CodeParams::per_channel(1, scales)}};
//   Graph pairs = insert_q_dq(graph, record).graph;            // rounds, still in floats
//   Graph codes = convert_to_codes(propagate_codes(pairs).graph).graph;   // q_matmul, q_conv2d
//
// ricci/model/quantization.h does all of it, with a report.
#pragma once

#include <cstddef>
#include <functional>

#include "ricci/compiler/rewrite/pass.h"
#include "ricci/ir/quant_record.h"

namespace ricci {

/// Puts quantize and dequantize behind values; their readers and the outputs read what comes back.
/// With `reads` only readers it says yes to do: others, and outputs, keep the value itself.
///   Before: any well-formed graph; every entry of the record is a floating value of it.
///   After: as many such pairs more as the record has entries.
/// UserError as `quantize` gives it for parameters that do not fit their value, UserError(name) for
/// an entry that is no value of the graph.
[[nodiscard]] PassResult insert_q_dq(const Graph& graph, const QuantRecord& record,
                                     const std::function<bool(const Node& reader)>& reads = {});

/// Moves quantize towards where values are made and dequantize towards where they are read, past
/// reshapes, transposes, slices, joins, look-ups and relu, and takes away pairs that meet with
/// equal parameters. Behind the maximum of windows a pair is put in front of it too.
///   Before: any well-formed graph.
///   After: no op that moves elements reads what dequantize gave, or feeds quantize, with one
///   scale.
/// Every value stays what it was, to the bit.
[[nodiscard]] PassResult propagate_codes(const Graph& graph);

/// Writes dequantize → matmul or conv → quantize as q_matmul and q_conv2d, with a bias and a relu
/// in between where there are such; where nothing quantises the product, its sums are scaled to
/// floats.
///   Before: any well-formed graph.
///   After: no matmul, and no conv of images, reads codes with one scale, or weights in i8 with one
///   scale, or with one for each column.
/// Codes may differ by one from what floats would have rounded to.
[[nodiscard]] PassResult convert_to_codes(const Graph& graph);

/// How the products of a graph are rounded while it is trained.
struct FakeQuantizeOptions {
  std::int64_t weight_bits = 8;      ///< 2 to 16; 0: weights stay as they are
  std::int64_t activation_bits = 8;  ///< the same
  bool per_channel = true;           ///< a scale for every column of a weight, not one for all
  bool activation_products = false;  ///< products of two activations too
  SteKind ste = SteKind::Identity;   ///< what stands in for the derivative of rounding
  /// Which products; absent: all.
  std::function<bool(const Node& product)> products = {};
};

/// Puts a fake_quantize between a product (matmul, conv) and what it reads, so that training finds
/// weights that do well in few bits: weights (what depends on params alone) in symmetric codes,
/// activations in codes with a zero point, both with the range they have in the run. What is
/// rounded already, directly or through views, stays. `quantize_to_int8` takes the roundings of a
/// trained graph out again and multiplies the codes they stand for.
///   Before: any well-formed graph; fused products stay (see `write_out_products`).
///   After: every product outside of bodies that is asked for, and has a weight, reads rounded
///   numbers.
/// UserError(attr) for bits that fake_quantize does not take.
[[nodiscard]] PassResult insert_fake_quantize(const Graph& graph,
                                              const FakeQuantizeOptions& options = {});

struct QuantPropagationOptions {
  /// Also past relu, max pooling and slices, where values may have become smaller, and the scale
  /// that is taken from them with it.
  bool through_shrinking = false;
};
struct QuantPropagation {
  PassResult result;
  std::size_t removed = 0;
};
/// Takes away a fake_quantize that rounds what is rounded already: its readers read its input. The
/// earlier one has the same attributes and is reached through ops with one operand: reshape and
/// transpose where the scales are those of the same elements; with scales that are given (`fixed`,
/// the same state) relu, max pooling and slices too. Running means (`ema`) always stay.
///   Before: any well-formed graph.
///   After: no such pair is left.
/// Values stay what they are to one rounding of the scale. Where the derivative that stands in is
/// less than 1, it now counts once.
[[nodiscard]] QuantPropagation propagate_fake_quantize(const Graph& graph,
                                                       const QuantPropagationOptions& options = {});

/// Writes fused ops and `dot_general` out, so that their products can be quantised.
///   Before: any well-formed graph.
///   After: products are matmul, conv, or ops of their own like attention.
[[nodiscard]] PassResult write_out_products(const Graph& graph);

}  // namespace ricci
