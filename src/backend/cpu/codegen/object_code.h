// A program as an object file: machine code of its kernels and loops, what the runtime needs to
// know, and the C functions of its interface, `NAME_create`, `NAME_run`, `NAME_error` and
// `NAME_destroy`. Linked with the runtime it runs without LLVM.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "ricci/compiler/device/backend.h"
#include "ricci/compiler/schedule/program.h"

#include "backend/cpu/codegen/jit.h"

namespace ricci::cpu {

/// The functions that run when a program does, each once: its kernels and loops, and those of
/// bodies that are not part of a loop's own function.
[[nodiscard]] EmittedCode emit_program(const Program& program, const JitOptions& options);

/// `program` is what `parts.program_bytes` holds, with the graphs and the arithmetic.
[[nodiscard]] std::vector<std::byte> emit_object(const Program& program,
                                                 const device::ObjectParts& parts,
                                                 const TargetInfo& target);

}  // namespace ricci::cpu
