#include "backend/cuda/run/uses.h"

#include <algorithm>

#include "schedule/step_buffers.h"

namespace ricci::cuda {

void Uses::add(const void* at, std::int64_t bytes, bool written) {
  if (at != nullptr && bytes > 0) all_.push_back({address(at), bytes, written});
}

void Uses::add(BufferId buffer, bool written) {
  if (buffer < 0) return;
  const auto b = static_cast<std::size_t>(buffer);
  add(frame_.buffers[b], program_.buffers[b].bytes(), written);
}

void Uses::add(const Launch& launch) {
  schedule::for_arguments(program_, launch, [&](BufferId b, bool written) { add(b, written); });
}

void Uses::add(const LoopStep& step) {
  for (const BufferView& v : step.operands) add(v.buffer, false);
  for (const BufferView& v : step.results) add(v.buffer, true);
}

void Uses::add(const CallStep& call, const CallPlan& plan, const Place& place,
               std::int64_t scratch) {
  switch (place.in) {
    case Place::In::Operand: return add(call.operands[place.index].buffer, false);
    case Place::In::Result: return add(call.results[place.index].buffer, true);
    case Place::In::Scratch: return add(frame_.scratch + scratch, plan.scratch_bytes, true);
    case Place::In::After: {
      const auto role = program_.kernels[call.after->kernel].arguments[place.index].role;
      return add(call.after->buffers[place.index], role == loop::ArgumentRole::Out);
    }
    case Place::In::Number: return;
  }
}

}  // namespace ricci::cuda
