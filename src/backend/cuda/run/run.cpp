#include "backend/cuda/run/run.h"

#include <array>

#include "ricci/support/error.h"
#include "ricci/support/stop.h"

#include "backend/cuda/run/launch_arguments.h"
#include "backend/cuda/structured/cublas_product.h"
#include "device/copied_buffers.h"
#include "device/faults.h"

namespace ricci::cuda {
namespace {

// The elements of a view on the host, with what lies between them.
class HostCopy {
 public:
  HostCopy(const BufferView& view, const Frame& frame, bool is_result, Memory& memory) {
    if (view.buffer < 0) return;
    const StaticDims dims = view.type.static_dims();
    const std::int64_t size = size_of(view.type.dtype);
    std::int64_t last = 0;
    for (std::size_t a = 0; a < dims.size(); ++a) {
      if (dims[a] == 0) last = -1;
    }
    for (std::size_t a = 0; a < dims.size() && last >= 0; ++a) {
      const std::int64_t reach = (dims[a] - 1) * view.layout.strides[a];
      (reach < 0 ? first_ : last) += reach;
    }
    at_ = first_element(view, frame.buffers) + first_ * size;
    bytes_.resize(static_cast<std::size_t>((last + 1 - first_) * size) + 1);  // never null
    first_ *= -size;
    if (!is_result)
      memory.copy_out(bytes_.data(), at_, static_cast<std::int64_t>(bytes_.size()) - 1);
  }
  [[nodiscard]] std::byte* first() { return bytes_.empty() ? nullptr : bytes_.data() + first_; }
  void give_back(Memory& memory) const {
    if (bytes_.size() > 1)
      memory.copy_in(at_, bytes_.data(), static_cast<std::int64_t>(bytes_.size()) - 1);
  }

 private:
  std::byte* at_ = nullptr;
  std::int64_t first_ = 0;  // the first element, in bytes behind the lowest
  std::vector<std::byte> bytes_;
};

}  // namespace

void Runner::run() {
  if (root_.needs_.seed) take_seed();
  run({root_, context_.frame});
  if (root_.needs_.can_fault) tell_fault();
}

void Runner::run(const Scope& scope) {
  throw_if_stopped();  // a body may have no steps
  device::StepObserver* observer = arguments_.observer;
  const Program& program = scope.program();
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    throw_if_stopped();
    if (observer == nullptr) {
      run_step(scope, s);
      continue;
    }
    const auto buffers = [&] {
      return device::CopiedBuffers(root_.memory_, program, scope.frame.buffers);
    };
    observer->before(program, s, buffers());
    run_step(scope, s);
    wait();
    observer->after(program, s, buffers());
  }
}

void Runner::wait() {
  if (root_.needs_.can_fault) tell_fault();
  context_.wait("run a program");
  root_.fail_on_fault(context_);
}

void Runner::run_step(const Scope& scope, std::size_t s) {
  const Step& step = scope.program().steps[s];
  const Executable::Ready& ready = scope.executable.steps_[s];
  if (const auto* kernels = std::get_if<KernelStep>(&step.what)) {
    for (const ReadyLaunch& l : ready.launches) launch_kernels(scope, l, *kernels);
  } else if (std::holds_alternative<CallStep>(step.what)) {
    call(scope, s);
  } else if (const auto* l = std::get_if<LoopStep>(&step.what)) {
    loop(scope, ready.launches[0], *l);
  } else {
    control(scope, s);
  }
}

void Runner::take_seed() {
  const Use seed{address(context_.seed.data()), sizeof(std::uint64_t), true};
  ask({&seed, 1}, [&] {
    driver_.check(
        driver_.copy_in(seed.at, &context_.shared().seed, sizeof(std::uint64_t), context_.stream),
        "take the seed");
  });
}

void Runner::tell_fault() {
  const Use fault{address(context_.fault.data()), sizeof(Fault), false};
  ask({&fault, 1}, [&] {
    driver_.check(
        driver_.copy_out(&context_.shared().fault, fault.at, sizeof(Fault), context_.stream),
        "tell of faults");
  });
}

void Runner::copy(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (bytes == 0) return;
  const std::array uses = {Use{address(from), bytes, false}, Use{address(to), bytes, true}};
  ask(uses, [&] {
    driver_.check(
        driver_.copy(address(to), address(from), static_cast<std::size_t>(bytes), context_.stream),
        "copy an array");
  });
}

void Runner::clear(std::byte* at, std::int64_t bytes) {
  if (bytes == 0 || at == nullptr) return;
  const Use use{address(at), bytes, true};
  ask({&use, 1}, [&] {
    driver_.check(driver_.fill8(address(at), 0, static_cast<std::size_t>(bytes), context_.stream),
                  "clear an array");
  });
}

// A pointer each, and what every kernel is given. Those that may meet a fault follow each other:
// the first one's is told.
void Runner::launch(const Scope& scope, const ReadyLaunch& ready,
                    std::span<std::byte* const> pointers, Uses uses) {
  if (ready.blocks == 0) return;
  check_internal(pointers.size() == ready.pointers,
                 "a kernel has another number of parameters than pointers");
  std::byte* scratch = scope.frame.scratch + ready.scratch;
  uses.add(scratch, ready.scratch_bytes, true);
  if (ready.can_fault) uses.add(context_.fault.data(), sizeof(Fault), true);
  const CommonArguments common{scratch, context_.fault.data(), ready.origin};
  LaunchArguments arguments(pointers, common);
  ask(uses.all(), [&] {
    driver_.check(
        driver_.launch(ready.code->function(), ready.blocks, 1, 1, ready.threads, 1, 1,
                       ready.shared, context_.stream, arguments.addresses().data(), nullptr),
        "launch a kernel");
  });
}

void Runner::launch_kernel(const Scope& scope, const ReadyLaunch& ready, const Launch& l) {
  Uses uses = scope.uses();
  uses.add(l);
  launch(scope, ready, kernel_pointers(scope.program().kernels[l.kernel], l, scope.frame.buffers),
         std::move(uses));
}

void Runner::launch_kernels(const Scope& scope, const ReadyLaunch& ready, const KernelStep& step) {
  Uses uses = scope.uses();
  std::vector<std::byte*> all;
  for (const std::size_t l : ready.members) {
    const Launch& launch = step.launches[l];
    const std::vector<std::byte*> its =
        kernel_pointers(scope.program().kernels[launch.kernel], launch, scope.frame.buffers);
    all.insert(all.end(), its.begin(), its.end());
    uses.add(launch);
  }
  launch(scope, ready, all, std::move(uses));
}

// It looks for faults that were met before it.
void Runner::loop(const Scope& scope, const ReadyLaunch& ready, const LoopStep& step) {
  for (const std::int32_t r : step.loop.plan.zeroed) {
    const BufferView& view = step.results[static_cast<std::size_t>(r)];
    clear(first_element(view, scope.frame.buffers), *view.type.numel() * size_of(view.type.dtype));
  }
  Uses uses = scope.uses();
  uses.add(step);
  uses.add(context_.fault.data(), sizeof(Fault), false);
  launch(scope, ready, loop_pointers(step, scope.frame.buffers), std::move(uses));
}

void Runner::call(const Scope& scope, std::size_t s) {
  const auto& call = std::get<CallStep>(scope.program().steps[s].what);
  const Executable::Ready& ready = scope.executable.steps_[s];
  if (call.before) launch_kernel(scope, ready.before[0], *call.before);
  if (ready.plan) {
    run_plan(scope, ready, call);
  } else {
    host_call(scope, s);
  }
  if (!ready.after.empty()) launch_kernel(scope, ready.after[0], *call.after);
}

void Runner::run_plan(const Scope& scope, const Executable::Ready& ready, const CallStep& call) {
  const Frame& frame = scope.frame;
  const std::vector<std::byte*> operands = first_elements(call.operands, frame.buffers);
  const std::vector<std::byte*> results = first_elements(call.results, frame.buffers);
  const auto at = [&](const Place& place) -> std::byte* {
    if (place.in == Place::In::Number) {
      // As large as a pointer, and taken as it is.
      return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(place.offset));
    }
    std::byte* base = frame.scratch + ready.scratch;
    if (place.in == Place::In::Operand) base = operands[place.index];
    if (place.in == Place::In::Result) base = results[place.index];
    if (place.in == Place::In::After) {
      base = frame.buffers[static_cast<std::size_t>(call.after->buffers[place.index])];
    }
    return base == nullptr ? nullptr : base + place.offset;
  };
  const auto uses_of = [&](std::span<const Place> places) {
    Uses uses = scope.uses();
    for (const Place& place : places) uses.add(call, *ready.plan, place, ready.scratch);
    return uses;
  };
  std::size_t launched = 0;
  for (const auto& part : ready.plan->parts) {
    if (const auto* l = std::get_if<CallLaunch>(&part)) {
      std::vector<std::byte*> pointers;
      for (const Place& place : l->places) pointers.push_back(at(place));
      launch(scope, ready.launches[launched++], pointers, uses_of(l->places));
    } else if (const auto* zeros = std::get_if<Zeros>(&part)) {
      clear(at(zeros->at), zeros->bytes);
    } else if (const auto* copied = std::get_if<PlainCopy>(&part)) {
      copy(at(copied->to), at(copied->from), copied->bytes);
    } else {
      const auto& p = std::get<LibraryProduct>(part);
      std::vector<Place> places = {p.a, p.b, p.c, p.workspace};
      for (const auto& place : {p.bias, p.added, p.inner}) {
        if (place) places.push_back(*place);
      }
      const auto maybe = [&](const std::optional<Place>& place) {
        return place ? address(at(*place)) : Address{0};
      };
      ask(uses_of(places).all(), [&] {
        p.how->enqueue({address(at(p.a)), address(at(p.b)), address(at(p.c)),
                        address(at(p.workspace)), context_.stream, maybe(p.bias), maybe(p.added),
                        maybe(p.inner)});
      });
    }
  }
}

void Runner::host_call(const Scope& scope, std::size_t s) {
  wait();
  const Frame& frame = scope.frame;
  const Step& step = scope.program().steps[s];
  const auto& call = std::get<CallStep>(step.what);
  Memory& memory = root_.memory_;
  std::vector<HostCopy> operands;
  std::vector<HostCopy> results;
  std::vector<std::byte*> from;
  std::vector<std::byte*> to;
  for (const BufferView& v : call.operands) operands.emplace_back(v, frame, false, memory);
  for (const BufferView& v : call.results) results.emplace_back(v, frame, true, memory);
  for (HostCopy& c : operands) from.push_back(c.first());
  for (HostCopy& c : results) to.push_back(c.first());
  try {
    scope.executable.steps_[s].host_call->run(from, to, arguments_.seed);
  } catch (const std::exception&) {
    device::fail_call(scope.program(), call, step);
  }
  for (const HostCopy& c : results) c.give_back(memory);
}

// A loop or branch: the host decides, the GPU follows.
class Runner::Bodies final : public device::Bodies {
 public:
  Bodies(Runner& runner, const std::vector<std::unique_ptr<Executable>>& bodies,
         std::vector<Frame>& frames, Memory& memory)
      : runner_(runner), bodies_(bodies), frames_(frames), memory_(memory) {}

  [[nodiscard]] std::span<std::byte*> buffers(std::size_t body) override {
    return frames_[body].buffers;
  }

  void run(std::size_t body) override {
    const Executable& e = *bodies_[body];
    Frame& frame = frames_[body];
    if (frame.aligned.empty()) {
      runner_.run({e, frame});
      return;
    }
    // What lies where kernels cannot read it is read, and written, elsewhere.
    std::vector<std::pair<const AlignedCopy*, std::byte*>> moved;
    for (const AlignedCopy& copy : frame.aligned) {
      std::byte*& at = frame.buffers[static_cast<std::size_t>(copy.buffer)];
      if (reinterpret_cast<std::uintptr_t>(at) % 16 == 0) continue;
      moved.emplace_back(&copy, at);
      if (!copy.is_output) this->copy(copy.at, at, bytes_of(e, copy));
      at = copy.at;
    }
    runner_.run({e, frame});
    for (const auto& [copy, at] : moved) {
      if (copy->is_output) this->copy(at, copy->at, bytes_of(e, *copy));
      frame.buffers[static_cast<std::size_t>(copy->buffer)] = at;
    }
  }

  void copy(std::byte* to, const std::byte* from, std::int64_t bytes) override {
    runner_.copy(to, from, bytes);
  }
  void zero(std::byte* at, std::int64_t bytes) override { runner_.clear(at, bytes); }
  void store_count(std::byte* at, std::int32_t count) override {
    const Use use{address(at), sizeof count, true};
    runner_.ask({&use, 1}, [&] {
      const Driver& driver = runner_.driver_;
      driver.check(
          driver.fill32(address(at), static_cast<unsigned>(count), 1, runner_.context_.stream),
          "store a count");
    });
  }
  [[nodiscard]] bool all_nonzero(const std::byte* at, DType dtype, std::int64_t elements) override {
    runner_.wait();
    std::vector<std::byte> flag(static_cast<std::size_t>(elements * size_of(dtype)));
    memory_.copy_out(flag.data(), at, elements * size_of(dtype));
    return device::all_nonzero_on_host(flag.data(), dtype, elements);
  }

 private:
  [[nodiscard]] static std::int64_t bytes_of(const Executable& e, const AlignedCopy& copy) {
    return e.program_->buffers[static_cast<std::size_t>(copy.buffer)].bytes();
  }

  Runner& runner_;
  const std::vector<std::unique_ptr<Executable>>& bodies_;
  std::vector<Frame>& frames_;
  Memory& memory_;
};

void Runner::control(const Scope& scope, std::size_t s) {
  const Executable& e = scope.executable;
  Bodies bodies(*this, e.steps_[s].bodies, scope.frame.bodies[s], e.memory_);
  device::run_control(std::get<ControlStep>(e.program_->steps[s].what), scope.frame.buffers,
                      scope.frame.control[s], bodies);
}

}  // namespace ricci::cuda
