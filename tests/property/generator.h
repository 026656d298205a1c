// Random valid programs, from a seed. The case tables of all ops are the templates: a program grows
// by taking a case and finding operands of its types among the values there are, so a new op takes
// part as soon as it has cases. Cases are small; large programs (`large_programs.h`), those of
// nested control flow (`nested_programs.h`) and those of views (`woven_programs.h`) are drawn
// apart.
//
//   Program p = generate(seed, {.nodes = 20});
//   std::vector<Tensor> out = interpret(p.graph, p.feeds);
//   Program small = shrink(p, [](const Program& q) { return still_fails(q); });
#pragma once

#include <cstdint>
#include <functional>

#include "ricci/interp/interpreter.h"
#include "ricci/ir/graph.h"

namespace ricci::testing {

struct Program {
  Graph graph{"program"};
  Feeds feeds;  ///< values for inputs and params of known sizes
};

struct GeneratorOptions {
  std::size_t nodes = 12;            ///< how many ops are drawn; glue comes on top
  DTypeSet dtypes = dtypes::all;     ///< dtypes cases are crossed with
  bool control_flow = true;          ///< draw ops with bodies
  bool differentiable_only = false;  ///< only floats, and only ops that have a derivative
  bool random = false;               ///< draw ops that draw numbers
  bool tame = false;                 ///< no infinities, NaN or zeros among the values
  bool symbolic = false;             ///< draw cases with symbolic sizes; such programs do not run
  bool nested = false;               ///< control flow in control flow: `nested_programs.h`
  bool woven = false;                ///< views and what reads them: `woven_programs.h`
  bool large = false;                ///< one program in eight has tensors of some 30,000 elements
};

[[nodiscard]] Program generate(std::uint64_t seed, const GeneratorOptions& options = {});

/// The smallest program found for which `fails` still holds, by dropping outputs, replacing nodes
/// with inputs or with their own operands, and nodes of bodies with zeros. `fails` must hold for
/// `program`.
[[nodiscard]] Program shrink(Program program, const std::function<bool(const Program&)>& fails);

/// The program as text, for failure messages.
[[nodiscard]] std::string describe(const Program& program);

}  // namespace ricci::testing
