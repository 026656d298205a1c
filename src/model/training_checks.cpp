// What the options of a training step must be.
#include "model/training_checks.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ricci/op/ops.h"
#include "ricci/support/error.h"

namespace ricci {
namespace {

void require_updates(const Graph& graph, const TrainingOptions& options) {
  for (const UpdatedParam& u : options.updates) {
    const auto* param = graph.node(graph.find_or_throw(u.param)).op.as<op::Param>();
    if (param == nullptr) {
      throw UserError(ErrorCode::Name, "'" + u.param + "' is an input: only params are updated",
                      "make it a param");
    }
    const auto named = std::ranges::count(options.updates, u.param, &UpdatedParam::param);
    if (named > 1 || std::ranges::count(options.params, u.param) > 0) {
      throw UserError(ErrorCode::Name, "'" + u.param + "' is updated in two ways",
                      "a param is trained, or follows one output");
    }
    if (u.output == 0 || u.output >= graph.outputs().size()) {
      throw UserError(ErrorCode::Attr,
                      fmt::format("'{}' is to follow output {}, but '{}' has {} outputs, the first "
                                  "of which is the loss",
                                  u.param, u.output, graph.name(), graph.outputs().size()));
    }
    const Type& type = graph.type(graph.outputs()[u.output]);
    if (type != param->type) {
      throw UserError(ErrorCode::Shape,
                      fmt::format("'{}' is {}, but output {} is {}", u.param,
                                  param->type.to_string(), u.output, type.to_string()));
    }
  }
}

void require_scalar_loss(const Graph& graph) {
  if (graph.outputs().empty()) return;  // the gradient will say so
  const Type& loss = graph.type(graph.outputs()[0]);
  if (loss.rank() == 0) return;
  throw UserError(ErrorCode::Shape,
                  fmt::format("the loss, output 0 of '{}', is {} and not one number", graph.name(),
                              loss.to_string()),
                  "reduce it, to its mean for example");
}

// What a number of the options must be, in words for the user.
void require_number(double value, bool holds, std::string_view name, std::string_view what) {
  if (std::isfinite(value) && holds) return;
  throw UserError(ErrorCode::Attr, fmt::format("{} is {}, not {}", name, value, what));
}

void require_numbers(const TrainingOptions& options) {
  const auto positive = [](const std::optional<double>& x, std::string_view name) {
    if (x) require_number(*x, *x > 0, name, "a positive number");
  };
  positive(options.clip_norm, "clip_norm");
  positive(options.clip_value, "clip_value");
  if (options.ema) {
    require_number(*options.ema, *options.ema >= 0 && *options.ema < 1, "ema",
                   "a number in [0, 1)");
  }
  require_number(static_cast<double>(options.accumulate),
                 options.accumulate >= 1 && options.accumulate <= (1 << 24), "accumulate",
                 "a count from 1 to 16777216");
}

}  // namespace

void require_sense(const Graph& graph, const TrainingOptions& options) {
  require_updates(graph, options);
  require_numbers(options);
  require_scalar_loss(graph);
}

}  // namespace ricci
