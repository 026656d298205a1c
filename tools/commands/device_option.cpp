#include "commands/device_option.h"

#include <fmt/format.h>

#include "ricci/runtime/device.h"
#include "ricci/support/error.h"

namespace ricci::tool {

void declare_device(CLI::App& command, std::string& device) {
  // Devices that other builds have are known, so that what is said of them is why they are not
  // here.
  std::vector<std::string> known{"cpu", "cuda", "reference"};
  std::string names;
  for (const DeviceListing& l : Device::all()) {
    names += l.name + ", ";
    known.push_back(l.name);
  }
  device = Device::all().front().name;
  CLI::IsMember is_known(known);
  is_known.description("");  // the option's own text says which there are
  command.add_option("--device", device, fmt::format("{}or reference (default {})", names, device))
      ->type_name("NAME")
      ->check(is_known);
}

void require_device(const std::string& device) {
  if (device != "reference") (void)Device::named(device, 1);
}

void require_compiler(const std::string& device) {
  require_device(device);
  if (device != "reference") return;
  throw UserError(ErrorCode::UnsupportedOnBackend, "the reference runs graphs, not programs",
                  fmt::format("name another device: --device {}", Device::all().front().name));
}

}  // namespace ricci::tool
