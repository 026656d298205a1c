// Derivatives and batching of the matrix product.
#include "rule/derivative_parts.h"
#include "rule/tables/batch_rules.h"
#include "rule/tables/vjp_rules.h"

namespace ricci::rule {
namespace {

// [.., m, n] → [Π.. · m, n]
Value as_matrix(Value v) {
  Dim rows = 1;
  for (std::size_t i = 0; i + 1 < v.rank(); ++i) rows = rows * v.dims()[i];
  return reshape_to(v, {rows, v.dims().back()});
}

}  // namespace

// da = g·bᴴ, db = aᴴ·g
Cotangents vjp(const op::Matmul&, const VjpContext& c) {
  Cotangents out = c.none();
  const Value a = c[0];
  const Value b = c[1];
  const Value g = c.cotangent();
  if (c.needs(0)) out[0] = unbroadcast(matmul(g, transpose_last(conj(b))), a.type());
  if (c.needs(1)) {
    // [LA-03] one product over all rows, not one per batch and a sum
    const bool shared = b.rank() == 2;
    const Value left = shared ? as_matrix(a) : a;
    const Value right = shared ? as_matrix(g) : g;
    out[1] = unbroadcast(matmul(transpose_last(conj(left)), right), b.type());
  }
  return out;
}

BatchedValues batch(const op::Matmul& op, const VmapContext& c) {
  const std::size_t rank = c.node().types[0].rank();
  return c.emit(Op(op), std::array{c.aligned(0, rank), c.aligned(1, rank)});
}

}  // namespace ricci::rule
