// Our side of the benchmark: reads requests and writes answers, one JSON object a line.
//
//   {"cmd": "feeds", "workload": "mlp_train", "scale": "full", "path": "feeds.npz"}
//   {"cmd": "prepare", "workload": "mlp_train", "scale": "full"}
//   {"cmd": "types_of_text", "text": "graph @f { … }", "transforms": []}
//   {"cmd": "prepare_text", "text": "graph @f { … }", "feeds": "feeds.npz",
//    "transforms": [["grad", ["x", "w"]]]}
//   {"cmd": "time", "reps": 5, "inner": 1}
//   {"cmd": "outputs", "path": "outputs.npz"}
//   {"cmd": "text", "workload": "mlp_train"}        its program, as `ricci bench` reads it
//   {"cmd": "bandwidth"}        {"cmd": "list"}        {"cmd": "compile_gpt2", "layers": 12}
//
// `time` and `outputs` are about the workload prepared last. An answer to a request that cannot be
// served is {"error": …}.
#include <chrono>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "ricci/ir/text.h"

#include "runner/bandwidth.h"
#include "runner/executor.h"
#include "runner/leaves.h"
#include "runner/program.h"
#include "runner/text.h"
#include "workloads/training.h"

namespace ricci::bench {
namespace {

using nlohmann::json;

class Server {
 public:
  json answer(const json& request) {
    const std::string command = request.at("cmd");
    if (command == "list") return list();
    if (command == "text") return text(request);
    if (command == "feeds") return feeds(request);
    if (command == "prepare") return prepare(request);
    if (command == "types_of_text") return types_of_text(request);
    if (command == "prepare_text") return prepare_text(request);
    if (command == "time") return time(request);
    if (command == "outputs") return outputs(request);
    if (command == "compile_gpt2") return compile_gpt2(request);
    if (command == "bandwidth") return {{"bytes_per_second", copy_bandwidth()}};
    return {{"error", "no command is named '" + command + "'"}};
  }

 private:
  static Scale scale_of(const json& request) {
    return request.value("scale", "full") == "small" ? Scale::Small : Scale::Full;
  }
  static const WorkloadEntry& entry_of(const json& request) {
    return find_workload(request.at("workload").get<std::string>());
  }

  static Workload text_of(const json& request) {
    return workload_of_text(
        request.at("text"),
        request.value("transforms", json::array()).get<std::vector<TransformRequest>>());
  }
  static json type_of(const Type& type) {
    return {{"dtype", name(type.dtype)}, {"shape", type.static_dims()}};
  }

  static json types_of_text(const json& request) {
    const Workload workload = text_of(request);
    json inputs = json::object();
    json outputs = json::array();
    for (const Leaf& leaf : leaves_of(workload.graph)) inputs[leaf.name] = type_of(leaf.type);
    for (const ValueId id : workload.graph.outputs()) {
      outputs.push_back(type_of(workload.graph.type(id)));
    }
    return {{"inputs", inputs}, {"outputs", outputs}};
  }

  static json list() {
    json names = json::array();
    for (const WorkloadEntry& entry : all_workloads()) names.push_back(entry.name);
    return {{"workloads", names}};
  }

  static json text(const json& request) {
    return {{"text", print(entry_of(request).build(scale_of(request)).graph)}};
  }

  static json feeds(const json& request) {
    const Workload workload = entry_of(request).build(scale_of(request));
    io::NamedTensors arrays;
    for (auto& [name, tensor] : make_feeds(workload)) arrays.emplace_back(name, tensor);
    io::write_npz(request.at("path"), arrays);
    return {{"settings", workload.settings}, {"nodes", workload.graph.size()}};
  }

  json prepare(const json& request) {
    program_.reset();
    program_.emplace([&] { return entry_of(request).build(scale_of(request)); });
    return about_prepared();
  }

  json prepare_text(const json& request) {
    program_.reset();
    const io::NamedTensors arrays = io::read_npz(request.at("feeds"));
    program_.emplace([&] { return text_of(request); },
                     [&](const Workload& workload) { return feeds_from(workload.graph, arrays); });
    return about_prepared();
  }

  [[nodiscard]] json about_prepared() const {
    return {{"variant", program_->executor().name()},
            {"first_call_ms", program_->first_call_ms()},
            {"compile_ms", program_->compile_ms()},
            {"peak_bytes", program_->executor().peak_bytes()}};
  }

  json time(const json& request) {
    return {{"times_ms", prepared().time(request.value("reps", 1), request.value("inner", 1))}};
  }

  json outputs(const json& request) {
    io::write_npz(request.at("path"), prepared().outputs());
    return {{"ok", true}};
  }

  // How long a training step of GPT-2's sizes takes to compile on one core.
  static json compile_gpt2(const json& request) {
    const Workload workload = gpt2_train(request.at("layers").get<std::int64_t>());
    const Device one = Device::cpu(1);
    const auto start = std::chrono::steady_clock::now();
    const CompiledGraph compiled = compile(workload.graph, one, options_for(workload));
    const std::chrono::duration<double, std::milli> taken =
        std::chrono::steady_clock::now() - start;
    return {{"nodes", workload.graph.size()}, {"compile_ms", taken.count()}};
  }

  Program& prepared() {
    if (!program_) throw std::runtime_error("nothing is prepared");
    return *program_;
  }

  std::optional<Program> program_;
};

int serve() {
  // The peers have been imported and have found their devices before they are asked anything.
  Device::default_cpu().warm_up();
  Server server;
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

}  // namespace
}  // namespace ricci::bench

int main() { return ricci::bench::serve(); }
