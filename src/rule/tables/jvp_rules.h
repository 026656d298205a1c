// The forward rule of every op, declared from the list; each is defined in its family's file unless
// the op's class or traits give one. See `jvp_source`.
#pragma once

#include "ricci/compiler/rule/jvp.h"
#include "ricci/op/ops.h"

namespace ricci::rule {

#define RICCI_OP(Type, builder) Tangents jvp(const op::Type& op, JvpContext& c);
#include "ricci/op/list.def"

}  // namespace ricci::rule
