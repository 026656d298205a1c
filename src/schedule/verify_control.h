// The part of the verifier about loops and branches: what they hand to their bodies.
#pragma once

#include <optional>
#include <string>

#include "ricci/compiler/schedule/program.h"

namespace ricci::schedule {

/// Are the elements of a view one behind the other?
[[nodiscard]] bool is_row_major(const BufferView& view);

/// What is wrong with a control step whose buffers exist and whose bodies are sound: bodies that
/// take or give something else than the step hands them, or rows that are not there.
[[nodiscard]] std::optional<std::string> find_control_fault(const Program& program,
                                                            const ControlStep& step);
/// The same of a loop that is written out.
[[nodiscard]] std::optional<std::string> find_loop_fault(const LoopStep& step);

}  // namespace ricci::schedule
