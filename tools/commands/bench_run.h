// A compiled graph made ready to be run again and again, as `ricci bench` does.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "ricci/compiler/device/backend.h"
#include "ricci/compiler/schedule/cost.h"
#include "ricci/runtime/device.h"

#include "feeds.h"
#include "runtime/programs.h"
#include "runtime/staging.h"

namespace ricci::tool {

using BenchClock = std::chrono::steady_clock;

[[nodiscard]] double ms_since(BenchClock::time_point start);
/// `times` must not be empty.
[[nodiscard]] double median(std::vector<double> times);

struct StepTimes {
  std::string by;
  std::string ops;
  std::string where;  ///< in the user's source
  StepCost cost;
  std::vector<double> ms;
};

struct BenchRunOptions {
  std::string device = "cpu";
  int threads = 0;
  bool fuse = true;
  std::int64_t memory_budget = 0;
  std::uint64_t seed = 0;
};

/// The program, its context and its arrays. Stays where it is: the arrays are bound.
class BenchRun {
 public:
  BenchRun(const Graph& graph, const CheckedFeeds& feeds, const BenchRunOptions& options);
  BenchRun(const BenchRun&) = delete;
  BenchRun& operator=(const BenchRun&) = delete;

  [[nodiscard]] int threads() const noexcept { return device_.threads(); }
  [[nodiscard]] double compile_ms() const noexcept { return compile_ms_; }
  /// Runs it once; how long that took.
  double run_ms();
  /// Runs it `reps` times with every step timed; the steps of bodies are part of their loop's.
  [[nodiscard]] std::vector<StepTimes> steps(std::size_t reps);
  /// What the last run gave.
  [[nodiscard]] const std::vector<Tensor>& results() const noexcept { return results_; }

 private:
  Device device_;
  double compile_ms_ = 0;
  std::unique_ptr<runtime::BoundProgram> program_;
  std::unique_ptr<device::Context> context_;
  std::unique_ptr<runtime::Staging> staging_;
  std::vector<Tensor> held_;
  std::vector<Tensor> results_;
  std::vector<const std::byte*> inputs_;
  std::vector<std::byte*> outputs_;
  std::uint64_t seed_ = 0;
};

/// How the time falls with the number of threads, from one to as many as `options` allows, which
/// take turns; an error where they do not give the same bits.
[[nodiscard]] std::string scaling_text(const Graph& graph, const CheckedFeeds& feeds,
                                       const BenchRunOptions& options, std::size_t reps);

}  // namespace ricci::tool
