// What a program leaves open where it meets numbers that are not finite, as programs that go one of
// the ways a device may go: the reference leaves out what has no weight, say keys behind a mask,
// which a product of 0 and an infinity does not, and an order of adding may be another.
//
// Every inexact op is asked with its operands, and with others beside them:
// - with their zeros moved to the smallest numbers above and below. What a zero had kept away from
//   the result is there then, and nothing else: an infinity that a quotient by zero is, say, stays
//   what it is;
// - with large numbers for infinities, and infinities for results as large: a factor that all terms
//   of a sum share may be taken out of it, and is then no infinity less the same;
// - a product of many numbers with those alone that are beyond 1: where they leave the range of
// f64,
//   which products are kept in, parts of it may on the way, and then meet a zero;
// - a Fourier transform with NaN, and with zeros, for what is not finite. Which of its own factors
//   are zeros, and which numbers meet before they are multiplied, is up to the way it is computed.
// Where the answers differ a result is open. Ops that are exact are never asked: they give the same
// on all devices.
#pragma once

#include <array>
#include <cstdint>

#include "ricci/ir/graph.h"

namespace ricci::testing {

/// The way a program goes where it has the choice.
enum class Way : std::uint8_t {
  MostNaN,       ///< NaN wherever an infinity may have met a zero, or the other infinity
  ZerosAbove,    ///< no NaN that comes of a zero, which is the smallest positive number,
  ZerosBelow,    ///< or the largest negative one
  LargeNumbers,  ///< no NaN that comes of infinities, which are large numbers
};
inline constexpr std::array AllWays = {Way::MostNaN, Way::ZerosAbove, Way::ZerosBelow,
                                       Way::LargeNumbers};

/// The program that goes it, in bodies too. Composite ops are asked as a whole.
[[nodiscard]] Graph going(const Graph& graph, Way way);

}  // namespace ricci::testing
