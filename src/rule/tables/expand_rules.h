// The expansion of every composite and block, and of the structured ops that have one, declared
// from the list.
#pragma once

#include "ricci/compiler/rule/expand.h"
#include "ricci/op/ops.h"

namespace ricci::rule {

#define RICCI_COMPOSITE(Type, builder) \
  std::vector<Value> expand(const op::Type& op, const ExpandContext& c);
#define RICCI_PRIMITIVE_EXPANDABLE RICCI_COMPOSITE
#define RICCI_STRUCTURED(Type, builder)
#define RICCI_STRUCTURED_EXPANDABLE RICCI_COMPOSITE
#define RICCI_CONTROL(Type, builder)
#define RICCI_CONTROL_EXPANDABLE RICCI_COMPOSITE
#define RICCI_BLOCK RICCI_COMPOSITE
#include "ricci/op/list.def"

}  // namespace ricci::rule
