#include "backend/cuda/run/executable.h"

#include <algorithm>
#include <limits>

#include "ricci/support/error.h"
#include "ricci/support/stop.h"

#include "backend/cuda/run/run.h"
#include "device/faults.h"
#include "support/align.h"

namespace ricci::cuda {
namespace {

constexpr double NeverCaptured = std::numeric_limits<double>::infinity();
constexpr std::int64_t VectorBytes = 16;  // what kernels read at a time
constexpr const char* KernelName = "kernel";
constexpr const char* LoopName = "loop";

bool can_fault(const loop::Kernel& kernel) {
  const auto checked = [](const loop::Access& access) {
    return std::ranges::any_of(access.terms, [](const loop::Term& t) { return !t.clamp; });
  };
  bool any = std::ranges::any_of(kernel.code, loop::is_partial);
  loop::for_each_access(kernel, [&](const loop::Access& access) { any = any || checked(access); });
  return any;
}

}  // namespace

/// Texts of all kernels of a program and its bodies, and where their code goes.
struct Executable::Texts {
  struct Slot {
    std::vector<ReadyLaunch>* in = nullptr;
    std::size_t index = 0;
  };
  std::vector<std::unique_ptr<KernelText>> texts;
  std::vector<Slot> slots;
};

Executable::Executable(std::shared_ptr<const Program> program, const Gpu& gpu, Memory& memory)
    : program_(std::move(program)), gpu_(gpu), memory_(memory), steps_(program_->steps.size()) {}

Executable::Executable(std::shared_ptr<const Program> program, const Gpu& gpu, Memory& memory,
                       ThreadPool& pool, const CodeFolder& folder)
    : Executable(std::move(program), gpu, memory) {
  gpu_.use();
  prepare(pool, folder);
}

void Executable::prepare(ThreadPool& pool, const CodeFolder& folder) {
  Texts texts;
  collect(texts, origins_);
  std::vector<const KernelText*> all;
  for (const auto& text : texts.texts) all.push_back(text.get());
  const auto codes = compile_all(gpu_, all, pool, folder);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    (*texts.slots[i].in)[texts.slots[i].index].code = codes[i];
  }
}

void Executable::collect(Texts& texts, Origins& origins) {
  place_constants();
  for (const Buffer& b : program_->buffers) {
    if (b.role == Buffer::Role::Seed) needs_.seed = true;
  }
  for (std::size_t s = 0; s < steps_.size(); ++s) collect_step(s, texts, origins);
}

void Executable::place_constants() {
  constants_.resize(program_->buffers.size());
  for (std::size_t b = 0; b < constants_.size(); ++b) {
    const Buffer& buffer = program_->buffers[b];
    if (buffer.role != Buffer::Role::Constant) continue;
    constants_[b] = device::Array(memory_, buffer.bytes());
    needs_.constant_bytes += aligned(buffer.bytes(), ArrayAlignment);
    constants_[b].copy_in(buffer.constant.data());
  }
}

void Executable::add_launch(Texts& texts, std::vector<ReadyLaunch>& to, KernelText text,
                            const Origin& origin, Origins& origins) {
  check_internal(text.blocks <= std::numeric_limits<std::int32_t>::max(),
                 "a kernel has more blocks than a launch can");
  needs_.scratch_bytes = std::max(needs_.scratch_bytes, text.scratch_bytes);
  needs_.nodes += 1;
  to.push_back({.code = nullptr,
                .blocks = static_cast<unsigned>(text.blocks),
                .threads = static_cast<unsigned>(text.threads),
                .shared = static_cast<unsigned>(text.shared_bytes),
                .origin = static_cast<unsigned>(origins.size()),
                .pointers = text.pointers});
  origins.push_back(&origin);
  texts.slots.push_back({&to, to.size() - 1});
  texts.texts.push_back(std::make_unique<KernelText>(std::move(text)));
}

void Executable::collect_step(std::size_t s, Texts& texts, Origins& origins) {
  const Step& step = program_->steps[s];
  Ready& ready = steps_[s];
  const auto add_kernel = [&](std::vector<ReadyLaunch>& to, const Launch& launch) {
    const loop::Kernel& kernel = program_->kernels[launch.kernel];
    needs_.can_fault = needs_.can_fault || can_fault(kernel);
    add_launch(texts, to, print_kernel(kernel, KernelName), launch.from, origins);
  };
  if (const auto* kernels = std::get_if<KernelStep>(&step.what)) {
    for (const Launch& launch : kernels->launches) add_kernel(ready.launches, launch);
  } else if (const auto* loop = std::get_if<LoopStep>(&step.what)) {
    add_launch(texts, ready.launches, print_loop(loop->loop, LoopName), step, origins);
    needs_.nodes += static_cast<double>(loop->loop.plan.zeroed.size());
  } else if (const auto* call = std::get_if<CallStep>(&step.what)) {
    if (call->before) add_kernel(ready.before, *call->before);
    if (call->after) add_kernel(ready.after, *call->after);
    ready.plan = plan_call(*program_, *call, &gpu_);
    if (!ready.plan) {
      ready.host_call.emplace(*program_, *call);
      needs_.nodes = NeverCaptured;
      return;
    }
    for (const auto& part : ready.plan->parts) {
      needs_.nodes += 1;
      if (const auto* launch = std::get_if<CallLaunch>(&part)) {
        add_launch(texts, ready.launches, launch->text, step, origins);
      }
    }
    needs_.scratch_bytes = std::max(needs_.scratch_bytes, ready.plan->scratch_bytes);
    needs_.can_fault = needs_.can_fault || ready.plan->can_fault;
  } else {
    const auto& control = std::get<ControlStep>(step.what);
    for (const auto& [role, program] : control.bodies) {
      std::unique_ptr<Executable> body(new Executable(program, gpu_, memory_));
      body->collect(texts, origins);
      ready.bodies.push_back(std::move(body));
    }
    count_control(control, ready);
  }
}

void Executable::count_control(const ControlStep& control, const Ready& ready) {
  needs_.spare_bytes += device::control_spare_bytes(control);
  double inside = 0;
  for (const auto& body : ready.bodies) {
    needs_.scratch_bytes = std::max(needs_.scratch_bytes, body->needs_.scratch_bytes);
    needs_.spare_bytes += body->needs_.spare_bytes + body->bytes_of(body->aligned_copies(control));
    needs_.constant_bytes += body->needs_.constant_bytes;
    needs_.seed = needs_.seed || body->needs_.seed;
    needs_.can_fault = needs_.can_fault || body->needs_.can_fault;
    inside += body->needs_.nodes;
  }
  const auto* plan = std::get_if<loop::LoopPlan>(&control.how);
  if (plan == nullptr || plan->conditional || !plan->most_trips) {
    needs_.nodes = NeverCaptured;
    return;
  }
  const auto copies = static_cast<double>(plan->body_inputs() + plan->body_outputs());
  needs_.nodes += static_cast<double>(*plan->most_trips) * (inside + copies) + copies;
}

std::int64_t Executable::context_bytes() const {
  return aligned(program_->arena_bytes, ArrayAlignment) + scratch_bytes();
}

// The seed and the fault are arrays of their own.
std::int64_t Executable::scratch_bytes() const {
  return aligned(needs_.scratch_bytes, ArrayAlignment) + needs_.spare_bytes + 2 * ArrayAlignment;
}

std::int64_t Executable::workspace_bytes() const { return context_bytes() + needs_.constant_bytes; }

// Of a body: operands of control steps lie where views of them begin, and rows behind each other.
std::vector<AlignedCopy> Executable::aligned_copies(const ControlStep& control) const {
  const bool odd_views = std::ranges::any_of(control.operands, [](const BufferView& v) {
    return v.layout.offset * size_of(v.type.dtype) % VectorBytes != 0;
  });
  std::vector<AlignedCopy> copies;
  const auto add = [&](BufferId b, bool is_output, bool odd) {
    const std::int64_t bytes = program_->buffers[static_cast<std::size_t>(b)].bytes();
    if (bytes == 0 || (!odd && bytes % VectorBytes == 0)) return;
    copies.push_back({b, is_output, nullptr});
  };
  for (const BufferId b : program_->inputs) add(b, false, odd_views);
  for (const BufferId b : program_->outputs) add(b, true, false);
  return copies;
}

std::int64_t Executable::bytes_of(std::span<const AlignedCopy> copies) const {
  std::int64_t total = 0;
  for (const AlignedCopy& copy : copies) {
    const Buffer& buffer = program_->buffers[static_cast<std::size_t>(copy.buffer)];
    total += aligned(buffer.bytes(), ArrayAlignment);
  }
  return total;
}

void Executable::align_body(const ControlStep& control, const Executable& body,
                            Frame& frame) const {
  frame.aligned = body.aligned_copies(control);
  if (frame.aligned.empty()) return;
  frame.aligned_memory = device::Array(memory_, body.bytes_of(frame.aligned));
  std::byte* next = frame.aligned_memory.data();
  for (AlignedCopy& copy : frame.aligned) {
    copy.at = next;
    next += body.bytes_of(std::span(&copy, 1));
  }
}

Frame Executable::make_frame(std::byte* arena, std::byte* seed) const {
  Frame frame;
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
      frame.bodies[s].push_back(body->make_frame(workspace, seed));
      align_body(*control, *body, frame.bodies[s].back());
    }
  }
  return frame;
}

std::unique_ptr<device::Context> Executable::make_context() const {
  auto context = std::make_unique<Context>(gpu_, memory_, program_->arena_bytes,
                                           needs_.scratch_bytes, context_bytes());
  context->frame = make_frame(context->arena.data(), context->seed.data());
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

void Executable::enqueue(Context& context, const device::RunArguments& arguments) const {
  const Driver& driver = gpu_.driver();
  if (needs_.seed) {
    driver.check(driver.copy_in(address(context.seed.data()), &context.shared().seed,
                                sizeof(std::uint64_t), context.stream),
                 "take the seed");
  }
  Runner(*this, context, arguments).run(*this, context.frame);
  if (needs_.can_fault) {
    driver.check(driver.copy_out(&context.shared().fault, address(context.fault.data()),
                                 sizeof(Fault), context.stream),
                 "tell of faults");
  }
}

// A run as a graph: the driver's answer to the last thing it was asked for.
Status Executable::make_graph(Context& context, const device::RunArguments& arguments) const {
  const Driver& driver = gpu_.driver();
  Graph_ graph = nullptr;
  Status status = driver.capture_begin(context.stream, CaptureRelaxed);
  if (status != 0) return status;
  try {
    enqueue(context, arguments);
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
  enqueue(context, arguments);
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
  const Step& s = program_->steps[step];
  if (std::holds_alternative<KernelStep>(s.what)) return "kernel";
  if (std::holds_alternative<LoopStep>(s.what)) return "loop";
  if (!std::holds_alternative<CallStep>(s.what)) return "control";
  return steps_[step].plan ? steps_[step].plan->how : "host call";
}

const Executable* Executable::body(std::size_t step, std::size_t body) const {
  const auto& bodies = steps_[step].bodies;
  return body < bodies.size() ? bodies[body].get() : nullptr;
}

}  // namespace ricci::cuda
