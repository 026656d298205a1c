// A scan with a small body as one function: the loop and, written out, every vector of the body.
// Values of the body live in registers from step to step as far as there are any.
#pragma once

#include <memory>

#include "ricci/schedule/program.h"

#include "backend/cpu/jit.h"

namespace ricci::cpu {

/// `operands` and `results` point to row-major arrays; results nobody wants are null.
using ScanFunction = void (*)(void* const* operands, void* const* results);

struct ScanCode {
  std::shared_ptr<const JitCode> code;
  ScanFunction function = nullptr;
};

/// Nothing (a null function) when the body is too large or has what cannot be written out.
[[nodiscard]] ScanCode compile_scan(const ControlStep& step);

}  // namespace ricci::cpu
