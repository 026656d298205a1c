// How `if`, `while` and `scan` drive their bodies: which buffers a body reads and fills each time.
#pragma once

#include <vector>

#include "ricci/schedule/program.h"

namespace ricci::cpu {

struct Frame;
struct ControlRoom;

/// Runs body i with the buffers its frame has now.
class BodyRunner {
 public:
  virtual ~BodyRunner() = default;
  virtual void run(std::size_t body) = 0;
};

[[nodiscard]] ControlRoom make_control_room(const ControlStep& step);

/// Runs a control step. `frames` holds the bodies' buffers, whose inputs and outputs are set here.
/// Allocates nothing.
void run_control(const ControlStep& step, const Frame& frame, std::vector<Frame>& frames,
                 ControlRoom& room, BodyRunner& bodies);

/// How many bytes its room takes for results of its bodies that nobody wants.
[[nodiscard]] std::int64_t control_spare_bytes(const ControlStep& step);

}  // namespace ricci::cpu
