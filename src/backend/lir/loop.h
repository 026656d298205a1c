// Runs a written-out loop as it is written: trip by trip, item by item, one element at a time.
// Every place it reads or writes is checked against the array it lies in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ricci/compiler/loop/written_loop.h"

#include "backend/lir/kernel.h"

namespace ricci::lir {

/// How much room a loop needs for the arrays of its bodies: those that are neither constants nor
/// parts of its operands, which are read where they lie.
[[nodiscard]] std::int64_t loop_room_bytes(const loop::WrittenLoop& loop);

/// Results that nobody wants have no data. InternalError for a place outside its array.
void run_loop(const loop::WrittenLoop& loop, std::span<const KernelArgument> operands,
              std::span<const KernelArgument> results, std::span<std::byte> room);

}  // namespace ricci::lir
