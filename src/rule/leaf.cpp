#include "ricci/op/leaf.h"

#include "ricci/op/custom.h"

#include "rule/tables/eval_rules.h"

namespace ricci::rule {

// The driver supplies inputs and params; their kernels are never reached.
void eval(const op::Input&, EvalContext&) { throw InternalError("an input is not evaluated"); }
void eval(const op::Param&, EvalContext&) { throw InternalError("a param is not evaluated"); }
void eval(const op::Constant& op, EvalContext& c) { c.give(0, op.value); }

void eval(const op::Custom& op, EvalContext& c) {
  c.graph().registry().find_or_throw(op.name, op.version)->eval(op.attrs, c);
}

}  // namespace ricci::rule
