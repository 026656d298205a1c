#include "ricci/op/linalg.h"

#include <fmt/format.h>

#include "op/infer_rules.h"

namespace ricci {

Inferred infer(const op::Matmul&, const InferContext& in) {
  for (std::size_t k = 0; k < 2; ++k) {
    if (in[k].rank() < 2) {
      in.reject("c1",
                fmt::format("{} has rank {}, but a matrix needs 2",
                            operand_text(in, op::Matmul::info, k), in[k].rank()),
                "reshape a vector to a row [1, n] or a column [n, 1]");
    }
  }
  const Dims& a = in[0].dims;
  const Dims& b = in[1].dims;
  const Dim& inner_a = a[a.size() - 1];
  const Dim& inner_b = b[b.size() - 2];
  if (!(inner_a == inner_b)) {
    in.reject("c2",
              fmt::format("inner sizes differ: {} in 'a' {} and {} in 'b' {}", inner_a.to_string(),
                          to_string(a), inner_b.to_string(), to_string(b)),
              "transpose one operand, or check which is left and which is right");
  }
  Dims out =
      require_broadcast(in, "c3", Dims(a.begin(), a.end() - 2), Dims(b.begin(), b.end() - 2));
  require_dtypes(in, "c4", 0, 2, dtypes::floats | dtypes::ints | dtypes::complexes);
  out.push_back(a[a.size() - 2]);
  out.push_back(b[b.size() - 1]);
  return in[0].with(std::move(out));
}

}  // namespace ricci
