#include "backend/cuda/run/planned_program.h"

#include <algorithm>
#include <limits>

#include "ricci/support/error.h"

#include "backend/cuda/run/memory.h"
#include "device/control.h"
#include "support/align.h"

namespace ricci::cuda {
namespace {

constexpr double NeverCaptured = std::numeric_limits<double>::infinity();
constexpr const char* KernelName = "kernel";
constexpr const char* LoopName = "loop";

}  // namespace

// Operands of control steps lie where views of them begin, and rows behind each other.
std::vector<AlignedCopy> aligned_copies(const ControlStep& control, const Program& body) {
  const bool odd_views = std::ranges::any_of(control.operands, [](const BufferView& v) {
    return v.layout.offset * size_of(v.type.dtype) % VectorBytes != 0;
  });
  std::vector<AlignedCopy> copies;
  const auto add = [&](BufferId b, bool is_output, bool odd) {
    const std::int64_t bytes = body.buffers[static_cast<std::size_t>(b)].bytes();
    if (bytes == 0 || (!odd && bytes % VectorBytes == 0)) return;
    copies.push_back({b, is_output, nullptr});
  };
  for (const BufferId b : body.inputs) add(b, false, odd_views);
  for (const BufferId b : body.outputs) add(b, true, false);
  return copies;
}

std::int64_t bytes_of(const Program& body, std::span<const AlignedCopy> copies) {
  std::int64_t total = 0;
  for (const AlignedCopy& copy : copies) {
    const Buffer& buffer = body.buffers[static_cast<std::size_t>(copy.buffer)];
    total += aligned(buffer.bytes(), ArrayAlignment);
  }
  return total;
}

PlannedProgram::PlannedProgram(std::shared_ptr<const Program> program)
    : program_(std::move(program)), steps_(program_->steps.size()) {
  for (const Buffer& b : program_->buffers) {
    if (b.role == Buffer::Role::Seed) needs_.seed = true;
    if (b.role == Buffer::Role::Constant) {
      needs_.constant_bytes += aligned(b.bytes(), ArrayAlignment);
    }
  }
  for (std::size_t s = 0; s < steps_.size(); ++s) plan_step(s);
}

void PlannedProgram::plan_calls(const Means& means) {
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    const Step& step = program_->steps[s];
    if (std::holds_alternative<CallStep>(step.what)) plan_call_step(step, steps_[s], means);
    const auto* control = std::get_if<ControlStep>(&step.what);
    if (control == nullptr) continue;
    for (const auto& body : steps_[s].bodies) body->plan_calls(means);
    count_control(*control, steps_[s]);
  }
}

void PlannedProgram::list_texts(std::vector<const KernelText*>& to) const {
  for (const PlannedStep& step : steps_) {
    for (const auto* launches : {&step.before, &step.launches, &step.after}) {
      for (const PlannedLaunch& launch : *launches) to.push_back(&launch.text);
    }
    for (const auto& body : step.bodies) body->list_texts(to);
  }
}

PlannedLaunch& PlannedProgram::add(std::vector<PlannedLaunch>& to, KernelText text,
                                   const Origin& origin) {
  check_internal(text.blocks <= std::numeric_limits<std::int32_t>::max(),
                 "a kernel has more blocks than a launch can");
  needs_.nodes += 1;
  return to.emplace_back(PlannedLaunch{.text = std::move(text), .origin = &origin});
}

// Those that share it wait for each other: while there is room, each step has its own.
std::int64_t PlannedProgram::place_scratch(std::int64_t bytes) {
  constexpr std::int64_t ScratchOfItsOwn = std::int64_t{32} << 20;  // of all steps together
  const std::int64_t size = aligned(bytes, ArrayAlignment);
  if (next_scratch_ + size > ScratchOfItsOwn) next_scratch_ = 0;
  const std::int64_t at = next_scratch_;
  next_scratch_ += size;
  needs_.scratch_bytes = std::max(needs_.scratch_bytes, next_scratch_);
  return at;
}

void PlannedProgram::add_kernel(std::vector<PlannedLaunch>& to, const Launch& launch) {
  loop::Kernel unnamed = program_->kernels[launch.kernel];
  unnamed.name.clear();
  PlannedLaunch& made = add(to, print_kernel(unnamed, KernelName), launch.from);
  made.can_fault = can_fault(unnamed);
  made.scratch = place_scratch(made.text.scratch_bytes);
  needs_.can_fault = needs_.can_fault || made.can_fault;
}

// Those that are small and meet no faults together, as far as one launch has room for their
// pointers.
void PlannedProgram::add_kernels(std::vector<PlannedLaunch>& to, const KernelStep& step) {
  constexpr std::size_t MostPointers = 480;     // a launch takes 4096 bytes of them
  constexpr std::int64_t MostBlocks = 1 << 20;  // a kernel that fills the GPU gains nothing
  constexpr std::int64_t MostStaticBytes = 48 * 1024;
  const std::size_t first = to.size();
  for (std::size_t l = 0; l < step.launches.size(); ++l) {
    add_kernel(to, step.launches[l]);
    PlannedLaunch& made = to.back();
    made.members = {l};
    if (made.can_fault || !can_run_together(made.text)) continue;
    const auto joined = std::find_if(
        to.begin() + static_cast<std::ptrdiff_t>(first), to.end() - 1, [&](const auto& other) {
          return other.joins && other.text.threads == made.text.threads &&
                 other.text.pointers + made.text.pointers <= MostPointers &&
                 other.text.blocks + made.text.blocks <= MostBlocks &&
                 other.text.static_bytes + made.text.static_bytes <= MostStaticBytes;
        });
    made.joins = true;
    if (joined == to.end() - 1) continue;
    joined->members.push_back(l);
    joined->text.pointers += made.text.pointers;
    joined->text.blocks += made.text.blocks;
    joined->text.static_bytes += made.text.static_bytes;
    to.pop_back();
    needs_.nodes -= 1;
  }
  for (auto launch = to.begin() + static_cast<std::ptrdiff_t>(first); launch != to.end();
       ++launch) {
    if (launch->members.size() == 1) continue;
    std::vector<const loop::Kernel*> kernels;
    for (const std::size_t l : launch->members) {
      kernels.push_back(&program_->kernels[step.launches[l].kernel]);
    }
    launch->text = print_together(kernels, KernelName);
  }
}

void PlannedProgram::plan_step(std::size_t s) {
  const Step& step = program_->steps[s];
  PlannedStep& planned = steps_[s];
  if (const auto* kernels = std::get_if<KernelStep>(&step.what)) {
    add_kernels(planned.launches, *kernels);
  } else if (const auto* loop = std::get_if<LoopStep>(&step.what)) {
    PlannedLaunch& made = add(planned.launches, print_loop(loop->loop, LoopName), step);
    made.scratch = place_scratch(made.text.scratch_bytes);
    needs_.nodes += static_cast<double>(loop->loop.plan.zeroed.size());
  } else if (const auto* control = std::get_if<ControlStep>(&step.what)) {
    for (const auto& [role, program] : control->bodies) {
      planned.bodies.push_back(std::make_unique<PlannedProgram>(program));
    }
  }
}

void PlannedProgram::plan_call_step(const Step& step, PlannedStep& planned, const Means& means) {
  const auto& call = std::get<CallStep>(step.what);
  if (call.before) add_kernel(planned.before, *call.before);
  planned.plan = plan_call(*program_, call, means);
  if (call.after && !(planned.plan && planned.plan->has_after)) {
    add_kernel(planned.after, *call.after);
  }
  if (!planned.plan) {
    needs_.nodes = NeverCaptured;
    return;
  }
  for (const auto& part : planned.plan->parts) {
    if (const auto* launch = std::get_if<CallLaunch>(&part)) {
      add(planned.launches, launch->text, step).can_fault = planned.plan->can_fault;
    } else {
      needs_.nodes += 1;
    }
  }
  planned.scratch = place_scratch(planned.plan->scratch_bytes);
  needs_.can_fault = needs_.can_fault || planned.plan->can_fault;
}

void PlannedProgram::count_control(const ControlStep& control, PlannedStep& planned) {
  needs_.spare_bytes += device::control_spare_bytes(control);
  double inside = 0;
  std::int64_t scratch = 0;
  for (const auto& body : planned.bodies) {
    const Needs& its = body->needs_;
    scratch = std::max(scratch, its.scratch_bytes);
    needs_.spare_bytes +=
        its.spare_bytes + bytes_of(body->program(), aligned_copies(control, body->program()));
    needs_.constant_bytes += its.constant_bytes;
    needs_.seed = needs_.seed || its.seed;
    needs_.can_fault = needs_.can_fault || its.can_fault;
    inside += its.nodes;
  }
  planned.scratch = place_scratch(scratch);
  const auto* plan = std::get_if<loop::LoopPlan>(&control.how);
  if (plan == nullptr || plan->conditional || !plan->most_trips) {
    needs_.nodes = NeverCaptured;
    return;
  }
  const auto copies = static_cast<double>(plan->body_inputs() + plan->body_outputs());
  needs_.nodes += static_cast<double>(*plan->most_trips) * (inside + copies) + copies;
}

// The seed and the fault are arrays of their own.
std::int64_t context_extra_bytes(const Needs& needs) {
  return aligned(needs.scratch_bytes, ArrayAlignment) + needs.spare_bytes + 2 * ArrayAlignment;
}

std::int64_t PlannedProgram::scratch_bytes() const { return context_extra_bytes(needs_); }

std::int64_t PlannedProgram::workspace_bytes() const {
  return aligned(program_->arena_bytes, ArrayAlignment) + scratch_bytes() + needs_.constant_bytes;
}

std::string_view served_by(const Step& step, const std::optional<CallPlan>& plan) {
  if (std::holds_alternative<KernelStep>(step.what)) return "kernel";
  if (std::holds_alternative<LoopStep>(step.what)) return "loop";
  if (!std::holds_alternative<CallStep>(step.what)) return "control";
  return plan ? plan->how : "host call";
}

std::string_view PlannedProgram::served_by(std::size_t step) const {
  return cuda::served_by(program_->steps[step], steps_[step].plan);
}

const PlannedProgram* PlannedProgram::body(std::size_t step, std::size_t body) const {
  const auto& bodies = steps_[step].bodies;
  return body < bodies.size() ? bodies[body].get() : nullptr;
}

}  // namespace ricci::cuda
