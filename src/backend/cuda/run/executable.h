// A program made ready for the GPU: kernels compiled, constants there, every step a list of
// launches, copies and library calls on one stream. Runs with the same pointers as the one before
// are captured as a CUDA graph and replayed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ricci/compiler/device/executable.h"
#include "ricci/compiler/device/thread_pool.h"

#include "backend/cuda/run/code.h"
#include "backend/cuda/run/memory.h"
#include "backend/cuda/run/planned_program.h"
#include "device/control.h"
#include "device/reference_call.h"

namespace ricci::cuda {

/// The buffers of one program in one context.
struct Frame {
  std::vector<std::byte*> buffers;
  std::byte* scratch = nullptr;
  std::vector<std::vector<Frame>> bodies;    ///< per step, per body
  std::vector<device::ControlRoom> control;  ///< per step
  std::vector<AlignedCopy> aligned;          ///< of a body
  device::Array aligned_memory;
};

/// Room for one run at a time.
class Context final : public device::Context {
 public:
  /// `total` is what it takes of the GPU's memory when its frame is made, too.
  Context(const Gpu& gpu, Memory& memory, std::int64_t arena_bytes, std::int64_t scratch_bytes,
          std::int64_t total);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() override;
  [[nodiscard]] std::int64_t bytes() const noexcept override { return total_bytes; }
  /// What the host and the GPU tell each other.
  struct Shared {
    std::uint64_t seed = 0;
    Fault fault = {};
    std::uint32_t stop = 0;  ///< loops on the GPU end when they find it set
  };
  [[nodiscard]] Shared& shared() const { return pinned.as<Shared>(); }

  /// Waits for all that was asked for. UserError(stopped) when this thread is asked to stop
  /// meanwhile: loops end at their next look then, and the rest of what was asked for is done.
  void wait(const char* doing);
  /// The same after what went wrong: nothing is thrown, and nothing left behind.
  void abandon() noexcept;
  /// No fault is known any more when the next run begins.
  void forget_fault() noexcept;

  const Gpu& gpu;
  std::int64_t total_bytes;
  device::Array arena;
  device::Array scratch;
  device::Array seed;
  device::Array fault;
  Pinned pinned;
  Stream stream = nullptr;
  Frame frame;
  GraphExec graph = nullptr;
  bool graph_holds = false;  ///< it was captured with the buffers of the frame
  bool has_run = false;
  bool never_capture = false;  ///< it was tried, and the driver cannot
};

/// Gives the code of kernels, one per text, in order.
using CodeMaker = std::function<std::vector<std::shared_ptr<const LoadedKernel>>(
    const Gpu& gpu, std::span<const KernelText* const> texts)>;

class Executable final : public device::Executable {
 public:
  /// The GPU and the memory of `means` must outlive it.
  Executable(std::shared_ptr<const Program> program, const Means& means, const CodeMaker& maker);

  [[nodiscard]] const Program& program() const noexcept override { return *program_; }
  [[nodiscard]] std::int64_t context_bytes() const override;
  [[nodiscard]] std::int64_t workspace_bytes() const override;
  [[nodiscard]] std::int64_t scratch_bytes() const override;
  [[nodiscard]] std::unique_ptr<device::Context> make_context() const override;
  void start(device::Context& context, const device::RunArguments& arguments) const override;
  void finish(device::Context& context) const override;
  [[nodiscard]] std::string_view served_by(std::size_t step) const override;
  [[nodiscard]] const Executable* body(std::size_t step, std::size_t body) const override;
  /// Is a run replayed as one CUDA graph?
  [[nodiscard]] bool is_captured() const noexcept { return needs_.nodes <= MostNodes; }

 private:
  friend class Runner;
  /// A larger graph takes longer to make than its replays save.
  static constexpr double MostNodes = 1 << 15;

  struct ReadyLaunch {
    std::shared_ptr<const LoadedKernel> code;
    unsigned blocks = 1;
    unsigned threads = 1;
    unsigned shared = 0;
    unsigned origin = 0;
    bool can_fault = false;
    std::int64_t scratch = 0;  // where its own begins, in the program's
    std::int64_t scratch_bytes = 0;
    std::size_t pointers = 0;
    std::vector<std::size_t> members = {};  // of a step of kernels: its launches that it does
  };
  /// What a step needs besides the program's own description of it.
  struct Ready {
    std::vector<ReadyLaunch> launches = {};  // of a call: those of its plan, in order
    std::vector<ReadyLaunch> before = {};
    std::vector<ReadyLaunch> after = {};
    std::optional<CallPlan> plan = {};
    std::int64_t scratch = 0;  // of the plan, or of the bodies
    std::optional<device::ReferenceCall> host_call = {};
    std::vector<std::unique_ptr<Executable>> bodies = {};
  };
  struct Texts;
  using Origins = std::vector<const Origin*>;

  /// Of a body.
  Executable(const PlannedProgram& planned, const Gpu& gpu, Memory& memory);
  void take(PlannedProgram& planned, Texts& texts, Origins& origins);
  void add_launch(Texts& texts, std::vector<ReadyLaunch>& to, PlannedLaunch launch,
                  Origins& origins);
  [[nodiscard]] PlannedProgram plan(const Means& means, const CodeMaker& maker) const;
  void place_constants();

  [[nodiscard]] Frame make_frame(std::byte* arena, std::byte* scratch, std::byte* seed) const;
  void align_body(const ControlStep& control, const Executable& body, Frame& frame) const;
  void begin(Context& context, const device::RunArguments& arguments) const;
  bool set_buffers(Context& context, const device::RunArguments& arguments) const;
  bool capture(Context& context, const device::RunArguments& arguments) const;
  [[nodiscard]] Status make_graph(Context& context, const device::RunArguments& arguments) const;
  void fail_on_fault(Context& context) const;

  std::shared_ptr<const Program> program_;
  const Gpu& gpu_;
  Memory& memory_;
  std::vector<device::Array> constants_;  // per buffer
  std::vector<Ready> steps_;
  Needs needs_;
  Origins origins_;  // of all launches, bodies included; of the outermost program only
};

}  // namespace ricci::cuda
