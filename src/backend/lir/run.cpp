#include "backend/lir/run.h"

#include <cstring>

#include "ricci/support/stop.h"

#include "backend/lir/kernel.h"
#include "backend/lir/loop.h"
#include "device/copied_buffers.h"

namespace ricci::lir {

void Runner::run(const Executable& e, Frame& frame) {
  throw_if_stopped();  // a body may have no steps
  device::StepObserver* observer = arguments_.observer;
  for (std::size_t s = 0; s < e.steps_.size() && !context_.fault; ++s) {
    if (observer != nullptr) {
      observer->before(*e.program_, s,
                       device::CopiedBuffers(e.memory_, *e.program_, frame.buffers));
    }
    throw_if_stopped();
    run_step(e, s, frame);
    if (observer != nullptr && !context_.fault) {
      observer->after(*e.program_, s, device::CopiedBuffers(e.memory_, *e.program_, frame.buffers));
    }
  }
}

void Runner::run_step(const Executable& e, std::size_t s, Frame& frame) {
  const Step& step = e.program_->steps[s];
  if (const auto* kernels = std::get_if<KernelStep>(&step.what)) {
    for (const Launch& l : kernels->launches) launch(*e.program_, l, frame);
  } else if (std::holds_alternative<CallStep>(step.what)) {
    call(e, s, frame);
  } else if (const auto* l = std::get_if<LoopStep>(&step.what)) {
    loop(*l, frame, frame.loops[s]);
  } else {
    control(e, s, frame);
  }
}

void Runner::launch(const Program& program, const Launch& launch, const Frame& frame) {
  if (context_.fault) return;
  std::vector<KernelArgument> arguments;
  for (const BufferId b : launch.buffers) {
    const auto index = static_cast<std::size_t>(b);
    arguments.push_back(b < 0
                            ? KernelArgument{}
                            : KernelArgument{frame.buffers[index], program.buffers[index].bytes()});
  }
  const auto fault = run_kernel(program.kernels[launch.kernel], arguments);
  if (fault) context_.fault = {*fault, &launch.from};
}

namespace {

std::byte* first_element(const BufferView& v, const Frame& frame) {
  if (v.buffer < 0) return nullptr;
  return frame.buffers[static_cast<std::size_t>(v.buffer)] +
         v.layout.offset * size_of(v.type.dtype);
}

}  // namespace

void Runner::call(const Executable& e, std::size_t s, const Frame& frame) {
  const Step& step = e.program_->steps[s];
  const auto& call = std::get<CallStep>(step.what);
  if (call.before) launch(*e.program_, *call.before, frame);
  if (context_.fault) return;
  std::vector<std::byte*> operands;
  std::vector<std::byte*> results;
  for (const BufferView& v : call.operands) operands.push_back(first_element(v, frame));
  for (const BufferView& v : call.results) results.push_back(first_element(v, frame));
  try {
    e.steps_[s].call->run(operands, results, arguments_.seed);
  } catch (const std::exception&) {
    device::fail_call(*e.program_, call, step);
  }
  if (call.after) launch(*e.program_, *call.after, frame);
}

void Runner::loop(const LoopStep& step, const Frame& frame, const device::Array& room) {
  const auto arrays = [&](const std::vector<BufferView>& views) {
    std::vector<KernelArgument> out;
    for (const BufferView& v : views) {
      out.push_back({first_element(v, frame), *v.type.numel() * size_of(v.type.dtype)});
    }
    return out;
  };
  run_loop(step.loop, arrays(step.operands), arrays(step.results),
           {room.data(), static_cast<std::size_t>(room.bytes())});
}

// A loop or branch: what it asks for is done at once.
class Runner::Bodies final : public device::Bodies {
 public:
  Bodies(Runner& runner, const std::vector<std::unique_ptr<Executable>>& bodies,
         std::vector<Frame>& frames, Memory& memory)
      : runner_(runner), bodies_(bodies), frames_(frames), memory_(memory) {}

  [[nodiscard]] std::span<std::byte*> buffers(std::size_t body) override {
    return frames_[body].buffers;
  }
  void run(std::size_t body) override { runner_.run(*bodies_[body], frames_[body]); }
  [[nodiscard]] bool has_failed() const override { return runner_.context_.fault.has_value(); }
  void copy(std::byte* to, const std::byte* from, std::int64_t bytes) override {
    memory_.require_own(to, bytes, "what a loop fills");
    memory_.require_own(from, bytes, "what a loop reads");
    std::memmove(to, from, static_cast<std::size_t>(bytes));
  }
  void zero(std::byte* at, std::int64_t bytes) override {
    memory_.require_own(at, bytes, "what a loop fills");
    std::memset(at, 0, static_cast<std::size_t>(bytes));
  }
  void store_count(std::byte* at, std::int32_t count) override {
    memory_.copy_in(at, reinterpret_cast<const std::byte*>(&count), sizeof count);
  }
  [[nodiscard]] bool all_nonzero(const std::byte* at, DType dtype, std::int64_t elements) override {
    if (runner_.context_.fault) return false;
    std::vector<std::byte> flag(static_cast<std::size_t>(elements * size_of(dtype)));
    memory_.copy_out(flag.data(), at, elements * size_of(dtype));
    return device::all_nonzero_on_host(flag.data(), dtype, elements);
  }

 private:
  Runner& runner_;
  const std::vector<std::unique_ptr<Executable>>& bodies_;
  std::vector<Frame>& frames_;
  Memory& memory_;
};

void Runner::control(const Executable& e, std::size_t s, Frame& frame) {
  Bodies bodies(*this, e.steps_[s].bodies, frame.bodies[s], e.memory_);
  device::run_control(std::get<ControlStep>(e.program_->steps[s].what), frame.buffers,
                      frame.control[s], bodies);
}

}  // namespace ricci::lir
