#include "backend/lir/executable.h"

#include "backend/lir/loop.h"
#include "backend/lir/run.h"

namespace ricci::lir {

Executable::Executable(std::shared_ptr<const Program> program, Memory& memory, Placement placement)
    : program_(std::move(program)),
      memory_(memory),
      placement_(placement),
      constants_(program_->buffers.size()) {
  for (std::size_t b = 0; b < constants_.size(); ++b) {
    const Buffer& buffer = program_->buffers[b];
    if (buffer.role != Buffer::Role::Constant) continue;
    constants_[b] = device::Array(memory_, buffer.bytes());
    constants_[b].copy_in(buffer.constant.data());
  }
  for (const Step& step : program_->steps) {
    Ready& ready = steps_.emplace_back();
    if (const auto* call = std::get_if<CallStep>(&step.what)) ready.call.emplace(*program_, *call);
    const auto* control = std::get_if<ControlStep>(&step.what);
    if (control == nullptr) continue;
    for (const auto& [role, body] : control->bodies) {
      ready.bodies.push_back(std::make_unique<Executable>(body, memory_, placement_));
    }
  }
}

// Of results that nobody wants, in loops and branches, and of the arrays of written-out loops.
std::int64_t Executable::spare_bytes() const {
  std::int64_t bytes = 0;
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    const auto* control = std::get_if<ControlStep>(&program_->steps[s].what);
    if (control != nullptr) bytes += device::control_spare_bytes(*control);
    const auto* loop = std::get_if<LoopStep>(&program_->steps[s].what);
    if (loop != nullptr) bytes += loop_room_bytes(loop->loop);
    for (const auto& body : steps_[s].bodies) bytes += body->spare_bytes();
  }
  return bytes;
}

std::int64_t Executable::workspace_bytes() const { return context_bytes() + spare_bytes(); }

Frame Executable::make_frame(std::byte* arena, std::byte* seed) const {
  Frame frame;
  for (std::size_t b = 0; b < program_->buffers.size(); ++b) {
    const Buffer& buffer = program_->buffers[b];
    std::byte* at = constants_[b].data();  // of others null
    if (buffer.role == Buffer::Role::Temporary && placement_ == Placement::Apart) {
      at = frame.apart.emplace_back(memory_, buffer.bytes()).data();
    } else if (buffer.role == Buffer::Role::Temporary) {
      at = arena + buffer.offset;
    } else if (buffer.role == Buffer::Role::Seed) {
      at = seed;
    }
    frame.buffers.push_back(at);
  }
  frame.bodies.resize(steps_.size());
  frame.control.resize(steps_.size());
  frame.loops.resize(steps_.size());
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    if (const auto* loop = std::get_if<LoopStep>(&program_->steps[s].what)) {
      frame.loops[s] = device::Array(memory_, loop_room_bytes(loop->loop));
    }
    const auto* control = std::get_if<ControlStep>(&program_->steps[s].what);
    if (control == nullptr) continue;
    frame.control[s] = device::make_control_room(*control, memory_);
    std::byte* workspace = frame.buffers[static_cast<std::size_t>(control->workspace)];
    for (const auto& body : steps_[s].bodies) {
      frame.bodies[s].push_back(body->make_frame(workspace, seed));
    }
  }
  return frame;
}

std::unique_ptr<device::Context> Executable::make_context() const {
  auto context = std::make_unique<Context>(memory_, program_->arena_bytes);
  context->frame = make_frame(context->arena.data(), context->seed.data());
  return context;
}

void Executable::start(device::Context& given, const device::RunArguments& arguments) const {
  auto& context = static_cast<Context&>(given);
  const auto set = [&](BufferId b, std::byte* at, std::string_view what) {
    const auto index = static_cast<std::size_t>(b);
    memory_.require_own(at, program_->buffers[index].bytes(), what);
    context.frame.buffers[index] = at;
  };
  for (std::size_t k = 0; k < program_->inputs.size(); ++k) {
    set(program_->inputs[k], const_cast<std::byte*>(arguments.inputs[k]), "an input");
  }
  for (std::size_t k = 0; k < program_->outputs.size(); ++k) {
    set(program_->outputs[k], arguments.outputs[k], "an output");
  }
  // What an earlier run has left must not matter.
  memory_.scramble(context.arena.data(), context.arena.bytes());
  context.seed.copy_in(reinterpret_cast<const std::byte*>(&arguments.seed));
  context.fault.reset();
  Runner(context, arguments).run(*this, context.frame);
}

void Executable::finish(device::Context& given) const {
  const auto& context = static_cast<const Context&>(given);
  if (context.fault) device::fail_launch(context.fault->met, *context.fault->launch);
}

std::string_view Executable::served_by(std::size_t step) const {
  const Step& s = program_->steps[step];
  if (std::holds_alternative<KernelStep>(s.what)) return "kernel";
  if (std::holds_alternative<LoopStep>(s.what)) return "loop";
  return std::holds_alternative<CallStep>(s.what) ? "host call" : "control";
}

const Executable* Executable::body(std::size_t step, std::size_t body) const {
  const auto& bodies = steps_[step].bodies;
  return body < bodies.size() ? bodies[body].get() : nullptr;
}

}  // namespace ricci::lir
