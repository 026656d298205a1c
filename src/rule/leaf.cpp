#include "ricci/op/leaf.h"

#include <fmt/format.h>

#include "ricci/op/custom.h"

#include "op/call_custom.h"
#include "rule/rule_fault.h"
#include "rule/tables/eval_rules.h"

namespace ricci::rule {

// The driver supplies inputs and params; their kernels are never reached.
void eval(const op::Input&, EvalContext&) { throw InternalError("an input is not evaluated"); }
void eval(const op::Param&, EvalContext&) { throw InternalError("a param is not evaluated"); }
void eval(const op::Constant& op, EvalContext& c) { c.give(0, op.value); }

void eval(const op::Custom& op, EvalContext& c) {
  const auto entry = c.graph().registry().find_or_throw(op.name, op.version);
  call_custom(op, "the kernel", [&] { entry->eval(op.attrs, c); });
  for (std::size_t r = 0; r < c.node().types.size(); ++r) {
    if (c.given(r) || !c.wanted(r)) continue;
    fail_rule(c.node(), fmt::format("the kernel of {} gives nothing for result {}, which is {}",
                                    name_in_messages(c.node()), r, c.result_type(r).to_string()));
  }
}

}  // namespace ricci::rule
