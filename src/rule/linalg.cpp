// Matrix products and linear systems.
#include "ricci/op/linalg.h"

#include "rule/eval_rules.h"

namespace ricci::rule {

// out[β, m, n] = Σ_k a[β, m, k] · b[β, k, n]
void eval(const op::Matmul&, EvalContext& c) {
  with_number_class(c.dtype(0), [&]<class N>() {
    const Nd<N> a = c.numbers<N>(0);
    const Nd<N> b = c.numbers<N>(1);
    const std::int64_t inner = a.dims.back();
    Nd<N> out(c.result_dims(0));
    const std::size_t rank = out.dims.size();
    for_each_index(out.dims, [&](const StaticDims& index) {
      StaticDims ia = index;
      StaticDims ib = index;
      N total{};
      for (std::int64_t k = 0; k < inner; ++k) {
        ia[rank - 1] = k;
        ib[rank - 2] = k;
        total = add_wrapping(total, mul_wrapping(a.at(ia), b.at(ib)));
      }
      out.at(index) = total;
    });
    c.give(0, out);
  });
}

}  // namespace ricci::rule
