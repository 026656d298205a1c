// A workload on a device, with its arrays in the device's memory.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ricci/compiler/device/backend.h"
#include "ricci/io/npy.h"

#include "workloads/workload.h"

namespace ricci::bench {

/// How a workload is computed: `gpt_train:bf16`, `mlp_train:tf32`, or in f32.
struct NamedWorkload {
  Workload workload;
  bool tf32 = false;
};
[[nodiscard]] NamedWorkload workload_named(std::string_view name, Scale scale);

class DeviceProgram {
 public:
  /// Its first run is over. `code_cache` as for CompileOptions.
  DeviceProgram(std::string_view name, Scale scale, const device::Backend& backend,
                const std::string& code_cache = {});

  [[nodiscard]] const device::Executable& executable() const { return *executable_; }
  /// From the start of compiling to the end of the first run; compiling alone.
  [[nodiscard]] double first_call_ms() const { return first_call_ms_; }
  [[nodiscard]] double compile_ms() const { return compile_ms_; }
  /// Of the device's memory: arrays, temporaries, constants.
  [[nodiscard]] std::int64_t peak_bytes() const;
  /// How many steps each way of running them serves.
  [[nodiscard]] std::map<std::string, int> served() const;

  void start() { executable_->start(*context_, {inputs_, outputs_, 1, nullptr}); }
  void finish() { executable_->finish(*context_); }
  /// Puts the first numbers back.
  void reset();
  /// Milliseconds a run: `reps` numbers, each the mean of `inner` runs that follow each other.
  [[nodiscard]] std::vector<double> time(std::int64_t reps, std::int64_t inner);
  /// How long the host is busy asking for a run, in milliseconds.
  [[nodiscard]] double host_ms(std::int64_t runs);
  /// The outputs of one run from the first numbers.
  [[nodiscard]] io::NamedTensors outputs();

 private:
  void make_arrays(const device::Backend& backend, const std::vector<Donated>& donated);

  Workload workload_;
  std::unique_ptr<device::Executable> executable_;
  std::unique_ptr<device::Context> context_;
  std::vector<Tensor> first_values_;
  std::vector<device::Array> arrays_;
  std::vector<const std::byte*> inputs_;
  std::vector<std::byte*> outputs_;
  double first_call_ms_ = 0;
  double compile_ms_ = 0;
};

}  // namespace ricci::bench
