// Cases as programs, and the programs transforms make of them: gradients, tangents and batches.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ricci/interp/interpreter.h"

#include "ops/cases.h"

namespace ricci::testing {

using Names = std::vector<std::string>;

/// A graph with values for its inputs, and the inputs that can be moved.
struct CaseProgram {
  Graph graph{"case"};
  Feeds feeds;
  Names fixed = {};  ///< inputs that only count as what they are: indices held by floats

  [[nodiscard]] bool is_fixed(const std::string& name) const;
  [[nodiscard]] Names inputs() const;
  [[nodiscard]] Names differentiable() const;
};

[[nodiscard]] CaseProgram program_of(const Case& c, DType dtype);

/// The gradient as a program of its own: inputs and cotangents in, gradients out.
[[nodiscard]] CaseProgram gradient_of(const CaseProgram& p, std::uint64_t seed);
/// Forward mode: inputs and tangents in, outputs and their tangents out.
[[nodiscard]] CaseProgram tangent_of(const CaseProgram& p, std::uint64_t seed);
/// The program over a batch of some inputs, and the feeds of each example.
[[nodiscard]] std::pair<CaseProgram, std::vector<Feeds>> batch_of(const Case& c,
                                                                  const CaseProgram& p,
                                                                  const Names& batched,
                                                                  std::int64_t batch);

}  // namespace ricci::testing
