#include "cuda/device_program.h"

#include <algorithm>
#include <chrono>

#include "ricci/compiler/schedule/program.h"
#include "ricci/op/precision_policy.h"

#include "support/phases.h"

namespace ricci::bench {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point from) {
  return std::chrono::duration<double, std::milli>(Clock::now() - from).count();
}

}  // namespace

NamedWorkload workload_named(std::string_view name, Scale scale) {
  const std::size_t end = name.find(':');
  NamedWorkload out{find_workload(name.substr(0, end)).build(scale)};
  if (end == std::string_view::npos) return out;
  const std::string precision(name.substr(end + 1));
  out.tf32 = precision == "tf32";
  if (out.tf32) return out;
  out.workload = under(precision_policy_named("auto_mixed_" + precision), std::move(out.workload));
  return out;
}

DeviceProgram::DeviceProgram(std::string_view name, Scale scale, const device::Backend& backend,
                             const std::string& code_cache) {
  NamedWorkload named = workload_named(name, scale);
  workload_ = std::move(named.workload);
  const Feeds feeds = make_feeds(workload_);
  for (const Tensor& value : check_feeds(workload_.graph, feeds).values) {
    first_values_.push_back(value.contiguous());
  }
  std::vector<std::string> leaves;
  for (const NodeId id : workload_.graph.leaves()) {
    leaves.push_back(*workload_.graph.node(id).leaf_name());
  }
  ProgramOptions options{.target = &backend.target()};
  for (const Donation& d : workload_.donated) {
    const auto at = std::ranges::find(leaves, d.input) - leaves.begin();
    options.donated.push_back({d.output, static_cast<std::size_t>(at)});
  }
  const Clock::time_point begun = Clock::now();
  executable_ =
      backend.compile(std::make_shared<const Program>(make_program(workload_.graph, options)),
                      {.code_cache = code_cache, .tf32_products = named.tf32});
  compile_ms_ = milliseconds_since(begun);
  context_ = executable_->make_context();
  const double until_arrays = milliseconds_since(begun);
  make_arrays(backend, options.donated);
  const Clock::time_point ready = Clock::now();
  {
    const Phase phase("first run");
    start();
    finish();
  }
  first_call_ms_ = until_arrays + milliseconds_since(ready);
}

void DeviceProgram::make_arrays(const device::Backend& backend,
                                const std::vector<Donated>& donated) {
  for (const Tensor& value : first_values_) {
    arrays_.emplace_back(backend.memory(), static_cast<std::int64_t>(value.bytes().size()));
    inputs_.push_back(arrays_.back().data());
  }
  const Program& program = executable_->program();
  for (std::size_t o = 0; o < program.outputs.size(); ++o) {
    const auto donor = std::ranges::find(donated, o, &Donated::output);
    if (donor != donated.end()) {
      outputs_.push_back(arrays_[donor->input].data());
      continue;
    }
    const auto b = static_cast<std::size_t>(program.outputs[o]);
    arrays_.emplace_back(backend.memory(), program.buffers[b].bytes());
    outputs_.push_back(arrays_.back().data());
  }
  reset();
}

std::int64_t DeviceProgram::peak_bytes() const {
  std::int64_t bytes = executable_->workspace_bytes();
  for (const device::Array& a : arrays_) bytes += a.bytes();
  return bytes;
}

std::map<std::string, int> DeviceProgram::served() const {
  std::map<std::string, int> counts;
  for (std::size_t s = 0; s < executable_->program().steps.size(); ++s) {
    ++counts[std::string(executable_->served_by(s))];
  }
  return counts;
}

void DeviceProgram::reset() {
  for (std::size_t k = 0; k < first_values_.size(); ++k)
    arrays_[k].copy_in(first_values_[k].data());
}

std::vector<double> DeviceProgram::time(std::int64_t reps, std::int64_t inner) {
  reset();
  for (int i = 0; i < 3; ++i) {  // from the second on a run may be replayed
    start();
    finish();
  }
  std::vector<double> times;
  for (std::int64_t rep = 0; rep < reps; ++rep) {
    const Clock::time_point from = Clock::now();
    for (std::int64_t i = 0; i < inner; ++i) {
      start();
      finish();
    }
    times.push_back(milliseconds_since(from) / static_cast<double>(inner));
  }
  return times;
}

double DeviceProgram::host_ms(std::int64_t runs) {
  double total = 0;
  for (std::int64_t i = 0; i < runs; ++i) {
    const Clock::time_point from = Clock::now();
    start();
    total += milliseconds_since(from);
    finish();
  }
  return total / static_cast<double>(runs);
}

io::NamedTensors DeviceProgram::outputs() {
  reset();
  start();
  finish();
  io::NamedTensors named;
  for (std::size_t o = 0; o < outputs_.size(); ++o) {
    Tensor value = Tensor::zeros(workload_.graph.type(workload_.graph.outputs()[o]));
    const auto array = std::ranges::find(arrays_, outputs_[o], &device::Array::data);
    array->copy_out(value.mutable_data());
    named.emplace_back(workload_.outputs[o], std::move(value));
  }
  return named;
}

}  // namespace ricci::bench
