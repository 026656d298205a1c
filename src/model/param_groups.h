// Which optimiser each trained param has. See ParamGroup in ricci/model/training.h.
#pragma once

#include <string>
#include <vector>

#include "ricci/model/training.h"

namespace ricci {

/// An optimiser with a factor for its learning rate: that of the options, or of a group.
struct UpdateRule {
  Optimizer optimizer;
  double learning_rate_factor = 1;
};
struct TrainedParam {
  std::string name;
  std::size_t rule = 0;
};
struct TrainedParams {
  std::vector<UpdateRule> rules;  ///< the first is that of the options
  std::vector<TrainedParam> params;

  [[nodiscard]] std::vector<std::string> names() const;
};
/// UserError for names that are no params, groups that name none, and settings without sense.
[[nodiscard]] TrainedParams trained_params(const Graph& graph, const TrainingOptions& options);

}  // namespace ricci
