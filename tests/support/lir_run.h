// Runs programs by the interpreter of programs (the device `lir`).
#pragma once

#include <cstddef>
#include <vector>

#include "ricci/compiler/schedule/program.h"
#include "ricci/interp/interpreter.h"

namespace ricci::testing {

/// The outputs of a program made from `graph`, for whatever device, run twice: with temporaries
/// where they are planned, and, unless told otherwise, with each in an array of its own.
///
/// UserError where the program reports a fault; std::runtime_error when the runs do not give the
/// same bits: then the plan makes two temporaries share a place that both need.
[[nodiscard]] std::vector<Tensor> run_on_lir(const Graph& graph, ricci::Program program,
                                             const Feeds& feeds, bool apart = true);

/// How many runs there were in this process.
[[nodiscard]] std::size_t runs_on_lir();

}  // namespace ricci::testing
