// A workload made ready: compiled, with buffers of its own that every run uses again.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "ricci/io/npy.h"

#include "runner/executor.h"

namespace ricci::bench {

class Program {
 public:
  /// Building is part of the first call.
  using Build = std::function<Workload()>;
  using Numbers = std::function<Feeds(const Workload&)>;

  explicit Program(const Build& build, const Numbers& numbers = make_feeds);

  [[nodiscard]] const Workload& workload() const { return *workload_; }
  [[nodiscard]] const Executor& executor() const { return *executor_; }
  /// Building the graph, compiling it and the first run.
  [[nodiscard]] double first_call_ms() const { return first_call_ms_; }
  /// Compiling alone, of a graph that is there.
  [[nodiscard]] double compile_ms() const { return compile_ms_; }

  /// Milliseconds per run, from the first state: `reps` numbers, each the mean of `inner` runs.
  [[nodiscard]] std::vector<double> time(std::int64_t reps, std::int64_t inner);
  /// The outputs of one run from the first state.
  [[nodiscard]] io::NamedTensors outputs();

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  using Buffer = std::unique_ptr<std::byte, Free>;

  [[nodiscard]] std::byte* allocate(std::size_t bytes);
  void make_buffers(const Feeds& feeds);
  /// Puts the first numbers back into every leaf.
  void reset();

  std::unique_ptr<const Workload> workload_;
  std::unique_ptr<Executor> executor_;
  std::vector<Buffer> buffers_;
  std::vector<Tensor> first_values_;  // one per leaf
  std::vector<std::byte*> leaves_;
  std::vector<std::byte*> outputs_;
  double first_call_ms_ = 0;
  double compile_ms_ = 0;
};

}  // namespace ricci::bench
