// The workloads on a GPU, with their arrays there: how long a run takes, how long the host is busy
// with it, and how long it takes until the first result is there.
//
//   ricci_bench_cuda mlp_train fused_rows_fwd gpt_train:bf16
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "ricci/compiler/device/backend.h"
#include "ricci/compiler/rewrite/precision.h"
#include "ricci/compiler/schedule/program.h"
#include "ricci/runtime/device.h"
#include "ricci/support/error.h"

#include "workloads/workload.h"

namespace ricci::bench {
namespace {

using Clock = std::chrono::steady_clock;

double microseconds(Clock::duration d) {
  return std::chrono::duration<double, std::micro>(d).count();
}

double median(std::vector<double> all) {
  std::ranges::sort(all);
  return all[all.size() / 2];
}

// A workload's program with its arrays in the device's memory.
struct OnGpu {
  OnGpu(const Workload& workload, const device::Backend& backend) {
    const Feeds feeds = make_feeds(workload);
    const CheckedFeeds checked = check_feeds(workload.graph, feeds);
    std::vector<std::string> names;
    for (const NodeId id : workload.graph.leaves()) {
      names.push_back(*workload.graph.node(id).leaf_name());
    }
    begin = Clock::now();
    ProgramOptions options{.target = &backend.target()};
    for (const Donation& d : workload.donated) {
      const auto at = std::ranges::find(names, d.input) - names.begin();
      options.donated.push_back({d.output, static_cast<std::size_t>(at)});
    }
    executable =
        backend.compile(std::make_shared<const Program>(make_program(workload.graph, options)));
    context = executable->make_context();
    for (const Tensor& value : checked.values) {
      const Tensor plain = value.contiguous();
      arrays.emplace_back(backend.memory(), static_cast<std::int64_t>(plain.bytes().size()));
      arrays.back().copy_in(plain.data());
      inputs.push_back(arrays.back().data());
    }
    const Program& program = executable->program();
    for (std::size_t o = 0; o < program.outputs.size(); ++o) {
      const auto donor = std::ranges::find(options.donated, o, &Donated::output);
      if (donor != options.donated.end()) {
        outputs.push_back(const_cast<std::byte*>(inputs[donor->input]));
        continue;
      }
      const auto b = static_cast<std::size_t>(program.outputs[o]);
      arrays.emplace_back(backend.memory(), program.buffers[b].bytes());
      outputs.push_back(arrays.back().data());
    }
  }

  void start() { executable->start(*context, {inputs, outputs, 1, nullptr}); }
  void finish() { executable->finish(*context); }

  Clock::time_point begin;
  std::unique_ptr<device::Executable> executable;
  std::unique_ptr<device::Context> context;
  std::vector<device::Array> arrays;
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
};

// `name:bf16` is a workload whose products are computed in bf16.
Workload named(std::string_view name) {
  const std::size_t end = name.find(':');
  Workload workload = find_workload(name.substr(0, end)).build(Scale::Gpu);
  if (end == std::string_view::npos) return workload;
  const std::string policy = "auto_mixed_" + std::string(name.substr(end + 1));
  workload.graph = auto_mixed_precision(workload.graph, precision_policy_named(policy)).graph;
  return workload;
}

void measure(std::string_view name, const Device& device) {
  const Workload workload = named(name);
  OnGpu it(workload, device.backend());
  it.start();
  it.finish();
  const double first = microseconds(Clock::now() - it.begin);
  for (int i = 0; i < 3; ++i) {
    it.start();
    it.finish();
  }
  std::vector<double> runs;
  std::vector<double> hosts;
  const auto until = Clock::now() + std::chrono::seconds(1);
  do {
    constexpr int Behind = 10;
    const auto from = Clock::now();
    double host = 0;
    for (int i = 0; i < Behind; ++i) {
      const auto asked = Clock::now();
      it.start();
      host += microseconds(Clock::now() - asked);
      it.finish();
    }
    runs.push_back(microseconds(Clock::now() - from) / Behind);
    hosts.push_back(host / Behind);
  } while (Clock::now() < until && runs.size() < 50);
  std::map<std::string, int> served;
  const Program& program = it.executable->program();
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    ++served[std::string(it.executable->served_by(s))];
  }
  std::string steps;
  for (const auto& [how, count] : served) steps += fmt::format(" {} {}", count, how);
  fmt::print("{:<20} run {:>10.1f} us, host {:>8.1f} us, first {:>8.1f} ms, workspace {} MB,{}\n",
             name, median(runs), median(hosts), first / 1000,
             it.executable->workspace_bytes() >> 20, steps);
  std::fflush(stdout);
}

}  // namespace
}  // namespace ricci::bench

int main(int argc, char** argv) {
  try {
    const ricci::Device device = ricci::Device::cuda();
    bool failed = false;
    for (int i = 1; i < argc; ++i) {
      try {
        ricci::bench::measure(argv[i], device);
      } catch (const ricci::Error& error) {
        fmt::print("{:<20} {}\n", argv[i], error.what());
        failed = true;
      }
    }
    return failed ? 1 : 0;
  } catch (const ricci::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
