// Batching: one program for many examples.
//
//   Transformed b = vmap(graph, {{"x"}, {"w", 1}}, 32);    // x: batch in front, w: batch as axis 1
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ricci/transform/transformed.h"

namespace ricci {

/// An input or param that gets a batch axis.
struct BatchedInput {
  std::string name;
  std::int64_t axis = 0;  ///< where the batch is, in the batched shape; negative from the end

  BatchedInput(const char* n, std::int64_t a = 0) : name(n), axis(a) {}             // NOLINT
  BatchedInput(std::string n, std::int64_t a = 0) : name(std::move(n)), axis(a) {}  // NOLINT
};

/// What random ops that depend on nothing batched do under vmap.
enum class BatchedRandom : std::uint8_t {
  Shared,  ///< every example sees the same draw
  Split,   ///< every example draws for itself
};

struct VmapOptions {
  std::vector<std::int64_t> out_axes = {};  ///< per output; one for all; none: 0
  BatchedRandom random = BatchedRandom::Shared;
};

/// Every output gains an axis of size `size`; inputs that are not listed are shared by all
/// examples. UserError(name) for a name that is no input or param.
[[nodiscard]] Transformed vmap(const Graph& graph, const std::vector<BatchedInput>& batched,
                               const Dim& size, const VmapOptions& options = {});

}  // namespace ricci
