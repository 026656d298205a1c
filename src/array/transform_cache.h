// Transformed functions that were made before: a function that is differentiated again and again
// outside of `jit` is traced each time, but not differentiated.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ricci/transform/transformed.h"

#include "array/node.h"

namespace ricci::detail {

/// A graph made of another one, and which array each of its inputs is: their names.
struct MadeFunction {
  std::shared_ptr<const Callee> callee;
  std::vector<std::string> inputs;
  std::map<std::string, std::string, std::less<>> added;  ///< `Transformed::names`

  /// What an input that the transform added is called in it, by its conventional name: another
  /// one where the function has an input of that name.
  [[nodiscard]] const std::string& name_of(std::string_view conventional) const;
};
/// What transforms of a graph give: one function, or the two halves of a derivative.
struct MadeFunctions {
  std::vector<MadeFunction> functions;
  std::vector<std::string> kept;  ///< names of what the second half reads besides its own inputs
  std::vector<std::string> residuals;  ///< those of them that the first half gives, in order
  std::vector<bool> takes;
};

/// The result of `make` for `source`, from memory where the same was asked before.
[[nodiscard]] std::shared_ptr<const MadeFunctions> made_from(
    const std::shared_ptr<const Callee>& source, const std::string& what,
    const std::function<MadeFunctions(const Graph&)>& make);

[[nodiscard]] MadeFunction make_function(Graph graph);
[[nodiscard]] MadeFunction make_function(Transformed transformed);

/// Arrays by the names of a graph's inputs.
using NamedArrays = std::map<std::string, Array, std::less<>>;
[[nodiscard]] NamedArrays named_inputs(const Graph& graph, std::span<const Array> arrays);
[[nodiscard]] std::vector<Array> call_made(const MadeFunction& f, const NamedArrays& arrays,
                                           std::source_location where);

}  // namespace ricci::detail
