// A scan with a small body as one function: the loop and, written out, every vector of the body.
// Values of the body live in registers from step to step as far as there are any.
#pragma once

#include <memory>
#include <string>

#include "ricci/schedule/program.h"

#include "backend/cpu/code_source.h"
#include "backend/cpu/jit.h"

namespace ricci::cpu {

/// Adds a loop to a module as a function. False, and nothing added, when the body is too large or
/// has what cannot be written out.
[[nodiscard]] bool add_scan(llvm::Module& module, const ControlStep& step,
                            const std::string& symbol, const TargetInfo& target);
/// Nothing (a null function) when the body is too large or has what cannot be written out.
[[nodiscard]] ScanCode compile_scan(const ControlStep& step);

}  // namespace ricci::cpu
