// Runs what the bytes of a program describe, where touching memory that is not its own is a fault.
// What its kernels compute is machine code, which is not part of the bytes: here they do nothing.
// Calls, loops and branches do all they do in a program compiled ahead of time; and written-out
// loops are interpreted.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "ricci/compiler/device/thread_pool.h"
#include "ricci/compiler/schedule/cost.h"
#include "ricci/compiler/schedule/program.h"
#include "ricci/support/error.h"

#include "backend/cpu/run/executable.h"
#include "backend/cpu/run/tiling.h"
#include "backend/lir/loop.h"
#include "schedule/program_bytes.h"
#include "support/guarded_buffer.h"
#include "support/guarded_frame.h"

namespace ricci::testing {

/// Kernels and written-out loops that do nothing.
struct NoCode final : cpu::CodeSource {
  std::vector<cpu::KernelCode> kernels(std::span<const loop::Kernel> kernels) override {
    const auto nothing = [](void* const*, const cpu::TileRange*, cpu::Fault*) {};
    return std::vector<cpu::KernelCode>(kernels.size(), {nullptr, nothing});
  }
  cpu::LoopCode loop(const loop::WrittenLoop&) override {
    return {nullptr, [](void* const*, void* const*, const StopFlag*) {}};
  }
};

/// What a program takes to run, with the bodies of its loops.
struct ProgramSize {
  double bytes = 0;
  double work = 0;
  bool may_not_end = false;

  void add(const ricci::Program& program, double times = 1) {
    bytes += static_cast<double>(program.arena_bytes);
    for (const Buffer& b : program.buffers) bytes += static_cast<double>(b.bytes());
    for (const loop::Kernel& k : program.kernels)
      work += static_cast<double>(cpu::tile_count(k)) * times;
    for (const loop::Kernel& k : program.kernels) {
      for (const loop::Argument& a : k.arguments) bytes += static_cast<double>(a.elements) * 16;
    }
    for (const Step& step : program.steps) {
      work += (1 + estimate_cost(program, step).flops) * times;
      if (const auto* l = std::get_if<LoopStep>(&step.what)) {
        const double trips = times * trips_of(l->loop.plan);
        add(l->loop.body, trips);
        if (l->loop.condition) add(*l->loop.condition, trips);
      }
      const auto* control = std::get_if<ControlStep>(&step.what);
      if (control == nullptr) continue;
      const auto* plan = std::get_if<loop::LoopPlan>(&control->how);
      const double trips = plan == nullptr ? 1 : trips_of(*plan);
      work += trips * times;
      for (const auto& [role, body] : control->bodies) add(*body, times * std::max(trips, 1.0));
    }
  }
  void add(const loop::WrittenBody& body, double times) {
    work += times;
    for (const loop::Storage& s : body.storages) {
      bytes += static_cast<double>(s.elements) * 16;
      work += static_cast<double>(s.elements) * times;
    }
    for (const loop::WrittenItem& item : body.items) {
      double elements = times;
      for (const std::int64_t n : item.dims) elements *= static_cast<double>(n);
      work += elements;
    }
  }
  double trips_of(const loop::LoopPlan& plan) {
    may_not_end = may_not_end || !plan.most_trips;
    return static_cast<double>(plan.most_trips.value_or(1));
  }
  [[nodiscard]] bool is_small() const { return !may_not_end && bytes < 4e6 && work < 2e6; }
};

enum class StoredRun {
  Refused,  ///< the bytes are not a program
  Large,    ///< it would take long or much memory, or might not end
  Faulted,  ///< it reported a fault of its values
  Ran,
};

/// Numbers most programs can work with: ints are small, so that some are good indices.
inline void fill_input(std::span<std::byte> bytes, DType dtype, std::size_t number) {
  const auto size = static_cast<std::size_t>(size_of(dtype));
  std::ranges::fill(bytes, std::byte{0});
  for (std::size_t i = 0; i * size < bytes.size(); ++i) {
    std::byte* at = bytes.data() + i * size;
    if (is_int(dtype) || dtype == DType::Bool) {
      at[0] = static_cast<std::byte>((i + number) % 2);
    } else {  // the top byte of a float: about 1, or 0
      at[size - 1] = static_cast<std::byte>((i + number) % 3 == 0 ? 0x3F : 0);
    }
  }
}

/// Written-out loops element by element, each between arrays of exactly its operands' and results'
/// sizes. InternalError when one reaches outside an array.
inline void run_written_loops(const ricci::Program& program) {
  for (const Step& step : program.steps) {
    if (const auto* control = std::get_if<ControlStep>(&step.what)) {
      for (const auto& [role, body] : control->bodies) run_written_loops(*body);
    }
    const auto* l = std::get_if<LoopStep>(&step.what);
    if (l == nullptr) continue;
    std::vector<GuardedBuffer> held;
    const auto arrays = [&](const std::vector<BufferView>& views) {
      std::vector<lir::KernelArgument> out;
      for (const BufferView& v : views) {
        const std::int64_t bytes = *v.type.numel() * size_of(v.type.dtype);
        held.emplace_back(static_cast<std::size_t>(bytes), GuardedBuffer::Edge::End);
        fill_input(held.back().bytes(), v.type.dtype, held.size());
        out.push_back({v.buffer < 0 ? nullptr : held.back().data(), bytes});
      }
      return out;
    };
    const std::vector<lir::KernelArgument> operands = arrays(l->operands);
    GuardedBuffer room(static_cast<std::size_t>(lir::loop_room_bytes(l->loop)),
                       GuardedBuffer::Edge::End);
    lir::run_loop(l->loop, operands, arrays(l->results), room.bytes());
  }
}

/// Runs a program twice, with buffers that end and with buffers that begin at the edge of a page
/// nobody may touch. A run that steps over it does not return; InternalError when a claim of ours
/// does not hold.
inline StoredRun run_stored_program(std::span<const std::byte> bytes) {
  std::shared_ptr<const ricci::Program> program;
  try {
    program = std::make_shared<const ricci::Program>(schedule::program_from_bytes(bytes));
  } catch (const UserError&) {
    return StoredRun::Refused;
  }
  ProgramSize size;
  size.add(*program);
  if (!size.is_small()) return StoredRun::Large;
  static ThreadPool pool(1);
  try {
    run_written_loops(*program);
    const cpu::Executable executable(program, NoCode(), pool);
    if (executable.workspace_bytes() > (std::int64_t{1} << 26)) return StoredRun::Large;
    for (const auto edge : {GuardedBuffer::Edge::End, GuardedBuffer::Edge::Start}) {
      cpu::Context context(executable);
      const GuardedFrame frame(executable, context.frame(), edge);
      std::vector<GuardedBuffer> ports;
      const auto add_port = [&](BufferId id) {
        const Buffer& b = program->buffers[static_cast<std::size_t>(id)];
        ports.emplace_back(static_cast<std::size_t>(b.bytes()), edge);
        fill_input(ports.back().bytes(), b.dtype, ports.size());
        return ports.back().data();
      };
      std::vector<const std::byte*> inputs;
      std::vector<std::byte*> outputs;
      for (const BufferId id : program->inputs) {
        inputs.push_back(add_port(id));
        ports.back().make_read_only();
      }
      for (const BufferId id : program->outputs) outputs.push_back(add_port(id));
      device::run(executable, context, {inputs, outputs, 0, nullptr});
    }
  } catch (const UserError&) {
    return StoredRun::Faulted;
  }
  return StoredRun::Ran;
}

}  // namespace ricci::testing
