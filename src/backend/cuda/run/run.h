// One run of a program: what its steps do, put on the stream in order.
#pragma once

#include <span>

#include "backend/cuda/run/executable.h"
#include "backend/cuda/run/ordered_capture.h"
#include "backend/cuda/run/uses.h"

namespace ricci::cuda {

/// With an observer, or where the host has to decide or compute, it waits for the GPU in between.
class Runner {
 public:
  /// `order`: of the graph that the run is captured as.
  Runner(const Executable& root, Context& context, const device::RunArguments& arguments,
         OrderedCapture* order = nullptr)
      : root_(root),
        context_(context),
        driver_(context.gpu.driver()),
        arguments_(arguments),
        order_(order) {}
  void run();

 private:
  class Bodies;
  using ReadyLaunch = Executable::ReadyLaunch;
  /// A program and its buffers: the outermost, or a body.
  struct Scope {
    const Executable& executable;
    Frame& frame;
    [[nodiscard]] const Program& program() const { return *executable.program_; }
    [[nodiscard]] Uses uses() const { return {program(), frame}; }
  };

  void run(const Scope& scope);
  void run_step(const Scope& scope, std::size_t step);
  void launch(const Scope& scope, const ReadyLaunch& ready, std::span<std::byte* const> pointers,
              Uses uses);
  void launch_kernel(const Scope& scope, const ReadyLaunch& ready, const Launch& launch);
  void launch_kernels(const Scope& scope, const ReadyLaunch& ready, const KernelStep& step);
  void loop(const Scope& scope, const ReadyLaunch& ready, const LoopStep& step);
  void call(const Scope& scope, std::size_t step);
  void run_plan(const Scope& scope, const Executable::Ready& ready, const CallStep& call);
  void host_call(const Scope& scope, std::size_t step);
  void control(const Scope& scope, std::size_t step);
  /// Arrays are copied and cleared on the stream.
  void copy(std::byte* to, const std::byte* from, std::int64_t bytes);
  void clear(std::byte* at, std::int64_t bytes);
  void take_seed();
  void tell_fault();
  /// Asks the stream for what uses these, in a function that does so.
  template <class F>
  void ask(std::span<const Use> uses, const F& f) {
    if (order_ == nullptr) {
      f();
    } else {
      order_->add(uses, f);
    }
  }
  /// Waits until all that was asked for is done, and tells of a fault that was met.
  void wait();

  const Executable& root_;
  Context& context_;
  const Driver& driver_;
  const device::RunArguments& arguments_;
  OrderedCapture* order_;
};

}  // namespace ricci::cuda
