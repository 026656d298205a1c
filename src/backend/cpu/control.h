// How `if`, `while` and `scan` drive their bodies: which buffers a body reads and fills each time.
#pragma once

#include <functional>
#include <vector>

#include "ricci/schedule/program.h"

namespace ricci::cpu {

struct Frame;

/// Runs a control step. `frames` holds the bodies' buffers, whose inputs and outputs are set here;
/// `run_body(i)` runs body i with them.
void run_control(const ControlStep& step, const Frame& frame, std::vector<Frame>& frames,
                 const std::function<void(std::size_t body)>& run_body);

/// How many bytes a run of it takes for results of its bodies that nobody wants.
[[nodiscard]] std::int64_t control_spare_bytes(const ControlStep& step);

}  // namespace ricci::cpu
