// Does a device compute what the reference computes? Exactly, where every op on the way is exact;
// within a bound that the program itself gives elsewhere.
//
// The bound is what rounding does to the reference: the program is run again with its inexact ops
// seeing and giving numbers that are off by a unit in the last place or two, and with nothing for
// what rounding may leave of terms that cancel (`support/rounded_otherwise.h`). Where such a run
// moves an output, a device that adds in another order may move it as far; where it does not, not
// even a sort or a comparison excuses a difference. Composite ops are moved as a whole, and written
// out only where that does not explain a difference.
//
// An infinity or NaN is accepted where the reference or one of these runs gives the same one.
// Beyond that only what runs give that go the ways which are open where numbers are not finite
// (`support/open_numbers.h`), element by element: such elements are counted. Where an output
// depends on a product of many complex numbers that overflows, what is not finite may look
// otherwise. A run that reports a fault excuses nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ricci/compiler/schedule/program.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/graph.h"
#include "ricci/support/error.h"

namespace ricci::testing {

/// Outputs, or the code of the fault that was reported instead.
using Outcome = std::variant<std::vector<Tensor>, ErrorCode>;

[[nodiscard]] Outcome reference_outcome(const Graph& graph, const Feeds& feeds);
/// Compiled and run with every buffer next to a page nobody may touch (`run_between_guards`).
[[nodiscard]] Outcome compiled_outcome(const Graph& graph, const Feeds& feeds, bool fuse);
/// The same with outputs in the buffers of inputs wherever one has the type; counts these outputs.
[[nodiscard]] Outcome donated_outcome(const Graph& graph, const Feeds& feeds,
                                      std::size_t& donations);

/// What a program is made for, before it is run by the interpreter of programs (`lir`).
enum class MadeFor : std::uint8_t { Lir, Cramped, Cpu, CpuOpByOp };
/// As far as this build has the devices.
[[nodiscard]] std::span<const MadeFor> all_made_for();
[[nodiscard]] std::string_view name(MadeFor target);
[[nodiscard]] ricci::Program program_for(const Graph& graph, MadeFor target);
/// The same in two steps, between which the graph can be looked at.
[[nodiscard]] Graph prepared_for(const Graph& graph, MadeFor target);
[[nodiscard]] ricci::Program program_of_prepared_for(Graph prepared, MadeFor target);
/// Run by it with temporaries as planned and apart (`run_on_lir`).
[[nodiscard]] Outcome lir_outcome(const Graph& graph, const Feeds& feeds, MadeFor target);
/// Compiled for `lir` and run with the host's buffers, of which outputs and inputs share those they
/// can; counts these outputs.
[[nodiscard]] Outcome donated_lir_outcome(const Graph& graph, const Feeds& feeds,
                                          std::size_t& donations);

/// Per output: is it determined to the bit?
[[nodiscard]] std::vector<bool> exact_outputs(const Graph& graph);

/// How often outputs were compared, and how.
struct AgreementCounts {
  std::size_t exactly = 0;
  std::size_t closely = 0;    ///< within the dtype's tolerance
  std::size_t by_spread = 0;  ///< only within what rounding does to the reference
  std::size_t faults = 0;
  std::size_t elements = 0;  ///< of all outputs
  std::size_t excused = 0;   ///< of them, that are right only on a way that is open
};

/// `3 outputs exact, 2 close, 0 within the reference's own rounding, 0 faults; 1 of 9 elements
/// open`
[[nodiscard]] std::string to_string(const AgreementCounts& counts);
/// Expects that hardly any element was excused: one in a thousand of many.
void expect_few_excused(const AgreementCounts& counts);

/// The empty text when `actual` may be what a device makes of the program.
[[nodiscard]] std::string disagreement(const Graph& graph, const Feeds& feeds,
                                       const Outcome& actual, const Outcome& expected,
                                       AgreementCounts* counts = nullptr);

/// The same for a program of which the device computes only what is asked for: not what only a
/// branch never taken reads, nor other results of an op. That might fault.
[[nodiscard]] std::string device_disagreement(const Graph& graph, const Feeds& feeds,
                                              const Outcome& actual, const Outcome& expected,
                                              AgreementCounts* counts = nullptr);

/// Expects agreement of every device, fused and op by op.
void expect_agreement_everywhere(const Graph& graph, const Feeds& feeds);

}  // namespace ricci::testing
