// Calibration: which numbers values take on sample inputs, and the codes that say them best.
//
//   Calibration seen(graph, {{"%h"}, {"w", 1}}, {.method = RangeMethod::Entropy});
//   for (const Feeds& batch : batches) seen.observe(batch);
//   QuantRecord record = seen.record();                    // for insert_q_dq
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ricci/interp/interpreter.h"
#include "ricci/ir/quant_record.h"
#include "ricci/runtime/device.h"
#include "ricci/transform/transformed.h"

namespace ricci {

/// How a range is chosen from the numbers that were seen.
enum class RangeMethod : std::uint8_t {
  MinMax,      ///< all of them
  Percentile,  ///< all but the outermost few
  Mse,         ///< the squared error is least
  Entropy,     ///< the codes' distribution is nearest to the numbers' (Kullback-Leibler)
};
constexpr auto enumerator_names(RangeMethod) {
  return std::to_array<std::string_view>({"minmax", "percentile", "mse", "entropy"});
}

struct RangeOptions {
  RangeMethod method = RangeMethod::MinMax;
  double percentile = 99.99;  ///< of the numbers below the upper end, and above the lower
  bool symmetric = false;     ///< zero points are 0, and ranges reach as far down as up
  CodeKind to = CodeKind::I8;
};

/// A value that is looked at: one range for all of it, or one for every index along an axis.
struct Tap {
  ValueRef value;
  std::optional<Axis> axis = std::nullopt;
  std::optional<RangeOptions> range = std::nullopt;  ///< absent: as for all taps
};

/// What was seen of one value. Counts of numbers in bins, over a range that doubles as it must, so
/// that it takes the same room however much is seen. Ranges always hold 0. Numbers that are not
/// finite take no part.
class ValueStatistics {
 public:
  /// With an axis, one set of counts for each of its indices.
  explicit ValueStatistics(std::optional<Axis> axis = std::nullopt, bool wants_counts = true);
  ValueStatistics(ValueStatistics&&) noexcept;
  ValueStatistics& operator=(ValueStatistics&&) noexcept;
  ~ValueStatistics();

  /// UserError(shape) when the axis has another size than before.
  void observe(const Tensor& values);
  /// Numbers that were finite.
  [[nodiscard]] std::int64_t count() const;
  /// UserError(attr) for options that make no sense, and when nothing finite was seen.
  [[nodiscard]] CodeParams params(const RangeOptions& options) const;

 private:
  struct Channel;
  std::optional<Axis> axis_;
  bool wants_counts_;
  std::vector<Channel> channels_;
};

/// The parameters for one tensor that is all there is to see: a weight.
[[nodiscard]] CodeParams params_for(const Tensor& values, std::optional<Axis> axis,
                                    const RangeOptions& options);

/// Runs a graph on samples and keeps the statistics of some of its values.
class Calibration {
 public:
  /// Without a device the reference interpreter runs it. UserError(name) for a tap that is no value
  /// of the graph, UserError(dtype) for one that is not floating.
  Calibration(const Graph& graph, std::span<const Tap> taps, const RangeOptions& range = {},
              const std::optional<Device>& device = std::nullopt);
  Calibration(const Graph& graph, std::initializer_list<Tap> taps, const RangeOptions& range = {},
              const std::optional<Device>& device = std::nullopt)
      : Calibration(graph, std::span(taps.begin(), taps.size()), range, device) {}
  Calibration(Calibration&&) noexcept;
  Calibration& operator=(Calibration&&) noexcept;
  ~Calibration();

  /// One sample. Feeds the tapped values do not depend on may be left out, or be there.
  void observe(const Feeds& feeds, const SymbolBindings& symbols = {});
  /// UserError(attr) that names the value when nothing finite was seen of one.
  [[nodiscard]] QuantRecord record() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ricci
