// One run of a program: what its steps do, put on the stream in order.
#pragma once

#include <span>

#include "backend/cuda/run/executable.h"

namespace ricci::cuda {

/// With an observer, or where the host has to decide or compute, it waits for the GPU in between.
class Runner {
 public:
  Runner(const Executable& root, Context& context, const device::RunArguments& arguments)
      : root_(root), context_(context), driver_(context.gpu.driver()), arguments_(arguments) {}
  void run(const Executable& executable, Frame& frame);

 private:
  class Bodies;
  void run_step(const Executable& executable, std::size_t step, Frame& frame);
  void launch(const Executable::ReadyLaunch& ready, std::span<std::byte* const> pointers);
  void launch_kernel(const Program& program, const Executable::ReadyLaunch& ready,
                     const Launch& launch, const Frame& frame);
  void launch_kernels(const Program& program, const Executable::ReadyLaunch& ready,
                      const KernelStep& step, const Frame& frame);
  void loop(const Executable::ReadyLaunch& ready, const LoopStep& step, const Frame& frame);
  void call(const Executable& executable, std::size_t step, const Frame& frame);
  void run_plan(const Executable::Ready& ready, const CallStep& call, const Frame& frame);
  void host_call(const Executable& e, std::size_t s, const Frame& frame);
  void control(const Executable& executable, std::size_t step, Frame& frame);
  /// Waits until all that was asked for is done, and tells of a fault that was met.
  void wait();

  const Executable& root_;
  Context& context_;
  const Driver& driver_;
  const device::RunArguments& arguments_;
};

}  // namespace ricci::cuda
