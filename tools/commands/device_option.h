// Where commands run programs.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace ricci::tool {

/// Declares --device: one of this build's, or `reference`.
void declare_device(CLI::App& command, std::string& device);
/// UserError when this build has no such device.
void require_device(const std::string& device);
/// The same; also when it is the reference, which compiles nothing.
void require_compiler(const std::string& device);

}  // namespace ricci::tool
