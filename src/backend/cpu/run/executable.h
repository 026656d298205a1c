// A program made ready to run on this machine: kernels compiled, calls prepared. It is immutable;
// what changes while it runs is in a context, one per thread that runs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ricci/compiler/device/executable.h"
#include "ricci/compiler/device/memory.h"
#include "ricci/compiler/device/thread_pool.h"
#include "ricci/compiler/schedule/program.h"

#include "backend/cpu/run/call_kernel.h"
#include "backend/cpu/run/code_source.h"
#include "device/control.h"

namespace ricci::cpu {

class Executable;

/// The buffers of one program in one context, and what its launches are handed.
struct Frame {
  std::vector<std::byte*> buffers;
  std::vector<void*> arguments;              ///< of all launches
  bool arguments_hold = false;               ///< they are those of the buffers
  std::vector<std::byte*> operands;          ///< room for the operands and results of any call
  std::vector<std::vector<Frame>> bodies;    ///< per step, per body
  std::vector<device::ControlRoom> control;  ///< per step
  device::Array kept;         ///< what calls make of what stays the same in all trips of a loop
  bool kept_is_made = false;  ///< in an earlier trip
};

/// Room for one run at a time.
class Context final : public device::Context {
 public:
  explicit Context(const Executable& executable);
  [[nodiscard]] Frame& frame() noexcept { return frame_; }
  [[nodiscard]] std::byte* scratch() noexcept { return scratch_; }
  void set_seed(std::uint64_t seed) noexcept { seed_ = seed; }
  [[nodiscard]] std::int64_t bytes() const noexcept override { return memory_.bytes(); }

 private:
  device::Array memory_;
  std::byte* scratch_ = nullptr;
  std::uint64_t seed_ = 0;
  Frame frame_;
};

class Executable final : public device::Executable {
 public:
  /// Runs on the threads of `pool`, which must outlive it.
  Executable(std::shared_ptr<const Program> program, CodeSource& code, ThreadPool& pool);
  Executable(std::shared_ptr<const Program> program, CodeSource&& code, ThreadPool& pool)
      : Executable(std::move(program), code, pool) {}
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;
  ~Executable() override;

  [[nodiscard]] const Program& program() const noexcept override { return *program_; }
  [[nodiscard]] std::int64_t context_bytes() const override;
  [[nodiscard]] std::int64_t workspace_bytes() const override;
  [[nodiscard]] std::int64_t scratch_bytes() const noexcept override { return scratch_bytes_; }
  /// Also has the threads take the bytes they need, so that no run does.
  [[nodiscard]] std::unique_ptr<device::Context> make_context() const override;
  void start(device::Context& context, const device::RunArguments& arguments) const override;
  void finish(device::Context& /*context*/) const override {}  // nothing runs ahead
  [[nodiscard]] std::string_view served_by(std::size_t step) const override;
  [[nodiscard]] std::string_view served_where_not_finite(std::size_t step) const override;
  [[nodiscard]] const Executable* body(std::size_t step, std::size_t body) const override;

 private:
  friend class Context;
  friend class Runner;
  struct ReadyLaunch;
  struct ReadyLaunches;
  struct Ready;
  /// The body of a loop, of the buffers of which some stay the same in all trips.
  Executable(std::shared_ptr<const Program> program, CodeSource& code, ThreadPool& pool,
             const SameBuffers& same);
  ReadyLaunch prepare(const Launch& launch, const KernelCode& code);
  ReadyLaunches prepare(std::span<const Launch> launches, std::span<const KernelCode> code);
  void prepare_frame(Frame& frame, std::byte* arena, std::byte* seed) const;
  void reserve_threads() const;
  void run(Context& context, const device::RunArguments& arguments) const;

  std::shared_ptr<const Program> program_;
  ThreadPool& pool_;
  std::vector<Ready> steps_;
  std::int64_t scratch_bytes_ = 0;
  std::int64_t thread_bytes_ = 0;  ///< each thread needs for the rows of kernels
  std::int64_t spare_bytes_ = 0;   ///< bodies need for results nobody wants, and what they keep
  std::int64_t kept_bytes_ = 0;    ///< of those, what its own calls keep
  std::size_t arguments_ = 0;      ///< of all launches
  bool only_compiled_ = true;      ///< all steps, those of bodies included, are compiled kernels
};

}  // namespace ricci::cpu
