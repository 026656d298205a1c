// A program made ready to run on a device. It is immutable; what changes while it runs is in a
// context, one for each run at a time.
//
//   auto executable = backend.compile(program);
//   auto context = executable->make_context();
//   executable->start(*context, {inputs, outputs});
//   executable->finish(*context);
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "ricci/compiler/schedule/program.h"

namespace ricci::device {

/// The buffers of a program while it runs, for those who look on.
class Buffers {
 public:
  virtual ~Buffers() = default;
  /// The elements of a buffer, on the host; they stay there until the observer returns. Null where
  /// the program has been given none.
  [[nodiscard]] virtual const std::byte* on_host(BufferId buffer) const = 0;
};

/// Called around every step, bodies of loops and branches included; for profiles and the search
/// for the first value that is not finite. What it throws ends the run.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void before(const Program& program, std::size_t step, const Buffers& buffers) = 0;
  virtual void after(const Program& program, std::size_t step, const Buffers& buffers) = 0;
};

/// What a run is given: pointers to row-major elements in the device's memory, in the order of the
/// program's inputs and outputs.
struct RunArguments {
  std::span<const std::byte* const> inputs;
  std::span<std::byte* const> outputs;
  std::uint64_t seed = 0;            ///< for random ops
  StepObserver* observer = nullptr;  ///< steps are run one by one for it
};

/// Room for one run at a time.
class Context {
 public:
  virtual ~Context() = default;
  [[nodiscard]] virtual std::int64_t bytes() const noexcept = 0;
};

/// A program and how a device serves its steps: what reports tell, whether or not it can run here.
class Outline {
 public:
  virtual ~Outline() = default;

  [[nodiscard]] virtual const Program& program() const noexcept = 0;
  /// Of a context's bytes, those that are no buffers of the program.
  [[nodiscard]] virtual std::int64_t scratch_bytes() const = 0;
  /// All that runs of one context take besides inputs and outputs.
  [[nodiscard]] virtual std::int64_t workspace_bytes() const = 0;
  /// How a step is served: `kernel`, `loop`, `control`, or the kind of call.
  [[nodiscard]] virtual std::string_view served_by(std::size_t step) const = 0;
  /// What serves it where operands are not finite, if that is something else; empty where not.
  [[nodiscard]] virtual std::string_view served_where_not_finite(std::size_t /*step*/) const {
    return {};
  }
  /// A body of a control step; null where there is none.
  [[nodiscard]] virtual const Outline* body(std::size_t step, std::size_t body) const = 0;
};

class Executable : public Outline {
 public:
  /// Bytes a context takes.
  [[nodiscard]] virtual std::int64_t context_bytes() const = 0;
  /// UserError(out_of_memory) when there is no room.
  [[nodiscard]] virtual std::unique_ptr<Context> make_context() const = 0;

  /// Begins a run. A device may still be at work when it returns: inputs and outputs must stay
  /// where they are, and the context must not be used again, until `finish` returns.
  virtual void start(Context& context, const RunArguments& arguments) const = 0;
  /// Waits for the end of a run. A fault inside a step (an index that is out of range, a matrix
  /// that is singular) is a UserError here or in `start`, whichever notices it.
  virtual void finish(Context& context) const = 0;

  [[nodiscard]] const Executable* body(std::size_t step, std::size_t body) const override = 0;
};

/// Both halves of a run.
inline void run(const Executable& executable, Context& context, const RunArguments& arguments) {
  executable.start(context, arguments);
  executable.finish(context);
}

}  // namespace ricci::device
