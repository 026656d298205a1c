#include "runner/program.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>

#include "runner/leaves.h"

namespace ricci::bench {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

}  // namespace

void Program::Free::operator()(std::byte* p) const {
  ::operator delete(p, std::align_val_t(BufferAlignment));
}

Program::Program(const Build& build, const Numbers& numbers) : executor_(make_executor()) {
  const Clock::time_point start = Clock::now();
  workload_ = std::make_unique<const Workload>(build());
  const Clock::time_point built = Clock::now();
  executor_->compile(*workload_);
  compile_ms_ = milliseconds_since(built);
  const double before_run = milliseconds_since(start);

  make_buffers(numbers(*workload_));
  reset();
  const Clock::time_point first_run = Clock::now();
  executor_->bind(leaves_, outputs_);
  executor_->run();
  first_call_ms_ = before_run + milliseconds_since(first_run);
}

std::byte* Program::allocate(std::size_t bytes) {
  void* memory = ::operator new(std::max<std::size_t>(bytes, 1), std::align_val_t(BufferAlignment));
  buffers_.emplace_back(static_cast<std::byte*>(memory));
  std::memset(memory, 0, bytes);  // pages are there before anything is timed
  return buffers_.back().get();
}

void Program::make_buffers(const Feeds& feeds) {
  const std::vector<Leaf> leaves = leaves_of(workload_->graph);
  for (const Leaf& leaf : leaves) {
    first_values_.push_back(feeds.at(leaf.name).contiguous());
    leaves_.push_back(allocate(byte_size(leaf.type)));
  }
  for (const ValueId output : workload_->graph.outputs()) {
    outputs_.push_back(nullptr);
    const auto donation = std::ranges::find(workload_->donated, outputs_.size() - 1,
                                            [](const Donation& d) { return d.output; });
    if (donation == workload_->donated.end()) {
      outputs_.back() = allocate(byte_size(workload_->graph.type(output)));
      continue;
    }
    const auto leaf = std::ranges::find(leaves, donation->input, &Leaf::name);
    outputs_.back() = leaves_[static_cast<std::size_t>(leaf - leaves.begin())];
  }
}

void Program::reset() {
  for (std::size_t i = 0; i < leaves_.size(); ++i) {
    const std::span<const std::byte> bytes = first_values_[i].bytes();
    std::memcpy(leaves_[i], bytes.data(), bytes.size());
  }
}

std::vector<double> Program::time(std::int64_t reps, std::int64_t inner) {
  reset();
  executor_->run();  // the copies above have pushed everything else out of the caches
  std::vector<double> times;
  for (std::int64_t rep = 0; rep < reps; ++rep) {
    const Clock::time_point start = Clock::now();
    for (std::int64_t i = 0; i < inner; ++i) executor_->run();
    times.push_back(milliseconds_since(start) / static_cast<double>(inner));
  }
  return times;
}

io::NamedTensors Program::outputs() {
  reset();
  executor_->run();
  io::NamedTensors named;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const Type& type = workload_->graph.type(workload_->graph.outputs()[i]);
    named.emplace_back(workload_->outputs[i],
                       Tensor::from_bytes(type, {outputs_[i], byte_size(type)}));
  }
  return named;
}

}  // namespace ricci::bench
