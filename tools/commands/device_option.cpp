#include "commands/device_option.h"

#include <fmt/format.h>

#include "ricci/runtime/device.h"
#include "ricci/support/error.h"

#include "numbers.h"

namespace ricci::tool {

void declare_device(CLI::App& command, std::string& device) {
  // Devices that other builds have are known, so that what is said of them is why they are not
  // here.
  std::vector<std::string> known{"cpu", "cuda", "reference"};
  std::string names;
  for (const std::string& name : Device::names()) {
    names += name + ", ";
    known.push_back(name);
  }
  device = Device::names().front();
  CLI::IsMember is_known(known);
  is_known.description("");  // the option's own text says which there are
  command.add_option("--device", device, fmt::format("{}or reference (default {})", names, device))
      ->type_name("NAME")
      ->check(is_known);
}

void declare_threads(CLI::App& command, int& threads) {
  command.add_option("--threads", threads, "threads at most (default: one per core)")
      ->type_name("N")
      ->check(check_whole<int>)
      ->check(CLI::Range(0, 4096));
}

void declare_tf32(CLI::App& command, bool& tf32) {
  command.add_flag("--tf32", tf32,
                   "matrix products of f32 may round their operands to 11 bits, where the device "
                   "is faster so (cuda)");
}

void declare_memory_budget(CLI::App& command, std::int64_t& bytes) {
  command
      .add_option("--memory-budget", bytes,
                  "bytes a run may need besides inputs and outputs: values are computed again "
                  "instead of kept where that is needed (default: no budget)")
      ->type_name("BYTES")
      ->check(check_positive<std::int64_t>);
}

void require_device(const std::string& device) {
  if (device != "reference") (void)Device::named(device, 1);
}

void require_compiler(const std::string& device) {
  require_device(device);
  refuse_reference(device);
}

void refuse_reference(const std::string& device) {
  if (device != "reference") return;
  throw UserError(ErrorCode::UnsupportedOnBackend, "the reference runs graphs, not programs",
                  fmt::format("name another device: --device {}", Device::names().front()));
}

}  // namespace ricci::tool
