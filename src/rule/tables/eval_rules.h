// The reference kernel of every op, declared from the list; each is defined in its family's file.
#pragma once

#include "ricci/compiler/rule/eval.h"
#include "ricci/op/ops.h"

#include "rule/number_functions.h"

namespace ricci::rule {

#define RICCI_OP(Type, builder) void eval(const op::Type& op, EvalContext& c);
#include "ricci/op/list.def"

[[nodiscard]] bool eval_compare(CompareKind kind, double a, double b);

}  // namespace ricci::rule
