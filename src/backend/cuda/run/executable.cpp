#include "backend/cuda/run/executable.h"

#include <exception>
#include <system_error>
#include <thread>
#include <utility>

#include "ricci/support/error.h"
#include "ricci/support/stop.h"

#include "backend/cuda/run/ordered_capture.h"
#include "backend/cuda/run/run.h"
#include "device/faults.h"
#include "support/align.h"
#include "support/phases.h"

namespace ricci::cuda {
/// Texts of all kernels of a program and its bodies, and where their code goes.
struct Executable::Texts {
  struct Slot {
    std::vector<ReadyLaunch>* in = nullptr;
    std::size_t index = 0;
  };
  std::vector<KernelText> texts;
  std::vector<Slot> slots;
};

namespace {

// Does something in a thread of its own, and is over when that is. What goes wrong is left to those
// who need what it makes.
class Meanwhile {
 public:
  template <class Work>
  explicit Meanwhile(Work work) {
    try {
      thread_ = std::thread([work = std::move(work)] {
        try {
          work();
        } catch (const std::exception&) {
          return;
        }
      });
    } catch (const std::system_error&) {
      return;  // there are no more threads
    }
  }
  Meanwhile(const Meanwhile&) = delete;
  Meanwhile& operator=(const Meanwhile&) = delete;
  ~Meanwhile() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::thread thread_;
};

}  // namespace

Executable::Executable(const PlannedProgram& planned, const Gpu& gpu, Memory& memory)
    : program_(planned.shared_program()),
      gpu_(gpu),
      memory_(memory),
      steps_(program_->steps.size()),
      needs_(planned.needs()) {}

Executable::Executable(std::shared_ptr<const Program> program, const Means& means,
                       const CodeMaker& maker)
    : program_(std::move(program)),
      gpu_(*means.gpu),
      memory_(*means.memory),
      steps_(program_->steps.size()) {
  gpu_.use();
  PlannedProgram planned = plan(means, maker);
  needs_ = planned.needs();
  Texts texts;
  {
    const Phase phase("constants");
    take(planned, texts, origins_);
  }
  std::vector<const KernelText*> all;
  for (const KernelText& text : texts.texts) all.push_back(&text);
  const Phase phase("kernels");
  const auto codes = maker(gpu_, all);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    (*texts.slots[i].in)[texts.slots[i].index].code = codes[i];
  }
}

// Kernels are compiled while calls are planned, which may have to wait for a library: their code is
// there when it is asked for.
PlannedProgram Executable::plan(const Means& means, const CodeMaker& maker) const {
  const Phase phase("steps");
  PlannedProgram planned(program_);
  std::vector<const KernelText*> texts;
  planned.list_texts(texts);
  const Meanwhile compiles([&, outer = current_phase()] {
    const PhaseWithin within(outer);
    const Phase kernels("kernels");
    (void)maker(gpu_, texts);
  });
  const Phase calls("calls");
  planned.plan_calls(means);
  return planned;
}

void Executable::take(PlannedProgram& planned, Texts& texts, Origins& origins) {
  place_constants();
  const auto take_all = [&](std::vector<PlannedLaunch>& from, std::vector<ReadyLaunch>& to) {
    for (PlannedLaunch& launch : from) add_launch(texts, to, std::move(launch), origins);
  };
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    PlannedProgram::PlannedStep& step = planned.steps()[s];
    Ready& ready = steps_[s];
    take_all(step.launches, ready.launches);
    take_all(step.before, ready.before);
    take_all(step.after, ready.after);
    ready.plan = std::move(step.plan);
    ready.scratch = step.scratch;
    const auto* call = std::get_if<CallStep>(&program_->steps[s].what);
    if (call != nullptr && !ready.plan) ready.host_call.emplace(*program_, *call);
    for (const auto& body : step.bodies) {
      ready.bodies.emplace_back(new Executable(*body, gpu_, memory_));
      ready.bodies.back()->take(*body, texts, origins);
    }
  }
}

void Executable::place_constants() {
  constants_.resize(program_->buffers.size());
  for (std::size_t b = 0; b < constants_.size(); ++b) {
    const Buffer& buffer = program_->buffers[b];
    if (buffer.role != Buffer::Role::Constant) continue;
    constants_[b] = device::Array(memory_, buffer.bytes());
    constants_[b].copy_in(buffer.constant.data());
  }
}

void Executable::add_launch(Texts& texts, std::vector<ReadyLaunch>& to, PlannedLaunch launch,
                            Origins& origins) {
  const KernelText& text = launch.text;
  to.push_back({.code = nullptr,
                .blocks = static_cast<unsigned>(text.blocks),
                .threads = static_cast<unsigned>(text.threads),
                .shared = static_cast<unsigned>(text.shared_bytes),
                .origin = static_cast<unsigned>(origins.size()),
                .can_fault = launch.can_fault,
                .scratch = launch.scratch,
                .scratch_bytes = text.scratch_bytes,
                .pointers = text.pointers,
                .members = std::move(launch.members)});
  origins.push_back(launch.origin);
  texts.slots.push_back({&to, to.size() - 1});
  texts.texts.push_back(std::move(launch.text));
}

std::int64_t Executable::context_bytes() const {
  return aligned(program_->arena_bytes, ArrayAlignment) + scratch_bytes();
}

std::int64_t Executable::scratch_bytes() const { return context_extra_bytes(needs_); }

std::int64_t Executable::workspace_bytes() const { return context_bytes() + needs_.constant_bytes; }

void Executable::align_body(const ControlStep& control, const Executable& body,
                            Frame& frame) const {
  frame.aligned = aligned_copies(control, body.program());
  if (frame.aligned.empty()) return;
  frame.aligned_memory = device::Array(memory_, bytes_of(body.program(), frame.aligned));
  std::byte* next = frame.aligned_memory.data();
  for (AlignedCopy& copy : frame.aligned) {
    copy.at = next;
    next += bytes_of(body.program(), std::span(&copy, 1));
  }
}

Frame Executable::make_frame(std::byte* arena, std::byte* scratch, std::byte* seed) const {
  Frame frame;
  frame.scratch = scratch;
  for (std::size_t b = 0; b < program_->buffers.size(); ++b) {
    const Buffer& buffer = program_->buffers[b];
    std::byte* at = constants_[b].data();  // of others null
    if (buffer.role == Buffer::Role::Temporary) at = arena + buffer.offset;
    if (buffer.role == Buffer::Role::Seed) at = seed;
    frame.buffers.push_back(at);
  }
  frame.bodies.resize(steps_.size());
  frame.control.resize(steps_.size());
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    const auto* control = std::get_if<ControlStep>(&program_->steps[s].what);
    if (control == nullptr) continue;
    frame.control[s] = device::make_control_room(*control, memory_);
    std::byte* workspace = frame.buffers[static_cast<std::size_t>(control->workspace)];
    for (const auto& body : steps_[s].bodies) {
      frame.bodies[s].push_back(body->make_frame(workspace, scratch + steps_[s].scratch, seed));
      align_body(*control, *body, frame.bodies[s].back());
    }
  }
  return frame;
}

std::unique_ptr<device::Context> Executable::make_context() const {
  const Phase phase("context");
  auto context = std::make_unique<Context>(gpu_, memory_, program_->arena_bytes,
                                           needs_.scratch_bytes, context_bytes());
  context->frame = make_frame(context->arena.data(), context->scratch.data(), context->seed.data());
  return context;
}

// Has a pointer changed?
bool Executable::set_buffers(Context& context, const device::RunArguments& arguments) const {
  bool changed = false;
  const auto set = [&](BufferId b, std::byte* at) {
    std::byte*& held = context.frame.buffers[static_cast<std::size_t>(b)];
    changed = changed || held != at;
    held = at;
    check_internal(reinterpret_cast<std::uintptr_t>(at) % VectorBytes == 0,
                   "an array of a program for the GPU is not aligned to 16 bytes");
  };
  for (std::size_t k = 0; k < program_->inputs.size(); ++k) {
    set(program_->inputs[k], const_cast<std::byte*>(arguments.inputs[k]));
  }
  for (std::size_t k = 0; k < program_->outputs.size(); ++k) {
    set(program_->outputs[k], arguments.outputs[k]);
  }
  return changed;
}

// A run as a graph: the driver's answer to the last thing it was asked for.
Status Executable::make_graph(Context& context, const device::RunArguments& arguments) const {
  const Phase phase("graph");
  const Driver& driver = gpu_.driver();
  Graph_ graph = nullptr;
  Status status = driver.capture_begin(context.stream, CaptureRelaxed);
  if (status != 0) return status;
  try {
    OrderedCapture order(driver, context.stream);
    Runner(*this, context, arguments, &order).run();
  } catch (...) {
    driver.capture_end(context.stream, &graph);
    if (graph != nullptr) driver.graph_destroy(graph);
    throw;
  }
  status = driver.capture_end(context.stream, &graph);
  if (status != 0) return status;
  UpdateResult update;
  if (context.graph != nullptr && driver.graph_update(context.graph, graph, &update) != 0) {
    driver.graph_exec_destroy(context.graph);
    context.graph = nullptr;
  }
  if (context.graph == nullptr) {
    status = gpu_.with_room([&] { return driver.graph_instantiate(&context.graph, graph, 0); });
    if (status != 0) context.graph = nullptr;
  }
  driver.graph_destroy(graph);
  return status;
}

// False when the driver cannot have it as a graph: then it is run step by step from now on.
bool Executable::capture(Context& context, const device::RunArguments& arguments) const {
  try {
    context.graph_holds = make_graph(context, arguments) == 0;
  } catch (const DeviceError&) {
    context.graph_holds = false;
  } catch (const UserError& error) {
    if (error.code() != ErrorCode::OutOfMemory) throw;
    context.graph_holds = false;
  }
  context.never_capture = !context.graph_holds;
  return context.graph_holds;
}

void Executable::start(device::Context& given, const device::RunArguments& arguments) const {
  auto& context = static_cast<Context&>(given);
  gpu_.use();
  try {
    begin(context, arguments);
  } catch (...) {
    // What has been asked for must not work on arrays that are given back, nor leave its fault.
    context.abandon();
    throw;
  }
}

void Executable::begin(Context& context, const device::RunArguments& arguments) const {
  const bool changed = set_buffers(context, arguments);
  context.shared().seed = arguments.seed;
  if (changed) context.graph_holds = false;
  const bool again = !changed && context.has_run;
  context.has_run = true;
  // What is run once, or each time with other pointers, is not worth a graph.
  const bool replayed =
      arguments.observer == nullptr && is_captured() && again && !context.never_capture;
  if (replayed && (context.graph_holds || capture(context, arguments))) {
    throw_if_stopped();
    const Driver& driver = gpu_.driver();
    driver.check(gpu_.with_room([&] { return driver.graph_launch(context.graph, context.stream); }),
                 "run a program");
    return;
  }
  Runner(*this, context, arguments).run();
}

void Executable::fail_on_fault(Context& context) const {
  const Fault met = context.shared().fault;
  if (met.kind == 0) return;
  context.forget_fault();
  check_internal(met.origin < origins_.size(), "a fault of no launch");
  device::fail_launch({static_cast<loop::FaultKind>(met.kind), met.value, met.limit},
                      *origins_[met.origin]);
}

void Executable::finish(device::Context& given) const {
  auto& context = static_cast<Context&>(given);
  gpu_.use();
  context.wait("finish a program");
  fail_on_fault(context);
}

std::string_view Executable::served_by(std::size_t step) const {
  return cuda::served_by(program_->steps[step], steps_[step].plan);
}

const Executable* Executable::body(std::size_t step, std::size_t body) const {
  const auto& bodies = steps_[step].bodies;
  return body < bodies.size() ? bodies[body].get() : nullptr;
}

}  // namespace ricci::cuda
