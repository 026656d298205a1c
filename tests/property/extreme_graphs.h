// Graphs at the edge of what is allowed, drawn from bytes: cases of ops and random programs whose
// attributes become extreme numbers and whose sizes become 0, 1 or odd. Whatever bytes say, a graph
// is refused with a UserError, or it is well formed and a device computes what the reference does.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "property/generator.h"

namespace ricci::testing {

struct ExtremeResult {
  enum class Kind : std::uint8_t {
    Refused,   ///< by the builders, with a UserError
    TooLarge,  ///< well formed, but more work than a test should have
    Symbolic,  ///< well formed, but its sizes are not known
    Ran,       ///< on the interpreter and compiled
  };
  Kind kind = Kind::Refused;
  std::string wrong;  ///< the empty text when all is well
};

enum class ExtremeRun : std::uint8_t {
  Compiled,  ///< on the CPU, or what stands in for it
  /// As a program made for it, step by step by the interpreter of programs, which checks every
  /// place. What takes long is done for a few, as chance over the bytes has it: see
  /// `ExtremeShares`.
  Interpreted,
};

/// One in so many of the interpreted graphs …
struct ExtremeShares {
  std::uint64_t compiled = 2048;      ///< is compiled too: code takes a thousand times as long
  std::uint64_t calls_compiled = 16;  ///< the same where there is no kernel to make code of
  std::uint64_t larger = 32;          ///< may have ten times the work
  std::uint64_t apart = 4;            ///< runs again with each temporary in an array of its own
  std::uint64_t printed = 4;          ///< is printed and read again
};

/// Builds the graph the bytes stand for, verifies it, and runs it if it is small.
[[nodiscard]] ExtremeResult try_extreme_graph(std::span<const std::uint8_t> bytes,
                                              ExtremeRun how = ExtremeRun::Compiled);

/// The graph's nodes and their elements, each as often as its body runs; at most `most`.
[[nodiscard]] std::int64_t counted_work(const Graph& graph, std::int64_t most);

}  // namespace ricci::testing
