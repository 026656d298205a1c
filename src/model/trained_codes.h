// Graphs that were trained with rounding in them (fake_quantize, fake_quantize_lsq): the codes that
// they were trained for.
#pragma once

#include <map>
#include <optional>

#include "ricci/compiler/rewrite/quantize.h"
#include "ricci/interp/interpreter.h"

namespace ricci {

/// How an activation was rounded.
struct TrainedRounding {
  std::int64_t bits = 8;
  bool asymmetric = false;
  /// Where the params say it: one scale, and a zero point. Otherwise it is that of the samples.
  std::optional<CodeParams> params = std::nullopt;
};

/// A graph whose products read activations as they are, and how they were rounded.
struct Unrounded {
  PassResult result;
  std::map<ValueId, TrainedRounding> roundings;  ///< by values of the new graph
};

/// Takes out roundings of activations, to 8 bits or fewer and with one scale, that only matmul and
/// conv read. With a scale that the params give, values stay clamped to its range.
[[nodiscard]] Unrounded take_out_roundings(const Graph& graph, const Feeds& params);

/// Codes of i8 that a weight which was trained in 8 bits or fewer has, without loss; nothing where
/// the value is not what fake_quantize or fake_quantize_lsq gave, or they have other channels than
/// `channels`.
[[nodiscard]] std::optional<CodeParams> trained_codes(const Graph& graph, ValueId weight,
                                                      const std::optional<Axis>& channels,
                                                      const Feeds& params);

/// Codes of i8 with the same range as others, in fewer bits.
[[nodiscard]] CodeParams in_bits(const CodeParams& params, const TrainedRounding& rounding);

}  // namespace ricci
