// Collects the reference kernels; an op without one does not link.
#include <array>

#include "ir/empty_results.h"
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
  const Node& node = context.node();
  if (gives_nothing(node, context.operands(),
                    [&](std::size_t k) { return context.tensor(k).type(); })) {
    for (std::size_t r = 0; r < node.types.size(); ++r) {
      if (node.wanted[r]) context.give(r, Tensor::zeros(node.types[r]));
    }
    return;
  }
  const Op& op = node.op;
  Kernels[static_cast<std::size_t>(op.kind())](op, context);
}

}  // namespace ricci
