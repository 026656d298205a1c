// Which values of a graph become codes, and how: what calibration gives and quantisation takes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "ricci/ir/graph.h"
#include "ricci/op/quant.h"

namespace ricci {

/// How a value is written in codes.
struct CodeParams {
  std::optional<Axis> axis = std::nullopt;     ///< of the channels; absent: there is one
  std::vector<Real> scales = {1.0};            ///< one a channel
  std::vector<std::int64_t> zero_points = {};  ///< one a channel; none: all 0
  CodeKind to = CodeKind::I8;

  [[nodiscard]] static CodeParams per_tensor(double scale) { return {.scales = {scale}}; }
  [[nodiscard]] static CodeParams per_channel(Axis axis, std::vector<Real> scales) {
    return {.axis = axis, .scales = std::move(scales)};
  }
  friend bool operator==(const CodeParams&, const CodeParams&) = default;
};

/// Which values become codes, and how.
using QuantRecord = std::map<ValueId, CodeParams>;

}  // namespace ricci
