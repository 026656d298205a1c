#include "backend/cpu/run/executable.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>

#include <fmt/format.h>

#include "ricci/support/error.h"

#include "backend/cpu/run/tiling.h"
#include "backend/cpu/structured/thread_scratch.h"
#include "device/faults.h"
#include "schedule/step_buffers.h"
#include "support/align.h"
#include "support/phases.h"
#include "support/stop_flag.h"
#include "support/vector_environment.h"

namespace ricci::cpu {
namespace {

// For loops of runs that nobody can stop.
constexpr StopFlag NeverStop{false};

// Arguments of a kernel that may be given another place in every part.
constexpr std::size_t MostPassedOn = 16;

// How often each buffer is read or written.
std::vector<std::int32_t> uses_of_buffers(const Program& program) {
  std::vector<std::int32_t> uses(program.buffers.size(), 0);
  const auto count = [&](BufferId b, bool) {
    if (b >= 0) ++uses[static_cast<std::size_t>(b)];
  };
  for (const Step& step : program.steps) schedule::for_uses(program, step, count);
  return uses;
}

// Which buffers of a loop's body stay the same in all trips.
SameBuffers same_buffers(const ControlStep& step, std::size_t body) {
  const auto* plan = std::get_if<loop::LoopPlan>(&step.how);
  if (plan == nullptr || body != 0) return {};
  const Program& program = *step.bodies[body].second;
  SameBuffers same;
  for (const Buffer& b : program.buffers) same.push_back(b.role == Buffer::Role::Constant);
  for (std::size_t k = 0; k < plan->wholes.size(); ++k) {
    same[static_cast<std::size_t>(program.inputs[plan->carries.size() + k])] = true;
  }
  return same;
}

// Local arguments lie one behind the other in the tile's room, behind the pointers to all.
std::vector<std::int64_t> local_offsets(const loop::Kernel& k, std::int64_t& total) {
  std::vector<std::int64_t> offsets;
  const auto pointers = static_cast<std::int64_t>(k.arguments.size() * sizeof(void*));
  total = aligned(pointers);
  bool any = false;
  for (const loop::Argument& a : k.arguments) {
    offsets.push_back(total);
    if (a.role != loop::ArgumentRole::Local) continue;
    any = true;
    total += aligned(a.elements * size_of(a.dtype)) + CacheLine;
  }
  if (!any) total = 0;
  return offsets;
}

}  // namespace

struct Executable::ReadyLaunch {
  KernelCode code;
  std::vector<std::int64_t> locals;  ///< where each local argument lies in a tile's room
  std::int64_t local_bytes = 0;
  std::size_t first_argument = 0;  ///< among those of the frame
  TileRange one_part;              ///< of any rows, which a call that it is attached to chooses
};

/// Launches that run at the same time.
struct Executable::ReadyLaunches {
  struct Tile {
    TileRange range;
    std::size_t launch = 0;
  };
  std::vector<ReadyLaunch> launches;
  std::vector<Tile> tiles;  ///< of all launches
  bool alone = false;       ///< too little work for a second thread
};

struct Executable::Ready {
  ReadyLaunches kernels;
  // Call, and what is attached to it.
  std::unique_ptr<CallKernel> call;
  std::int64_t kept_at = 0;  ///< what it keeps, in that of the frame
  bool passes_on = false;    ///< what runs before it makes what it alone reads
  ReadyLaunches before;
  ReadyLaunches after;
  LoopCode loop;
  // Control.
  std::vector<std::unique_ptr<Executable>> bodies;
};

Executable::Executable(std::shared_ptr<const Program> program, CodeSource& code, ThreadPool& pool)
    : Executable(std::move(program), code, pool, SameBuffers()) {}

Executable::Executable(std::shared_ptr<const Program> program, CodeSource& code, ThreadPool& pool,
                       const SameBuffers& same)
    : program_(std::move(program)), pool_(pool) {
  const std::vector<KernelCode> kernels = code.kernels(program_->kernels);
  const Phase phase("steps");
  const std::vector<std::int32_t> uses = uses_of_buffers(*program_);
  for (const Step& step : program_->steps) {
    throw_if_stopped();
    Ready ready;
    if (const auto* step_kernels = std::get_if<KernelStep>(&step.what)) {
      ready.kernels = prepare(step_kernels->launches, kernels);
    } else if (const auto* call = std::get_if<CallStep>(&step.what)) {
      AttachedKernels attached;
      if (call->before) {
        ready.before = prepare({&*call->before, 1}, kernels);
        attached.before = &program_->kernels[call->before->kernel];
        const auto made = static_cast<std::size_t>(call->operands[0].buffer);
        ready.passes_on = uses[made] == 2 && ready.before.launches[0].local_bytes == 0 &&
                          program_->buffers[made].role == Buffer::Role::Temporary &&
                          call->before->buffers.size() <= MostPassedOn;
        attached.passed_on = ready.passes_on;
      }
      if (call->after) {
        ready.after = prepare({&*call->after, 1}, kernels);
        attached.after = &program_->kernels[call->after->kernel];
      }
      ready.call = make_call_kernel(*program_, *call, attached, same);
      ready.kept_at = kept_bytes_;
      kept_bytes_ += aligned(ready.call->kept_bytes());
      only_compiled_ = false;
      scratch_bytes_ = std::max(scratch_bytes_, ready.call->scratch_bytes());
      thread_bytes_ = std::max(thread_bytes_, thread_scratch_bytes(ready.call->thread_bytes()));
    } else if (const auto* l = std::get_if<LoopStep>(&step.what)) {
      ready.loop = code.loop(l->loop);
    } else {
      std::int64_t inside = 0;
      const auto& control = std::get<ControlStep>(step.what);
      for (std::size_t body = 0; body < control.bodies.size(); ++body) {
        ready.bodies.push_back(std::unique_ptr<Executable>(
            new Executable(control.bodies[body].second, code, pool_, same_buffers(control, body))));
        const Executable& b = *ready.bodies.back();
        scratch_bytes_ = std::max(scratch_bytes_, b.scratch_bytes_);
        thread_bytes_ = std::max(thread_bytes_, b.thread_bytes_);
        inside += b.spare_bytes_;
        only_compiled_ = only_compiled_ && b.only_compiled_;
      }
      spare_bytes_ += device::control_spare_bytes(control) + inside;
    }
    steps_.push_back(std::move(ready));
  }
  spare_bytes_ += kept_bytes_;
}

Executable::~Executable() = default;

Executable::ReadyLaunch Executable::prepare(const Launch& launch, const KernelCode& code) {
  ReadyLaunch ready{.code = code};
  ready.one_part = range_of_rows(program_->kernels[launch.kernel], 0, 0);
  ready.locals = local_offsets(program_->kernels[launch.kernel], ready.local_bytes);
  if (ready.local_bytes > 0) {
    thread_bytes_ = std::max(thread_bytes_, thread_scratch_bytes(ready.local_bytes));
  }
  return ready;
}

Executable::ReadyLaunches Executable::prepare(std::span<const Launch> launches,
                                              std::span<const KernelCode> code) {
  // Arguments times elements: what kernels of one tile each do within some 100 µs is done before
  // another thread, which may have to be woken, would have been of use.
  constexpr std::int64_t LittleWork = 1 << 20;
  std::int64_t work = 0;
  ReadyLaunches ready{.alone = true};
  for (const Launch& launch : launches) {
    const loop::Kernel& k = program_->kernels[launch.kernel];
    const std::int64_t tiles = tile_count(k);
    for (std::int64_t t = 0; t < tiles; ++t) {
      ready.tiles.push_back({tile_range(k, tiles, t), ready.launches.size()});
    }
    ready.launches.push_back(prepare(launch, code[launch.kernel]));
    ready.launches.back().first_argument = arguments_;
    arguments_ += launch.buffers.size();
    work += k.rows() * k.row_elements() * static_cast<std::int64_t>(k.arguments.size());
    if (tiles > 1 || work > LittleWork) ready.alone = false;
  }
  if (ready.tiles.size() == 1) ready.alone = true;
  return ready;
}

void Executable::reserve_threads() const {
  if (thread_bytes_ == 0) return;
  pool_.run_on_all([&] { (void)thread_scratch(thread_bytes_); });
}

std::int64_t Executable::context_bytes() const {
  return std::max(aligned(program_->arena_bytes) + aligned(scratch_bytes_), CacheLine);
}

std::int64_t Executable::workspace_bytes() const {
  return context_bytes() + spare_bytes_ + pool_.threads() * thread_bytes_;
}

std::unique_ptr<device::Context> Executable::make_context() const {
  reserve_threads();
  return std::make_unique<Context>(*this);
}

std::string_view Executable::served_by(std::size_t step) const {
  if (steps_[step].loop.function != nullptr) return "loop";
  if (steps_[step].call) return steps_[step].call->how();
  return steps_[step].kernels.launches.empty() ? "control" : "kernel";
}

std::string_view Executable::served_where_not_finite(std::size_t step) const {
  return steps_[step].call ? steps_[step].call->how_where_not_finite() : std::string_view();
}

const Executable* Executable::body(std::size_t step, std::size_t body) const {
  const auto& bodies = steps_[step].bodies;
  return body < bodies.size() ? bodies[body].get() : nullptr;
}

void Executable::prepare_frame(Frame& frame, std::byte* arena, std::byte* seed) const {
  for (const Buffer& b : program_->buffers) {
    std::byte* at = nullptr;
    if (b.role == Buffer::Role::Temporary) at = arena + b.offset;
    if (b.role == Buffer::Role::Constant) at = const_cast<std::byte*>(b.constant.data());
    if (b.role == Buffer::Role::Seed) at = seed;
    frame.buffers.push_back(at);
  }
  frame.arguments.resize(arguments_);
  if (kept_bytes_ > 0) frame.kept = device::Array(device::host_memory(), kept_bytes_);
  for (const Step& step : program_->steps) {
    std::visit(
        [&]<class S>(const S& s) {
          if constexpr (!std::is_same_v<S, KernelStep>) {
            const std::size_t count = s.operands.size() + s.results.size();
            frame.operands.resize(std::max(frame.operands.size(), count));
          }
        },
        step.what);
  }
  frame.bodies.resize(steps_.size());
  frame.control.resize(steps_.size());
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    const auto* control = std::get_if<ControlStep>(&program_->steps[s].what);
    if (control == nullptr || steps_[s].bodies.empty()) continue;
    frame.control[s] = device::make_control_room(*control, device::host_memory());
    for (const auto& body : steps_[s].bodies) {
      frame.bodies[s].emplace_back();
      body->prepare_frame(frame.bodies[s].back(),
                          frame.buffers[static_cast<std::size_t>(control->workspace)], seed);
    }
  }
}

Context::Context(const Executable& executable)
    : memory_(device::host_memory(), executable.context_bytes()),
      scratch_(memory_.data() + aligned(executable.program().arena_bytes)) {
  executable.prepare_frame(frame_, memory_.data(), reinterpret_cast<std::byte*>(&seed_));
}

// One run: steps in order.
class Runner {
 public:
  Runner(Context& context, ThreadPool& pool, const device::RunArguments& arguments)
      : context_(context), pool_(pool), arguments_(arguments) {}

  void run(const Executable& e, Frame& frame) {
    throw_if_set(stop_);  // a body may have no steps
    for (std::size_t s = 0; s < e.steps_.size(); ++s) {
      throw_if_set(stop_);
      if (arguments_.observer == nullptr) {
        step(e, s, frame);
        continue;
      }
      const FrameBuffers buffers(frame);
      arguments_.observer->before(*e.program_, s, buffers);
      step(e, s, frame);
      arguments_.observer->after(*e.program_, s, buffers);
    }
  }

 private:
  class FrameBuffers final : public device::Buffers {
   public:
    explicit FrameBuffers(const Frame& frame) : frame_(frame) {}
    [[nodiscard]] const std::byte* on_host(BufferId buffer) const override {
      return frame_.buffers[static_cast<std::size_t>(buffer)];
    }

   private:
    const Frame& frame_;
  };

  void step(const Executable& e, std::size_t s, Frame& frame) {
    const Step& what = e.program_->steps[s];
    const Executable::Ready& ready = e.steps_[s];
    if (const auto* kernels = std::get_if<KernelStep>(&what.what)) {
      launch(ready.kernels, kernels->launches, frame, what);
    } else if (const auto* call = std::get_if<CallStep>(&what.what)) {
      this->call(e, ready, *call, frame, what);
    } else if (const auto* l = std::get_if<LoopStep>(&what.what)) {
      loop(*l, ready.loop.function, frame);
    } else {
      control(e, s, frame);
    }
  }

  // What each launch is given; it stays until the frame is given other buffers.
  static void set_arguments(const Executable::ReadyLaunches& ready,
                            std::span<const Launch> launches, Frame& frame) {
    if (frame.arguments_hold) return;
    for (std::size_t l = 0; l < launches.size(); ++l) {
      void** next = frame.arguments.data() + ready.launches[l].first_argument;
      const std::vector<std::int64_t>& starts = ready.launches[l].code.starts;
      for (std::size_t a = 0; a < launches[l].buffers.size(); ++a) {
        const BufferId b = launches[l].buffers[a];
        std::byte* at = b < 0 ? nullptr : frame.buffers[static_cast<std::size_t>(b)];
        next[a] = at == nullptr || starts.empty() ? at : at + starts[a];
      }
    }
  }

  void launch(const Executable::ReadyLaunches& ready, std::span<const Launch> launches,
              Frame& frame, const Step& what) {
    set_arguments(ready, launches, frame);
    run_launches(ready, launches, frame, what);
  }

  void run_launches(const Executable::ReadyLaunches& ready, std::span<const Launch> launches,
                    Frame& frame, const Step& what) {
    const auto run = [&](std::int64_t number) {
      const Executable::ReadyLaunches::Tile& tile = ready.tiles[static_cast<std::size_t>(number)];
      const Executable::ReadyLaunch& of = ready.launches[tile.launch];
      run_tile(of, launches[tile.launch], tile.range, frame.arguments.data() + of.first_argument);
    };
    const auto tiles = static_cast<std::int64_t>(ready.tiles.size());
    try {
      if (ready.alone) {
        for (std::int64_t t = 0; t < tiles; ++t) run(t);
      } else {
        pool_.run(tiles, run);
      }
    } catch (const std::bad_alloc& error) {
      device::fail_kernel(error, "kernel", what);
    }
  }

  // A tile that meets a bad index says so itself: the pool tells of the lowest one, whichever
  // thread was first.
  static void run_tile(const Executable::ReadyLaunch& ready, const Launch& launch,
                       const TileRange& range, void* const* arguments) {
    if (ready.local_bytes > 0) {
      std::byte* room = thread_scratch(ready.local_bytes);
      auto* own = reinterpret_cast<void**>(room);
      for (std::size_t a = 0; a < launch.buffers.size(); ++a) {
        own[a] = launch.buffers[a] < 0 ? room + ready.locals[a] : arguments[a];
      }
      arguments = own;
    }
    Fault fault;
    ready.code.function(arguments, &range, &fault);
    if (fault.kind != 0) {
      device::fail_launch({static_cast<loop::FaultKind>(fault.kind), fault.number, fault.limit},
                          launch.from);
    }
  }

  // A kernel attached to a call, for parts of the array they share.
  class AttachedLaunch final : public Attached {
   public:
    AttachedLaunch(Runner& runner, const Executable::ReadyLaunches& ready, const Launch& launch,
                   const Program& program, Frame& frame, const Step& what)
        : runner_(runner), ready_(ready), launch_(launch), frame_(frame), what_(what) {
      const loop::Kernel& kernel = program.kernels[launch.kernel];
      row_ = kernel.flat ? 1 : kernel.row_elements();
      set_arguments(ready, {&launch, 1}, frame);
    }
    void run(std::int64_t first, std::int64_t last) const override {
      const Executable::ReadyLaunch& ready = ready_.launches[0];
      run_tile(ready, launch_, part_of(ready, first, last),
               frame_.arguments.data() + ready.first_argument);
    }
    /// `made` is what it makes before a call. What the call alone reads is only passed on, while
    /// nobody else looks.
    void makes(const BufferView& made, bool for_call_alone) {
      array_ = frame_.buffers[static_cast<std::size_t>(made.buffer)];
      element_ = size_of(made.type.dtype);
      if (for_call_alone && runner_.arguments_.observer == nullptr) passed_on_ = made.buffer;
    }
    const std::byte* run_into(std::int64_t first, std::int64_t last,
                              std::byte* room) const override {
      if (passed_on_ < 0) {
        run(first, last);
        return array_ + first * element_;
      }
      const Executable::ReadyLaunch& ready = ready_.launches[0];
      const auto given = std::span(frame_.arguments).subspan(ready.first_argument);
      std::array<void*, MostPassedOn> own{};
      for (std::size_t a = 0; a < launch_.buffers.size(); ++a) {
        own[a] = launch_.buffers[a] == passed_on_ ? room - first * element_ : given[a];
      }
      run_tile(ready, launch_, part_of(ready, first, last), own.data());
      return room;
    }
    void run_all() const override { runner_.run_launches(ready_, {&launch_, 1}, frame_, what_); }

   private:
    [[nodiscard]] TileRange part_of(const Executable::ReadyLaunch& ready, std::int64_t first,
                                    std::int64_t last) const {
      TileRange range = ready.one_part;
      range.first = first / row_;
      range.last = last / row_;
      return range;
    }

    Runner& runner_;
    const Executable::ReadyLaunches& ready_;
    const Launch& launch_;
    Frame& frame_;
    const Step& what_;
    std::int64_t row_ = 1;
    const std::byte* array_ = nullptr;  ///< of what is made before a call
    std::int64_t element_ = 0;
    BufferId passed_on_ = -1;
  };

  static std::byte* first_element(const BufferView& v, const Frame& frame) {
    if (v.buffer < 0) return nullptr;
    return frame.buffers[static_cast<std::size_t>(v.buffer)] +
           v.layout.offset * size_of(v.type.dtype);
  }

  struct Pointers {
    std::span<std::byte* const> operands;
    std::span<std::byte* const> results;
  };
  // Where the operands and results of a call, or of a loop, begin.
  template <class S>
  static Pointers pointers(const S& step, Frame& frame) {
    std::byte** next = frame.operands.data();
    for (const BufferView& v : step.operands) *next++ = first_element(v, frame);
    for (const BufferView& v : step.results) *next++ = first_element(v, frame);
    const std::span<std::byte* const> all(frame.operands);
    return {all.first(step.operands.size()),
            all.subspan(step.operands.size(), step.results.size())};
  }

  void call(const Executable& e, const Executable::Ready& ready, const CallStep& step, Frame& frame,
            const Step& what) {
    const auto [operands, results] = pointers(step, frame);
    try {
      const CallArguments given{.operands = operands,
                                .results = results,
                                .pool = pool_,
                                .seed = arguments_.seed,
                                .scratch = context_.scratch(),
                                .kept = frame.kept.data() + ready.kept_at,
                                .kept_is_made = frame.kept_is_made};
      std::optional<AttachedLaunch> before;
      std::optional<AttachedLaunch> after;
      if (step.before) {
        before.emplace(*this, ready.before, *step.before, *e.program_, frame, what);
        before->makes(step.operands[0], ready.passes_on);
      }
      if (step.after) after.emplace(*this, ready.after, *step.after, *e.program_, frame, what);
      ready.call->run_with(given, {before ? &*before : nullptr, after ? &*after : nullptr});
    } catch (const std::exception&) {
      device::fail_call(*e.program_, step, what);
    }
  }

  void loop(const LoopStep& step, LoopFunction function, Frame& frame) {
    const auto [operands, results] = pointers(step, frame);
    for (const std::int32_t r : step.loop.plan.zeroed) {
      const auto index = static_cast<std::size_t>(r);
      const Type& type = step.results[index].type;
      std::memset(results[index], 0, static_cast<std::size_t>(*type.numel() * size_of(type.dtype)));
    }
    function(reinterpret_cast<void* const*>(operands.data()),
             reinterpret_cast<void* const*>(results.data()), stop_ != nullptr ? stop_ : &NeverStop);
    throw_if_set(stop_);
  }

  void control(const Executable& e, std::size_t s, Frame& frame) {
    const auto& step = std::get<ControlStep>(e.program_->steps[s].what);
    for (Frame& body : frame.bodies[s]) body.kept_is_made = false;
    Bodies bodies(*this, e.steps_[s].bodies, frame.bodies[s]);
    device::run_control(step, frame.buffers, frame.control[s], bodies);
  }

  class Bodies final : public device::Bodies {
   public:
    Bodies(Runner& runner, const std::vector<std::unique_ptr<Executable>>& bodies,
           std::vector<Frame>& frames)
        : runner_(runner), bodies_(bodies), frames_(frames) {}
    [[nodiscard]] std::span<std::byte*> buffers(std::size_t body) override {
      return frames_[body].buffers;
    }
    void run(std::size_t body) override {
      runner_.run(*bodies_[body], frames_[body]);
      frames_[body].kept_is_made = true;
    }
    void copy(std::byte* to, const std::byte* from, std::int64_t bytes) override {
      std::memcpy(to, from, static_cast<std::size_t>(bytes));
    }
    void zero(std::byte* at, std::int64_t bytes) override {
      std::memset(at, 0, static_cast<std::size_t>(bytes));
    }
    void store_count(std::byte* at, std::int32_t count) override {
      std::memcpy(at, &count, sizeof count);
    }
    [[nodiscard]] bool all_nonzero(const std::byte* at, DType dtype,
                                   std::int64_t elements) override {
      return device::all_nonzero_on_host(at, dtype, elements);
    }

   private:
    Runner& runner_;
    const std::vector<std::unique_ptr<Executable>>& bodies_;
    std::vector<Frame>& frames_;
  };

  Context& context_;
  ThreadPool& pool_;
  const device::RunArguments& arguments_;
  const StopFlag* stop_ = current_stop_flag();
};

void Executable::start(device::Context& given, const device::RunArguments& arguments) const {
  auto& context = static_cast<Context&>(given);
  if (only_compiled_ && arguments.observer == nullptr) {
    const DefaultVectorEnvironment floats;
    run(context, arguments);
  } else {
    const DefaultFloatEnvironment floats;
    run(context, arguments);
  }
}

void Executable::run(Context& context, const device::RunArguments& arguments) const {
  context.set_seed(arguments.seed);
  Frame& frame = context.frame();
  const auto give = [&](BufferId buffer, std::byte* at) {
    std::byte*& held = frame.buffers[static_cast<std::size_t>(buffer)];
    if (held == at) return;
    held = at;
    frame.arguments_hold = false;
  };
  for (std::size_t k = 0; k < program_->inputs.size(); ++k) {
    give(program_->inputs[k], const_cast<std::byte*>(arguments.inputs[k]));
  }
  for (std::size_t k = 0; k < program_->outputs.size(); ++k) {
    give(program_->outputs[k], arguments.outputs[k]);
  }
  Runner(context, pool_, arguments).run(*this, frame);
  frame.arguments_hold = true;  // all steps have been taken; those of bodies get others each time
}

}  // namespace ricci::cpu
