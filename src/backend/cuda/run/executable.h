// A program made ready for the GPU: kernels compiled, constants there, every step a list of
// launches, copies and library calls on one stream. Runs with the same pointers as the one before
// are captured as a CUDA graph and replayed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ricci/compiler/device/executable.h"
#include "ricci/compiler/device/thread_pool.h"

#include "backend/cuda/run/code.h"
#include "backend/cuda/run/memory.h"
#include "backend/cuda/structured/call_plan.h"
#include "device/control.h"
#include "device/reference_call.h"

namespace ricci::cuda {

/// A body's input or output that may lie where kernels cannot read it: they want 16 bytes.
struct AlignedCopy {
  BufferId buffer = -1;
  bool is_output = false;
  std::byte* at = nullptr;
};

/// The buffers of one program in one context.
struct Frame {
  std::vector<std::byte*> buffers;
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

class Executable final : public device::Executable {
 public:
  /// `gpu`, `memory` and `pool` must outlive it.
  Executable(std::shared_ptr<const Program> program, const Gpu& gpu, Memory& memory,
             ThreadPool& pool, const CodeFolder& folder);

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
    std::size_t pointers = 0;
  };
  /// What a step needs besides the program's own description of it.
  struct Ready {
    std::vector<ReadyLaunch> launches = {};  // of a call: those of its plan, in order
    std::vector<ReadyLaunch> before = {};
    std::vector<ReadyLaunch> after = {};
    std::optional<CallPlan> plan = {};
    std::optional<device::ReferenceCall> host_call = {};
    std::vector<std::unique_ptr<Executable>> bodies = {};
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
  struct Texts;
  using Origins = std::vector<const Origin*>;

  Executable(std::shared_ptr<const Program> program, const Gpu& gpu, Memory& memory);
  void prepare(ThreadPool& pool, const CodeFolder& folder);
  void collect(Texts& texts, Origins& origins);
  void collect_step(std::size_t step, Texts& texts, Origins& origins);
  void add_launch(Texts& texts, std::vector<ReadyLaunch>& to, KernelText text, const Origin& origin,
                  Origins& origins);
  void place_constants();
  void count_control(const ControlStep& control, const Ready& ready);

  [[nodiscard]] Frame make_frame(std::byte* arena, std::byte* seed) const;
  void align_body(const ControlStep& control, const Executable& body, Frame& frame) const;
  [[nodiscard]] std::vector<AlignedCopy> aligned_copies(const ControlStep& control) const;
  [[nodiscard]] std::int64_t bytes_of(std::span<const AlignedCopy> copies) const;
  void begin(Context& context, const device::RunArguments& arguments) const;
  bool set_buffers(Context& context, const device::RunArguments& arguments) const;
  void enqueue(Context& context, const device::RunArguments& arguments) const;
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
