// Builders of recurrent ops that give the final state as well.
#pragma once

#include <source_location>

#include "ricci/ir/graph.h"
#include "ricci/op/sequence.h"

namespace ricci {

struct WithState {
  Value out;
  Value state;
};

/// The scan and its final state; `h0`, if valid, is the state it starts from.
WithState selective_scan_with_state(Value x, Value delta, Value a, Value b, Value c,
                                    op::SelectiveScan attrs, Value h0 = {},
                                    std::source_location loc = std::source_location::current());

/// gated_delta_net that starts from `state`, and its final state.
WithState gated_delta_net_carry(Value q, Value k, Value v, Value g, Value beta, Value state,
                                Dim state_size,
                                std::source_location loc = std::source_location::current());

}  // namespace ricci
