// A loop with a small body as one function: the loop and, written out, every vector of the body.
// Values of the body live in registers from trip to trip as far as there are any.
#pragma once

#include <memory>
#include <string>

#include "ricci/compiler/loop/written_loop.h"

#include "backend/cpu/codegen/jit.h"
#include "backend/cpu/run/code_source.h"

namespace ricci::cpu {

/// Adds a loop to a module as a function (see LoopFunction).
void add_loop(llvm::Module& module, const loop::WrittenLoop& loop, const std::string& symbol,
              const TargetInfo& target);
inline constexpr const char* LoopSymbol = "loop";
/// All that a loop's code depends on.
[[nodiscard]] std::string loop_text(const loop::WrittenLoop& loop);
/// The loop as the function LoopSymbol, for this machine.
[[nodiscard]] std::shared_ptr<JitCode> compile_loop(const loop::WrittenLoop& loop,
                                                    const JitOptions& options);

}  // namespace ricci::cpu
