// What the compiler made of a graph, for people.
#pragma once

#include <string>

#include "ricci/compiler/device/executable.h"

namespace ricci {

/// A summary, then a line per step: who serves it, what it costs, which ops it is made of and why
/// they are not part of an earlier kernel. Bodies follow their loop or branch, indented.
[[nodiscard]] std::string report_of(const device::Outline& outline);

/// `512`, `1.5k`, `2.25M`.
[[nodiscard]] std::string short_number(double number);

}  // namespace ricci
