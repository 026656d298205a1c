// Runs a written-out loop as it is written: trip by trip, item by item, one element at a time.
// Every place it reads or writes is checked against the array it lies in.
#pragma once

#include <span>

#include "ricci/loop/written_loop.h"

#include "backend/lir/kernel.h"

namespace ricci::lir {

/// Results that nobody wants have no data. InternalError for a place outside its array.
void run_loop(const loop::WrittenLoop& loop, std::span<const KernelArgument> operands,
              std::span<const KernelArgument> results);

}  // namespace ricci::lir
