// The batching rule of every op, declared from the list; each is defined in its family's file
// unless the op's class or traits give one. See `batch_source`.
#pragma once

#include "ricci/compiler/rule/batch.h"
#include "ricci/op/ops.h"

namespace ricci::rule {

#define RICCI_OP(Type, builder) BatchedValues batch(const op::Type& op, const VmapContext& c);
#include "ricci/op/list.def"

}  // namespace ricci::rule
