// Where commands run programs, and in how much memory.
#pragma once

#include <cstdint>
#include <string>

#include <CLI/CLI.hpp>

namespace ricci::tool {

/// Declares --device: one of this build's, or `reference`.
void declare_device(CLI::App& command, std::string& device);
/// Declares --threads: how many it uses at most.
void declare_threads(CLI::App& command, int& threads);
/// UserError when this build has no such device.
void require_device(const std::string& device);
/// The same; also when it is the reference, which compiles nothing.
void require_compiler(const std::string& device);
/// The same where the device itself need not be here.
void refuse_reference(const std::string& device);

/// Declares --tf32: see `CompileOptions::tf32_products`.
void declare_tf32(CLI::App& command, bool& tf32);

/// Declares --memory-budget: see `CompileOptions::memory_budget`.
void declare_memory_budget(CLI::App& command, std::int64_t& bytes);

}  // namespace ricci::tool
