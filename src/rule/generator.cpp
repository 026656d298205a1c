#include "ricci/op/generator.h"

#include "rule/eval_rules.h"

namespace ricci::rule {

// out[i_0, …, i_r] = i_axis
void eval(const op::Iota& op, EvalContext& c) {
  IntNd out(c.result_dims(0));
  for_each_index(out.dims,
                 [&](const StaticDims& index) { out.at(index) = index[op.axis.index()]; });
  c.give(0, out);
}

}  // namespace ricci::rule
