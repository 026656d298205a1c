// What the options of a training step must be.
#pragma once

#include "ricci/model/training.h"

namespace ricci {

/// UserError for what follows outputs, for numbers and for a loss that make no sense; what is
/// trained, and by which optimisers, is checked where that is found out (model/param_groups.h).
void require_sense(const Graph& graph, const TrainingOptions& options);

}  // namespace ricci
