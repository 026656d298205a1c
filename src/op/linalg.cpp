#include "ricci/op/linalg.h"

#include <algorithm>

#include <fmt/format.h>

#include "op/dot_axes.h"
#include "op/index_rules.h"

namespace ricci {
namespace {

void require_no_repeats(const InferContext& in, std::size_t operand, const Axes& contracting,
                        const Axes& batch) {
  std::vector<bool> seen(in[operand].rank(), false);
  for (const Axes* axes : {&contracting, &batch}) {
    for (const Axis a : *axes) {
      if (seen[a.index()]) {
        in.reject("c2",
                  fmt::format("axis {} of {} is listed twice", a.value,
                              operand_text(in, op::DotGeneral::info, operand)),
                  "an axis is contracting, batch or free");
      }
      seen[a.index()] = true;
    }
  }
}

void require_pairs(const InferContext& in, const char* what, const Axes& lhs, const Axes& rhs) {
  for (std::size_t i = 0; i < lhs.size(); ++i) {
    const Dim& l = in[0].dims[lhs[i].index()];
    const Dim& r = in[1].dims[rhs[i].index()];
    if (l == r) continue;
    in.reject("c3", fmt::format("{} axes differ in size: axis {} of 'lhs' {} has {}, axis {} of "
                                "'rhs' {} has {}",
                                what, lhs[i].value, in[0].to_string(), l.to_string(), rhs[i].value,
                                in[1].to_string(), r.to_string()));
  }
}

// A square matrix behind `batch` leading axes (c1) and a right-hand side that goes with it (c2),
// with columns or, where `vectors` allows it, without.
Inferred infer_solve(const InferContext& in, std::size_t batch, bool vectors) {
  const Dims& a = in[0].dims;
  const Dims& b = in[1].dims;
  if (a.size() != batch + 2 || a[batch] != a[batch + 1]) {
    in.reject("c1", fmt::format("'a' ({}) is not a square matrix behind {} batch axes",
                                in[0].to_string(), batch));
  }
  const bool is_vector = vectors && b.size() == batch + 1;
  const bool agrees =
      (is_vector || b.size() == batch + 2) && std::equal(a.begin(), a.end() - 1, b.begin());
  if (!agrees) {
    in.reject(
        "c2",
        fmt::format("'b' ({}) does not go with 'a' ({})", in[1].to_string(), in[0].to_string()),
        vectors ? "b has a's leading sizes and rows, and columns or none"
                : "b has a's leading sizes and rows, and columns");
  }
  require_dtypes(in, "c3", 0, 2, dtypes::floats | dtypes::complexes);
  return in[1];
}

// Rows x, matrices w and the index of one for every row, or of several; gives the type of the
// products.
Type check_grouped(const InferContext& in) {
  const Dims& x = in[0].dims;
  const Dims& w = in[1].dims;
  const Dims& picked = in[2].dims;
  if (x.size() != 2 || w.size() != 3 || x[1] != w[1]) {
    in.reject("c1", fmt::format("'x' ({}) and 'w' ({}) are not [M, K] and [E, K, N]",
                                in[0].to_string(), in[1].to_string()));
  }
  if (picked.empty() || picked.size() > 2 || picked[0] != x[0]) {
    in.reject("c2",
              fmt::format("'expert_idx' ({}) does not go with 'x' ({})", in[2].to_string(),
                          in[0].to_string()),
              "give each row of x one index, or as many as every other row");
  }
  require_dtypes(in, "c3", 0, 2, dtypes::floats | dtypes::ints | dtypes::complexes);
  require_indices(in, "c4", 2);
  Dims out = picked;
  out.push_back(w[2]);
  return in[0].with(std::move(out));
}

}  // namespace

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

Inferred infer(const op::DotGeneral& op, const InferContext& in) {
  if (op.lhs_contracting.size() != op.rhs_contracting.size() ||
      op.lhs_batch.size() != op.rhs_batch.size()) {
    in.reject("c1", fmt::format("{} and {} contracting, {} and {} batch axes cannot be paired",
                                op.lhs_contracting.size(), op.rhs_contracting.size(),
                                op.lhs_batch.size(), op.rhs_batch.size()));
  }
  require_no_repeats(in, 0, op.lhs_contracting, op.lhs_batch);
  require_no_repeats(in, 1, op.rhs_contracting, op.rhs_batch);
  require_pairs(in, "contracting", op.lhs_contracting, op.rhs_contracting);
  require_pairs(in, "batch", op.lhs_batch, op.rhs_batch);
  require_dtypes(in, "c4", 0, 2, dtypes::floats | dtypes::ints | dtypes::complexes);
  Dims out = dims_of(in[0].dims, op.lhs_batch);
  for (const Axis a : free_axes(in[0].rank(), op.lhs_contracting, op.lhs_batch)) {
    out.push_back(in[0].dims[a.index()]);
  }
  for (const Axis a : free_axes(in[1].rank(), op.rhs_contracting, op.rhs_batch)) {
    out.push_back(in[1].dims[a.index()]);
  }
  return in[0].with(std::move(out));
}

Inferred infer(const op::DenseSolve&, const InferContext& in) { return infer_solve(in, 0, true); }
Inferred infer(const op::BatchedDenseSolve&, const InferContext& in) {
  return infer_solve(in, 1, true);
}
Inferred infer(const op::TriangularSolve&, const InferContext& in) {
  return infer_solve(in, in[0].rank() < 2 ? 0 : in[0].rank() - 2, false);
}

Inferred infer(const op::GroupedMatmul&, const InferContext& in) { return check_grouped(in); }

Inferred infer(const op::GroupedMatmulBackward&, const InferContext& in) {
  const Type out = check_grouped(in);
  if (in[3].dtype != out.dtype) {
    in.reject("c3", fmt::format("dy is {}, but x is {}", name(in[3].dtype), name(out.dtype)));
  }
  if (in[3] != out) {
    in.reject("c5", fmt::format("dy is {} instead of {}", in[3].to_string(), out.to_string()));
  }
  return std::vector<Type>{in[0], in[1]};
}

Inferred infer(const op::LoraMatmul&, const InferContext& in) {
  if (in[0].rank() < 1 || in[1].rank() != 2 || in[2].rank() != 2 || in[3].rank() != 2) {
    in.reject("c1", fmt::format("x {}, w {}, a {} and b {} are not vectors and three matrices",
                                in[0].to_string(), in[1].to_string(), in[2].to_string(),
                                in[3].to_string()));
  }
  const Dim& k = in[0].dims.back();
  const Dim& n = in[1].dims[1];
  const Dim& r = in[2].dims[1];
  if (in[1].dims[0] != k || in[2].dims[0] != k || in[3].dims != Dims{r, n}) {
    in.reject("c2", fmt::format("w {}, a {} and b {} do not fit x {}", in[1].to_string(),
                                in[2].to_string(), in[3].to_string(), in[0].to_string()));
  }
  require_dtypes(in, "c3", 0, 4, dtypes::floats | dtypes::complexes);
  Dims out = in[0].dims;
  out.back() = n;
  return in[0].with(std::move(out));
}

}  // namespace ricci
