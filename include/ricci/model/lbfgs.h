// L-BFGS: minimises a loss of all its data at once, with few and good steps. For smooth losses
// whose gradient has no noise.
//
//   LbfgsResult found = minimize(graph, {{"w", start}}, {{"x", data}});
//   found.params.at("w"), found.loss
//
// Loss and gradient are one compiled function; the directions and the line search run on the host,
// in f64 whatever the params are.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ricci/model/module.h"
#include "ricci/runtime/session.h"

namespace ricci {

enum class LineSearch : std::uint8_t {
  /// A point where the loss has fallen enough and its slope is flat enough (Nocedal and Wright,
  /// algorithms 3.5 and 3.6, with cubic interpolation).
  StrongWolfe,
  /// Halves the step until the loss has fallen enough (Armijo).
  Backtracking,
};

struct LbfgsOptions {
  std::int64_t history = 10;  ///< pairs of steps and changes of the gradient that are kept
  std::int64_t max_iterations = 200;
  /// Stops where no element of the gradient is larger.
  double gradient_tolerance = 1e-6;
  /// Stops where an iteration changes the loss by less than this part of max(1, |loss|); 0: never.
  double loss_tolerance = 0;
  LineSearch line_search = LineSearch::StrongWolfe;
  double decrease = 1e-4;  ///< the part of what the slope promises that a step must bring
  double curvature = 0.9;  ///< the part of the slope that may be left (strong Wolfe)
  std::int64_t max_evaluations = 25;  ///< of one line search
  /// The params that move; empty means all. Others keep the values they are given.
  std::vector<std::string> params = {};
  /// Called after every iteration; `false` ends the search.
  std::function<bool(std::int64_t iteration, double loss, double largest_gradient)> observer = {};
  CompileOptions compile = {};
};

enum class LbfgsStop : std::uint8_t {
  SmallGradient,
  SmallChange,
  MaxIterations,
  /// No step along the last direction lowers the loss: rounding, or a gradient that is not one.
  LineSearchFailed,
  Observer,
};
[[nodiscard]] std::string_view name(LbfgsStop stop);

struct LbfgsResult {
  Feeds params;  ///< all of the model's
  double loss = 0;
  double largest_gradient = 0;  ///< its largest element
  std::int64_t iterations = 0;
  std::int64_t evaluations = 0;  ///< of loss and gradient
  LbfgsStop stopped = LbfgsStop::MaxIterations;
};

/// From the params in `start`, with the model's inputs in `feeds`. The first output of the module
/// is the loss. UserError when something is missing or makes no sense, or when loss or gradient are
/// not finite where the search starts; points where they are not later on are steps too long.
[[nodiscard]] LbfgsResult minimize(Session& session, const GraphModule& module, const Feeds& start,
                                   const Feeds& feeds, const LbfgsOptions& options = {});
[[nodiscard]] LbfgsResult minimize(const GraphModule& module, const Feeds& start,
                                   const Feeds& feeds = {}, const LbfgsOptions& options = {});
[[nodiscard]] LbfgsResult minimize(const Graph& graph, const Feeds& start, const Feeds& feeds = {},
                                   const LbfgsOptions& options = {});

}  // namespace ricci
