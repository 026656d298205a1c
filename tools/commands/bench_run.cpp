#include "commands/bench_run.h"

#include <algorithm>

#include "runtime/report.h"

namespace ricci::tool {
namespace {

// Takes the time of every step of one program; those of its bodies are part of their own.
class StepWatch final : public device::StepObserver {
 public:
  StepWatch(const Program& program, std::vector<StepTimes>& steps)
      : program_(program), steps_(steps) {}
  void before(const Program& program, std::size_t, const device::Buffers&) override {
    if (&program == &program_) start_ = BenchClock::now();
  }
  void after(const Program& program, std::size_t step, const device::Buffers&) override {
    if (&program == &program_) steps_[step].ms.push_back(ms_since(start_));
  }

 private:
  const Program& program_;
  std::vector<StepTimes>& steps_;
  BenchClock::time_point start_;
};

}  // namespace

double ms_since(BenchClock::time_point start) {
  return std::chrono::duration<double, std::milli>(BenchClock::now() - start).count();
}

double median(std::vector<double> times) {
  std::ranges::sort(times);
  const std::size_t half = times.size() / 2;
  return times.size() % 2 == 1 ? times[half] : (times[half - 1] + times[half]) / 2;
}

BenchRun::BenchRun(const Graph& graph, const CheckedFeeds& feeds, const BenchRunOptions& options)
    : device_(Device::named(options.device, options.threads)), seed_(options.seed) {
  const auto start = BenchClock::now();
  const Graph bound = feeds.bindings.empty() ? graph : graph.bind(feeds.bindings);
  const device::Backend& backend = device_.backend();
  Program made = make_program(
      bound,
      {.fuse = options.fuse, .target = &backend.target(), .memory_budget = options.memory_budget});
  runtime::require_budget(made, made.arena_bytes, options.memory_budget);
  program_ = std::make_unique<runtime::BoundProgram>(
      std::make_shared<const Program>(std::move(made)), device_, CompileOptions{});
  const device::Executable& executable = program_->executable();
  context_ = program_->make_context(program_->output_bytes());
  compile_ms_ = ms_since(start);
  for (const Tensor& t : feeds.values) {
    held_.push_back(t.contiguous());
    inputs_.push_back(held_.back().data());
  }
  for (const ValueId v : bound.outputs()) results_.push_back(Tensor::zeros(bound.type(v)));
  for (Tensor& t : results_) outputs_.push_back(t.mutable_data());
  staging_ = std::make_unique<runtime::Staging>(backend.memory(), executable.program());
  for (std::size_t k = 0; k < inputs_.size(); ++k) staging_->stage_input(k, inputs_[k]);
  for (std::size_t o = 0; o < outputs_.size(); ++o) staging_->stage_output(o, outputs_[o], -1);
}

double BenchRun::run_ms() {
  const auto start = BenchClock::now();
  device::run(program_->executable(), *context_, {inputs_, outputs_, seed_, nullptr});
  return ms_since(start);
}

std::vector<StepTimes> BenchRun::steps(std::size_t reps) {
  const device::Executable& executable = program_->executable();
  const Program& program = executable.program();
  std::vector<StepTimes> steps;
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    const SourcePosition& where = program.steps[s].where;
    steps.push_back({std::string(executable.served_by(s)),
                     program.steps[s].label,
                     where.known() ? where.to_string() : "",
                     estimate_cost(program, program.steps[s]),
                     {}});
  }
  StepWatch watch(program, steps);
  for (std::size_t i = 0; i < reps; ++i) {
    device::run(executable, *context_, {inputs_, outputs_, seed_, &watch});
  }
  return steps;
}

}  // namespace ricci::tool
