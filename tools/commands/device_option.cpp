#include "commands/device_option.h"

#include <fmt/format.h>

#include "ricci/support/error.h"

namespace ricci::tool {

void declare_device(CLI::App& command, std::string& device) {
  command.add_option("--device", device, "cpu, reference or cuda (default cpu)")
      ->type_name("NAME")
      ->check(CLI::IsMember({"cpu", "reference", "cuda"}));
}

void require_device(const std::string& device) {
  if (device == "cpu" || device == "reference") return;
  throw UserError(ErrorCode::UnsupportedOnBackend,
                  fmt::format("the device '{}' is not part of this build", device),
                  "run with --device cpu or --device reference");
}

}  // namespace ricci::tool
