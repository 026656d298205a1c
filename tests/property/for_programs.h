// Runs a check on many random programs and shrinks the first one that fails.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "property/generator.h"

namespace ricci::testing {

/// RICCI_PROPERTY_COUNT is the number of programs for the cheap properties, usually 10,000; the
/// others scale with it. RICCI_PROPERTY_FIRST is the first seed, usually 0.
[[nodiscard]] std::uint64_t program_count(std::uint64_t usual);
[[nodiscard]] std::uint64_t first_seed();

/// Gives the empty text, or what is wrong.
using Check = std::function<std::string(const Program&)>;
void for_programs(std::uint64_t count, const GeneratorOptions& options, const Check& check);

/// The outputs, or nothing when the program reports a fault of its own: an index out of range, a
/// singular matrix.
[[nodiscard]] std::optional<std::vector<Tensor>> outputs_of(const Graph& graph, const Feeds& feeds);

/// The empty text when all tensors have the same bits.
[[nodiscard]] std::string difference(const std::vector<Tensor>& actual,
                                     const std::vector<Tensor>& expected);

}  // namespace ricci::testing
