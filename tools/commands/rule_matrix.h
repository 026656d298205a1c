// The part of the op reference about transforms: where each op's rules come from.
#pragma once

#include <string>

#include "ricci/op/table.h"

namespace ricci::tool {

/// `vjp rule, jvp linear, vmap element-wise`, and what carries no derivative.
[[nodiscard]] std::string rules_of(const OpDescriptor& d);
/// A section with one row per op and one column per transform, and pairs of transforms.
[[nodiscard]] std::string rule_matrix();

}  // namespace ricci::tool
