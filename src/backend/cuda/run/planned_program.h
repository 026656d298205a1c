// A program as a GPU serves it, as far as that needs none: the kernels of every step as text, the
// plans of its calls, and what a run takes. Executables are made of it; reports tell it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ricci/compiler/device/executable.h"

#include "backend/cuda/structured/call_plan.h"

namespace ricci::cuda {

/// A body's input or output that may lie where kernels cannot read it: they want 16 bytes.
struct AlignedCopy {
  BufferId buffer = -1;
  bool is_output = false;
  std::byte* at = nullptr;
};
/// Those of a body of this step, and the bytes they take together.
[[nodiscard]] std::vector<AlignedCopy> aligned_copies(const ControlStep& control,
                                                      const Program& body);
[[nodiscard]] std::int64_t bytes_of(const Program& body, std::span<const AlignedCopy> copies);

/// A kernel, and what is told of its faults.
struct PlannedLaunch {
  KernelText text;
  const Origin* origin = nullptr;
  /// Of a step of kernels: which of its launches it does, whose pointers it takes in this order.
  std::vector<std::size_t> members = {};
  bool joins = false;  ///< others may be done with it
  bool can_fault = false;
  std::int64_t scratch = 0;  ///< where its own begins, in that of the program; not of a call's plan
};

/// What a run takes, bodies included.
struct Needs {
  std::int64_t scratch_bytes = 0;
  std::int64_t spare_bytes = 0;  ///< of loops and branches: unwanted results, aligned copies
  std::int64_t constant_bytes = 0;
  double nodes = 0;  ///< of a graph; infinite where the host takes part
  bool seed = false;
  bool can_fault = false;
};

class PlannedProgram final : public device::Outline {
 public:
  /// Its kernels and loops. Calls are planned next: that may load a library and try products.
  explicit PlannedProgram(std::shared_ptr<const Program> program);
  void plan_calls(const Means& means);
  PlannedProgram(std::shared_ptr<const Program> program, const Means& means)
      : PlannedProgram(std::move(program)) {
    plan_calls(means);
  }

  struct PlannedStep {
    std::vector<PlannedLaunch> launches = {};  ///< of a call: those of its plan, in order
    std::vector<PlannedLaunch> before = {};
    std::vector<PlannedLaunch> after = {};
    std::optional<CallPlan> plan = {};  ///< none: no call, or the host's
    std::int64_t scratch = 0;           ///< where that of the plan, or of the bodies, begins
    std::vector<std::unique_ptr<PlannedProgram>> bodies = {};
  };
  [[nodiscard]] const std::shared_ptr<const Program>& shared_program() const { return program_; }
  /// Of the kernels that are planned, bodies included.
  void list_texts(std::vector<const KernelText*>& to) const;
  [[nodiscard]] std::vector<PlannedStep>& steps() { return steps_; }
  [[nodiscard]] const std::vector<PlannedStep>& steps() const { return steps_; }
  [[nodiscard]] const Needs& needs() const { return needs_; }

  [[nodiscard]] const Program& program() const noexcept override { return *program_; }
  [[nodiscard]] std::int64_t scratch_bytes() const override;
  [[nodiscard]] std::int64_t workspace_bytes() const override;
  [[nodiscard]] std::string_view served_by(std::size_t step) const override;
  [[nodiscard]] const PlannedProgram* body(std::size_t step, std::size_t body) const override;

 private:
  void plan_step(std::size_t step);
  void plan_call_step(const Step& step, PlannedStep& planned, const Means& means);
  void add_kernel(std::vector<PlannedLaunch>& to, const Launch& launch);
  void add_kernels(std::vector<PlannedLaunch>& to, const KernelStep& step);
  PlannedLaunch& add(std::vector<PlannedLaunch>& to, KernelText text, const Origin& origin);
  [[nodiscard]] std::int64_t place_scratch(std::int64_t bytes);
  void count_control(const ControlStep& control, PlannedStep& planned);

  std::shared_ptr<const Program> program_;
  std::vector<PlannedStep> steps_;
  std::int64_t next_scratch_ = 0;
  Needs needs_;
};

/// Of a context, what is no buffer of the program.
[[nodiscard]] std::int64_t context_extra_bytes(const Needs& needs);
/// How reports name what serves a step.
[[nodiscard]] std::string_view served_by(const Step& step, const std::optional<CallPlan>& plan);

}  // namespace ricci::cuda
