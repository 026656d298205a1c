// The state of the generator that keys are drawn from where none is given.
#pragma once

#include <cstdint>

namespace ricci::detail {

struct GeneratorState {
  std::uint64_t seed = 0;
  std::uint64_t count = 0;  ///< keys drawn
};
[[nodiscard]] GeneratorState generator_state();
void set_generator_state(const GeneratorState& state);

}  // namespace ricci::detail
