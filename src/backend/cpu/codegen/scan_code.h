// A scan with a small body as one function: the loop and, written out, every vector of the body.
// Values of the body live in registers from step to step as far as there are any.
#pragma once

#include <memory>
#include <string>

#include "ricci/schedule/program.h"

#include "backend/cpu/codegen/jit.h"
#include "backend/cpu/run/code_source.h"

namespace ricci::cpu {

/// Adds a loop to a module as a function. False, and nothing added, when the body is too large or
/// has what cannot be written out.
[[nodiscard]] bool add_scan(llvm::Module& module, const ControlStep& step,
                            const std::string& symbol, const TargetInfo& target);
inline constexpr const char* ScanSymbol = "scan";
/// All that a loop's code depends on; empty when `add_scan` would add nothing.
[[nodiscard]] std::string scan_text(const ControlStep& step);
/// The loop as the function ScanSymbol, for this machine; scan_text is not empty.
[[nodiscard]] std::shared_ptr<JitCode> compile_scan(const ControlStep& step,
                                                    const JitOptions& options);

}  // namespace ricci::cpu
