// What an op header needs to declare its struct, info and fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ricci/op/attr.h"
#include "ricci/op/info.h"

namespace ricci {

/// How a field appears: left out when it has its default, demanded, or written before the braces
/// (`input "x"`).
enum class Presence : std::uint8_t { Defaulted, Required, Positional };

}  // namespace ricci
