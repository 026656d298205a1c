// The reverse rule of every op, declared from the list; each is defined in its family's file unless
// the op's class or traits give one. See `vjp_source`.
#pragma once

#include "ricci/compiler/rule/vjp.h"
#include "ricci/op/ops.h"

namespace ricci::rule {

#define RICCI_OP(Type, builder)                            \
  Cotangents vjp(const op::Type& op, const VjpContext& c); \
  ForwardResults forward_keeping(const op::Type& op, const ForwardContext& c);
#include "ricci/op/list.def"

}  // namespace ricci::rule
