#include "schedule/fit_bodies.h"

#include <algorithm>

#include "schedule/place_temporaries.h"
#include "schedule/recompute.h"
#include "support/align.h"

namespace ricci::schedule {
namespace {

// Plans the bodies of a step again with `room` for their temporaries. Is its workspace smaller now?
bool shrink_workspace(Program& program, ControlStep& control, std::int64_t room,
                      const Target& target) {
  std::int64_t needed = 0;
  for (auto& [role, body] : control.bodies) {
    if (body->arena_bytes > room) {
      auto smaller = std::make_shared<Program>(*body);
      recompute_to_fit(*smaller, room, {}, target);
      if (smaller->arena_bytes < body->arena_bytes) body = std::move(smaller);
    }
    needed = std::max(needed, body->arena_bytes);
  }
  Buffer& workspace = program.buffers[static_cast<std::size_t>(control.workspace)];
  if (needed >= workspace.elements) return false;
  workspace.elements = needed;
  return true;
}

// So that at no step more than `goal` bytes are alive. Is any workspace smaller now?
bool shrink_workspaces(Program& program, std::int64_t goal, const Target& target) {
  const std::int64_t alignment = target.alignment();
  const std::vector<std::int64_t> alive = bytes_alive(program, alignment);
  bool smaller = false;
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    auto* control = std::get_if<ControlStep>(&program.steps[s].what);
    if (control == nullptr || alive[s] <= goal) continue;
    const Buffer& workspace = program.buffers[static_cast<std::size_t>(control->workspace)];
    const std::int64_t beside = alive[s] - aligned(workspace.bytes(), alignment);
    const std::int64_t room = std::max<std::int64_t>(1, goal - beside);
    smaller = shrink_workspace(program, *control, room, target) || smaller;
  }
  return smaller;
}

}  // namespace

void fit_bodies(Program& program, std::int64_t budget, const Target& target) {
  constexpr int MostRounds = 8;
  std::int64_t goal = budget;
  for (int round = 0; round < MostRounds && goal > 0; ++round) {
    if (!shrink_workspaces(program, goal, target)) return;
    place_temporaries(program, target.alignment());
    if (program.arena_bytes <= budget) return;
    goal -= program.arena_bytes - budget;  // gaps between what is alive
  }
}

}  // namespace ricci::schedule
