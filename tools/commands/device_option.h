// Where commands run programs.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace ricci::tool {

/// Declares --device: `cpu` or `reference`.
void declare_device(CLI::App& command, std::string& device);
/// UserError when this build has no such device.
void require_device(const std::string& device);

}  // namespace ricci::tool
