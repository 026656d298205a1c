// Counts of what the checks of transforms ran: a row an op, a column a transform or pair of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ricci::testing {

enum class Composition : std::uint8_t {
  Vjp,
  Jvp,
  Vmap,
  JvpOfVjp,
  VjpOfVjp,
  VjpOfVmap,
  VmapOfVjp,
};
inline constexpr std::array<std::string_view, 7> CompositionNames = {
    "vjp", "jvp", "vmap", "jvp of vjp", "vjp of vjp", "vjp of vmap", "vmap of vjp"};

/// Checks made, per composition.
using CompositionCounts = std::array<std::size_t, CompositionNames.size()>;

}  // namespace ricci::testing
