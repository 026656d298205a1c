// What the parts of a program read and write, in bytes of the GPU's memory: arrays as a whole,
// wherever a part looks at them.
#pragma once

#include <span>
#include <vector>

#include "ricci/compiler/schedule/program.h"

#include "backend/cuda/run/executable.h"
#include "backend/cuda/run/order.h"
#include "backend/cuda/structured/call_plan.h"

namespace ricci::cuda {

/// What a step of a program uses, in the buffers of a frame.
class Uses {
 public:
  Uses(const Program& program, const Frame& frame) : program_(program), frame_(frame) {}

  void add(const void* at, std::int64_t bytes, bool written);
  void add(BufferId buffer, bool written);
  /// A kernel's arguments.
  void add(const Launch& launch);
  /// A loop's operands and results.
  void add(const LoopStep& step);
  /// What a part of a call's plan finds at a place; `scratch` is where the plan's begins.
  void add(const CallStep& call, const CallPlan& plan, const Place& place, std::int64_t scratch);
  [[nodiscard]] std::span<const Use> all() const noexcept { return all_; }

 private:
  const Program& program_;
  const Frame& frame_;
  std::vector<Use> all_;
};

}  // namespace ricci::cuda
