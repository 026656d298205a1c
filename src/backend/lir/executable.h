// A program that is run as it stands: steps in order, kernels element by element, calls by the
// reference's kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "ricci/compiler/device/executable.h"

#include "backend/lir/memory.h"
#include "device/control.h"
#include "device/faults.h"
#include "device/reference_call.h"

namespace ricci::lir {

/// Where temporaries are put.
enum class Placement : std::uint8_t {
  AsPlanned,  ///< in one arena, at their offsets
  Apart,      ///< in arrays of their own: what the plan makes share a place does not
};

/// The buffers of one program in one context.
struct Frame {
  std::vector<std::byte*> buffers;
  std::vector<device::Array> apart;          ///< temporaries with arrays of their own
  std::vector<std::vector<Frame>> bodies;    ///< per step, per body
  std::vector<device::ControlRoom> control;  ///< per step
  std::vector<device::Array> loops;          ///< per step: the arrays of a written-out loop
};

/// Room for one run at a time, and what the run has met.
class Context final : public device::Context {
 public:
  Context(Memory& memory, std::int64_t arena_bytes)
      : arena(memory, arena_bytes), seed(memory, sizeof(std::uint64_t)) {}
  [[nodiscard]] std::int64_t bytes() const noexcept override { return arena.bytes(); }

  /// The fault of a kernel, and whose it is: recorded by the step, told by `finish`.
  struct Fault {
    device::KernelFault met;
    const Origin* launch = nullptr;
  };

  device::Array arena;
  device::Array seed;  ///< the run's
  Frame frame;
  std::optional<Fault> fault = {};
};

class Executable final : public device::Executable {
 public:
  /// `memory` must outlive it.
  Executable(std::shared_ptr<const Program> program, Memory& memory, Placement placement);

  [[nodiscard]] const Program& program() const noexcept override { return *program_; }
  [[nodiscard]] std::int64_t context_bytes() const override { return program_->arena_bytes; }
  [[nodiscard]] std::int64_t workspace_bytes() const override;
  [[nodiscard]] std::int64_t scratch_bytes() const override { return 0; }
  [[nodiscard]] std::unique_ptr<device::Context> make_context() const override;
  /// Throws what calls report; an index out of range is kept for `finish`.
  void start(device::Context& context, const device::RunArguments& arguments) const override;
  void finish(device::Context& context) const override;
  [[nodiscard]] std::string_view served_by(std::size_t step) const override;
  [[nodiscard]] const Executable* body(std::size_t step, std::size_t body) const override;

 private:
  friend class Runner;
  /// What a step needs besides the program's own description of it.
  struct Ready {
    std::optional<device::ReferenceCall> call = {};
    std::vector<std::unique_ptr<Executable>> bodies = {};
  };
  [[nodiscard]] Frame make_frame(std::byte* arena, std::byte* seed) const;
  [[nodiscard]] std::int64_t spare_bytes() const;

  std::shared_ptr<const Program> program_;
  Memory& memory_;
  Placement placement_;
  std::vector<device::Array> constants_;  // per buffer
  std::vector<Ready> steps_;
};

}  // namespace ricci::lir
