// One move of all trained params, from their gradients: the part of a training step that is left
// out while gradients are only accumulated.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "model/param_groups.h"

namespace ricci {

/// What a move is made of. Values are all of one graph.
struct MoveValues {
  struct Param {
    Value value;
    Value gradient;
    Value curvature;           ///< invalid where the optimiser needs none
    std::vector<Value> state;  ///< as ParamState lists it
  };
  Value count;          ///< moves made before; i32
  Value learning_rate;  ///< where it is fed
  std::vector<Param> params;
};

/// What is kept for a param.
struct ParamState {
  std::vector<StateSlot> slots;  ///< the optimiser's, then `master` and `ema` where there are such
  bool has_master = false;
  bool has_ema = false;
};
[[nodiscard]] ParamState param_state(const UpdateRule& rule, const Type& param,
                                     const TrainingOptions& options);

/// Count, params and states after the move, `before` unchanged.
[[nodiscard]] MoveValues moved(const MoveValues& before, const TrainedParams& trained,
                               const TrainingOptions& options);
/// The same where `flag` is not 0; otherwise they stay.
[[nodiscard]] MoveValues moved_if(Value flag, const MoveValues& before,
                                  const TrainedParams& trained, const TrainingOptions& options);

}  // namespace ricci
