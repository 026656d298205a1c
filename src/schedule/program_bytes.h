// A program as bytes, to be kept in a file or inside another program, and back. What is kept is
// what running needs beside machine code: the plan, calls with their attributes, constants; and
// loops that are written out. The arithmetic of kernels, and the graph, are not.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "ricci/compiler/schedule/program.h"

#include "schedule/sealed_bytes.h"

namespace ricci::schedule {

/// UserError(refused) for ops that exist only in this process: those registered at run time.
[[nodiscard]] std::vector<std::byte> to_bytes(const Program& program);

/// The program; its constants lie in `bytes`, which must outlive it. UserError(file) when the bytes
/// are not a program, are of another version, or are damaged.
[[nodiscard]] Program program_from_bytes(std::span<const std::byte> bytes);

/// The version changes with what the bytes mean.
inline constexpr SealKind ProgramSeal = {{'R', 'i', 'c', 'c', 'i', 'L', 'I', 'R'}, 6};

}  // namespace ricci::schedule
