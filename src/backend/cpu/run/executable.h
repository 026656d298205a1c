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

#include "ricci/device/thread_pool.h"
#include "ricci/schedule/program.h"

#include "backend/cpu/run/call_kernel.h"
#include "backend/cpu/run/code_source.h"

namespace ricci::cpu {

class Executable;

/// What a loop or branch keeps while it runs.
struct ControlRoom {
  std::vector<std::byte*> state;  ///< where the carries are
  /// Per body and output: room for one that nobody wants; null for others.
  std::vector<std::vector<std::byte*>> spare;
  std::vector<std::byte> memory;
};

/// The buffers of one program in one context, and what its launches are handed.
struct Frame {
  std::vector<std::byte*> buffers;
  std::vector<void*> arguments;            ///< room for those of any step
  std::vector<std::byte*> operands;        ///< room for the operands and results of any call
  std::vector<std::vector<Frame>> bodies;  ///< per step, per body
  std::vector<ControlRoom> control;        ///< per step
};

/// Room for one run at a time.
class Context {
 public:
  explicit Context(const Executable& executable);
  /// How much memory one takes.
  [[nodiscard]] static std::int64_t bytes_for(const Executable& executable);
  [[nodiscard]] Frame& frame() noexcept { return frame_; }
  [[nodiscard]] std::byte* scratch() noexcept { return scratch_; }
  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }

 private:
  struct Free {
    void operator()(std::byte* p) const noexcept;
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::byte* scratch_ = nullptr;
  std::int64_t bytes_ = 0;
  Frame frame_;
};

/// Called around every step; for profiles and the search for the first non-finite value.
struct StepObserver {
  virtual ~StepObserver() = default;
  virtual void before(const Program& program, std::size_t step, const Frame& frame) = 0;
  virtual void after(const Program& program, std::size_t step, const Frame& frame) = 0;
};

struct RunArguments {
  std::span<const std::byte* const> inputs;
  std::span<std::byte* const> outputs;
  std::uint64_t seed = 0;
  StepObserver* observer = nullptr;
};

/// Structured ops with kernels of their own here; others are expanded.
[[nodiscard]] bool claims(const Graph& graph, const Node& node);
/// Is there a kernel for a call, besides the reference one?
[[nodiscard]] bool has_kernel(const Graph& graph, const Node& node);

class Executable {
 public:
  Executable(std::shared_ptr<const Program> program, CodeSource& code);
  Executable(std::shared_ptr<const Program> program, CodeSource&& code)
      : Executable(std::move(program), code) {}
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;
  ~Executable();

  [[nodiscard]] const Program& program() const noexcept { return *program_; }
  [[nodiscard]] std::int64_t scratch_bytes() const noexcept { return scratch_bytes_; }
  /// Bytes each thread needs for the rows of kernels, and control flow for results nobody wants.
  [[nodiscard]] std::int64_t thread_bytes() const noexcept { return thread_bytes_; }
  [[nodiscard]] std::int64_t spare_bytes() const noexcept { return spare_bytes_; }
  /// Has the threads take their bytes now, so that no run does.
  void reserve_threads(ThreadPool& pool) const;
  void run(Context& context, ThreadPool& pool, const RunArguments& arguments) const;
  /// How each step is served, for reports.
  [[nodiscard]] std::string_view how(std::size_t step) const;
  /// Is a loop's body part of the loop's own function?
  [[nodiscard]] bool is_written_out(std::size_t step) const;
  /// The body of a control step that is not written out.
  [[nodiscard]] const Executable& body(std::size_t step, std::size_t body) const;

 private:
  friend class Context;
  friend class Runner;
  struct ReadyLaunch;
  struct ReadyLaunches;
  struct Ready;
  ReadyLaunch prepare(const Launch& launch, const KernelCode& code);
  ReadyLaunches prepare(std::span<const Launch> launches, std::span<const KernelCode> code,
                        std::size_t first_argument);
  void prepare_frame(Frame& frame, std::byte* arena) const;

  std::shared_ptr<const Program> program_;
  std::vector<Ready> steps_;
  std::int64_t scratch_bytes_ = 0;
  std::int64_t thread_bytes_ = 0;
  std::int64_t spare_bytes_ = 0;
  std::size_t most_arguments_ = 0;  ///< of one step
};

}  // namespace ricci::cpu
