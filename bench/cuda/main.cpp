// The workloads on a GPU, with their arrays there: how long a run takes, how long the host is busy
// with it, how long it takes until the first result is there, and how much memory it takes.
//
//   ricci_bench_cuda mlp_train mlp_train:tf32 gpt_train:bf16
//   ricci_bench_cuda --device lir --small mlp_train      the same elsewhere, for trying it out
//   ricci_bench_cuda --full gpt_train:bf16               of the size that CPUs are measured with
//   ricci_bench_cuda --phases --code-cache /tmp/code mlp_train
//                                                        where the first call's time goes
//
// With --emit FORM it prints what the compiler makes of a workload and runs nothing, which needs no
// GPU: `report`, `lir`, `cuda` (its kernels as CUDA C++), or `ptx:sm_90` (which needs NVRTC).
//
//   ricci_bench_cuda --emit cuda gpt_train:bf16
//
// With --serve it answers one JSON request a line, for bench/cuda/run.py:
//   {"cmd": "about"}   {"cmd": "feeds", "workload": "mlp_train", "path": "feeds.npz"}
//   {"cmd": "prepare", "workload": "mlp_train:tf32"}   {"cmd": "outputs", "path": "out.npz"}
//   {"cmd": "time", "reps": 5, "inner": 1}   {"cmd": "host", "runs": 100}
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <optional>
#include <span>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "ricci/runtime/ahead_of_time.h"
#include "ricci/runtime/device.h"
#include "ricci/support/error.h"

#include "cuda/device_program.h"
#include "support/phases.h"

namespace ricci::bench {
namespace {

using nlohmann::json;

struct Settings {
  std::string device = "cuda";
  Scale scale = Scale::Gpu;
  bool serve = false;
  std::string emit;  ///< a form of compile_text, and behind a colon what machine it is for
  bool phases = false;
  std::string code_cache;
  std::vector<std::string> workloads;
};

Settings settings_of(std::span<char* const> arguments) {
  Settings s;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string argument = arguments[i];
    if (argument == "--serve") {
      s.serve = true;
    } else if (argument == "--small") {
      s.scale = Scale::Small;
    } else if (argument == "--full") {
      s.scale = Scale::Full;
    } else if (argument == "--phases") {
      s.phases = true;
    } else if (argument == "--code-cache" && i + 1 < arguments.size()) {
      s.code_cache = arguments[++i];
    } else if (argument == "--device" && i + 1 < arguments.size()) {
      s.device = arguments[++i];
    } else if (argument == "--emit" && i + 1 < arguments.size()) {
      s.emit = arguments[++i];
    } else if (argument.starts_with("--")) {
      throw UserError(ErrorCode::Name, fmt::format("there is no option '{}'", argument),
                      "those are --device NAME, --small, --full, --emit FORM, --code-cache FOLDER, "
                      "--phases and --serve");
    } else {
      s.workloads.push_back(argument);
    }
  }
  return s;
}

double median(std::vector<double> all) {
  std::ranges::sort(all);
  return all[all.size() / 2];
}

// Where the time until the first result went, and what was done once to replay it.
void print_phases(const PhaseLog& log) {
  for (const PhaseTime& p : log.times()) {
    fmt::print("  {:{}}{:<{}} {:>10.2f} ms {:>5}x\n", "", 2 * p.depth, p.name, 40 - 2 * p.depth,
               1e3 * p.seconds, p.times);
  }
}

void measure(const std::string& name, const Settings& settings, const Device& device) {
  std::optional<PhaseLog> log;
  if (settings.phases) log.emplace();
  DeviceProgram it(name, settings.scale, device.backend(), settings.code_cache);
  const double once = median(it.time(3, 1));
  constexpr double WantedMs = 20;
  const auto inner =
      static_cast<std::int64_t>(std::clamp(WantedMs / std::max(once, 1e-3), 1.0, 1e3));
  const auto reps = static_cast<std::int64_t>(
      std::clamp(1e3 / std::max(once * static_cast<double>(inner), 1e-3), 3.0, 50.0));
  const double run = median(it.time(reps, inner));
  std::string steps;
  for (const auto& [how, count] : it.served()) steps += fmt::format(", {} {}", count, how);
  fmt::print("{:<20} run {:>10.1f} us, host {:>8.1f} us, first {:>8.1f} ms, memory {} MB{}\n", name,
             1e3 * run, 1e3 * it.host_ms(10), it.first_call_ms(), it.peak_bytes() >> 20, steps);
  if (log) print_phases(*log);
  std::fflush(stdout);
}

class Server {
 public:
  Server(const Settings& settings, const Device& device) : settings_(settings), device_(device) {}

  json answer(const json& request) {
    const std::string command = request.at("cmd");
    if (command == "about") {
      return {{"device", device_.name()},
              {"memory_bytes", device_.backend().memory().total_bytes()}};
    }
    if (command == "feeds") return feeds(request);
    if (command == "prepare") return prepare(request);
    if (command == "time") {
      return {{"times_ms", prepared().time(request.value("reps", 1), request.value("inner", 1))}};
    }
    if (command == "host") return {{"host_ms", prepared().host_ms(request.value("runs", 1))}};
    if (command == "outputs") {
      io::write_npz(request.at("path"), prepared().outputs());
      return {{"ok", true}};
    }
    return {{"error", "no command is named '" + command + "'"}};
  }

 private:
  [[nodiscard]] json feeds(const json& request) const {
    const NamedWorkload named =
        workload_named(request.at("workload").get<std::string>(), settings_.scale);
    io::NamedTensors arrays;
    for (auto& [name, tensor] : make_feeds(named.workload)) arrays.emplace_back(name, tensor);
    io::write_npz(request.at("path"), arrays);
    return {{"settings", named.workload.settings}, {"nodes", named.workload.graph.size()}};
  }

  json prepare(const json& request) {
    program_.reset();
    program_.emplace(request.at("workload").get<std::string>(), settings_.scale, device_.backend(),
                     request.value("code_cache", ""));
    return {{"variant", device_.name()},
            {"first_call_ms", program_->first_call_ms()},
            {"compile_ms", program_->compile_ms()},
            {"peak_bytes", program_->peak_bytes()},
            {"served", program_->served()}};
  }

  DeviceProgram& prepared() {
    if (!program_) throw UserError(ErrorCode::Name, "nothing is prepared");
    return *program_;
  }

  const Settings& settings_;
  const Device& device_;
  std::optional<DeviceProgram> program_;
};

int serve(const Settings& settings, const Device& device) {
  Server server(settings, device);
  std::string line;
  while (std::getline(std::cin, line)) {
    json reply;
    try {
      reply = server.answer(json::parse(line));
    } catch (const std::exception& error) {
      reply = {{"error", error.what()}};
    }
    std::cout << reply.dump() << '\n' << std::flush;  // someone is waiting for this line
  }
  return 0;
}

int emit(const Settings& settings) {
  const std::size_t end = settings.emit.find(':');
  ObjectOptions options{.device = settings.device};
  if (end != std::string::npos) options.target = settings.emit.substr(end + 1);
  for (const std::string& name : settings.workloads) {
    const NamedWorkload named = workload_named(name, settings.scale);
    options.donations.clear();
    for (const auto& [output, input] : named.workload.donated) {
      options.donations.push_back({output, input});
    }
    options.tf32_products = named.tf32;
    std::cout << compile_text(named.workload.graph, settings.emit.substr(0, end), options);
  }
  return 0;
}

int run(const Settings& settings) {
  if (!settings.emit.empty()) return emit(settings);
  const Device device = Device::named(settings.device);
  if (settings.serve) return serve(settings, device);
  bool failed = false;
  for (const std::string& name : settings.workloads) {
    try {
      measure(name, settings, device);
    } catch (const Error& error) {
      fmt::print("{:<20} {}\n", name, error.what());
      failed = true;
    }
  }
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace ricci::bench

int main(int argc, char** argv) {
  try {
    return ricci::bench::run(
        ricci::bench::settings_of({argv + 1, static_cast<std::size_t>(argc - 1)}));
  } catch (const ricci::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
