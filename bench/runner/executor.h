// What the benchmark asks of a way to run graphs. executor.cpp decides which one is measured.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "ricci/runtime/compiled_graph.h"

#include "workloads/workload.h"

namespace ricci::bench {

/// Used in this order: compile once, bind once, run often.
class Executor {
 public:
  virtual ~Executor() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;

  /// Everything that is done once per graph. The workload outlives the executor.
  virtual void compile(const Workload& workload) = 0;

  /// Fixes where a run reads and writes; nothing is copied. `leaves` are the graph's inputs and
  /// then its params, each in the graph's order; `outputs` the graph's outputs. The buffers are
  /// row-major, aligned to `BufferAlignment`, and stay where they are. A donated output has the
  /// buffer of its input; no others overlap.
  virtual void bind(std::span<std::byte* const> leaves, std::span<std::byte* const> outputs) = 0;

  /// One run: reads the leaves' buffers, has written the outputs' when it returns.
  virtual void run() = 0;

  /// The most memory a run holds at once besides the bound buffers; 0 when it is not known.
  [[nodiscard]] virtual std::int64_t peak_bytes() const = 0;
};

inline constexpr std::size_t BufferAlignment = 64;

[[nodiscard]] std::unique_ptr<Executor> make_executor();

/// What a training step updates in place.
[[nodiscard]] CompileOptions options_for(const Workload& workload);

}  // namespace ricci::bench
