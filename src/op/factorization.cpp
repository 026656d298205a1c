#include "ricci/op/factorization.h"

#include <algorithm>

#include <fmt/format.h>

#include "op/index_rules.h"

namespace ricci {
namespace {

void require_matrix(const InferContext& in) {
  if (in[0].rank() >= 2) return;
  in.reject("c1", fmt::format("'a' ({}) has rank {}, but a matrix needs 2", in[0].to_string(),
                              in[0].rank()));
}

void require_field(const InferContext& in, std::string_view label) {
  require_dtypes(in, label, 0, 1, dtypes::floats | dtypes::complexes);
}

void require_square(const InferContext& in) {
  require_matrix(in);
  const Dims& a = in[0].dims;
  if (a[a.size() - 2] != a.back()) {
    in.reject("c1", fmt::format("'a' ({}) is not square: {} rows and {} columns", in[0].to_string(),
                                a[a.size() - 2].to_string(), a.back().to_string()));
  }
  require_field(in, "c2");
}

// A matrix of any shape; gives the smaller of its sizes.
Dim require_rectangle(const InferContext& in) {
  require_matrix(in);
  const Dims& a = in[0].dims;
  const Dim& rows = a[a.size() - 2];
  const Dim& columns = a.back();
  const auto excess = (rows - columns).try_value();
  if (!excess) {
    in.reject("c2",
              fmt::format("'a' ({}) may have more rows than columns, or fewer", in[0].to_string()),
              "make the matrix square, or bind its sizes");
  }
  require_field(in, "c3");
  return *excess < 0 ? rows : columns;
}

// The batch axes of a, and then these.
Dims behind_batch(const Type& a, std::initializer_list<Dim> dims) {
  Dims out(a.dims.begin(), a.dims.end() - 2);
  out.insert(out.end(), dims.begin(), dims.end());
  return out;
}

Type real(const Type& a, Dims dims) { return {real_part_of(a.dtype), std::move(dims)}; }

const Dim& rows_of(const Type& a) { return a.dims[a.rank() - 2]; }
const Dim& columns_of(const Type& a) { return a.dims.back(); }

}  // namespace

Inferred infer(const op::Cholesky&, const InferContext& in) {
  require_square(in);
  return in[0];
}

Inferred infer(const op::Lu&, const InferContext& in) {
  const Dim k = require_rectangle(in);
  const Type& a = in[0];
  return std::vector<Type>{a, Type{DType::I32, behind_batch(a, {k})},
                           Type{DType::I32, behind_batch(a, {rows_of(a)})}};
}

Inferred infer(const op::Qr&, const InferContext& in) {
  const Dim k = require_rectangle(in);
  const Type& a = in[0];
  return std::vector<Type>{a.with(behind_batch(a, {rows_of(a), k})),
                           a.with(behind_batch(a, {k, columns_of(a)}))};
}

Inferred infer(const op::Eigh&, const InferContext& in) {
  require_square(in);
  return std::vector<Type>{real(in[0], behind_batch(in[0], {columns_of(in[0])})), in[0]};
}

Inferred infer(const op::Svd&, const InferContext& in) {
  const Dim k = require_rectangle(in);
  const Type& a = in[0];
  return std::vector<Type>{a.with(behind_batch(a, {rows_of(a), k})), real(a, behind_batch(a, {k})),
                           a.with(behind_batch(a, {k, columns_of(a)}))};
}

Inferred infer(const op::MatrixExp&, const InferContext& in) {
  require_square(in);
  return in[0];
}

Inferred infer(const op::Adjugate&, const InferContext& in) {
  require_square(in);
  return in[0];
}

Inferred infer(const op::Det&, const InferContext& in) {
  require_square(in);
  return in[0].with(behind_batch(in[0], {}));
}

Inferred infer(const op::Pinv& op, const InferContext& in) {
  (void)require_rectangle(in);
  if (op.rcond && !(op.rcond->value >= 0 && op.rcond->value < 1)) {
    in.reject("c4", fmt::format("rcond is {}", op.rcond->value),
              "give a share of the largest singular value, such as 1e-6");
  }
  return in[0].with(behind_batch(in[0], {columns_of(in[0]), rows_of(in[0])}));
}

}  // namespace ricci
