// The verifier of programs: can this one be run without touching memory that is not its own? Runs
// on every program that is made in debug builds, and on every one that is read from bytes.
#pragma once

#include <optional>
#include <string>

#include "ricci/compiler/schedule/program.h"
#include "ricci/compiler/schedule/target.h"

namespace ricci {

/// What is wrong with a program, or with one of its bodies; nothing when it is well formed:
/// - steps name buffers, kernels and bodies that exist, as many as their op or kernel takes;
/// - calls have the types their op gives them;
/// - temporaries lie inside the arena, at multiples of the target's alignment, views inside their
///   buffers, and what kernels read and write at places that are known beforehand inside their
///   arguments;
/// - temporaries are filled before they are read, and two that are wanted at the same time do not
///   share memory, unless a kernel replaces the one by the other element by element.
[[nodiscard]] std::optional<std::string> find_fault(
    const Program& program, const schedule::Target& target = schedule::plain_target());
/// Throws InternalError that says what is wrong.
void verify(const Program& program, const schedule::Target& target = schedule::plain_target());

}  // namespace ricci
