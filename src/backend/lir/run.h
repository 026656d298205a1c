// One run of a program: steps in order.
#pragma once

#include <vector>

#include "backend/lir/executable.h"

namespace ricci::lir {

/// Once a kernel has met a fault, which its context keeps, steps do nothing.
class Runner {
 public:
  Runner(Context& context, const device::RunArguments& arguments)
      : context_(context), arguments_(arguments) {}
  void run(const Executable& executable, Frame& frame);

 private:
  class Bodies;
  void run_step(const Executable& executable, std::size_t step, Frame& frame);
  void launch(const Program& program, const Launch& launch, const Frame& frame);
  void call(const Executable& executable, std::size_t step, const Frame& frame);
  void loop(const LoopStep& step, const Frame& frame, const device::Array& room);
  void control(const Executable& executable, std::size_t step, Frame& frame);

  Context& context_;
  const device::RunArguments& arguments_;
};

}  // namespace ricci::lir
