// Collects the reference kernels; an op without one does not link.
#include <array>

#include "rule/tables/eval_rules.h"
#include "support/float_environment.h"

namespace ricci {
namespace {

using Kernel = void (*)(const Op&, EvalContext&);

template <class T>
void run(const Op& op, EvalContext& c) {
  rule::eval(*op.as<T>(), c);
}

constexpr auto Kernels = std::to_array<Kernel>({
#define RICCI_OP(Type, builder) run<op::Type>,
#include "ricci/op/list.def"
});

}  // namespace

void evaluate(EvalContext& context) {
  const DefaultFloatEnvironment floats;
  const Op& op = context.node().op;
  Kernels[static_cast<std::size_t>(op.kind())](op, context);
}

}  // namespace ricci
