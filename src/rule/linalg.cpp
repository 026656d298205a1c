// Matrix products.
#include "ricci/op/linalg.h"

#include "ricci/build/build.h"

#include "op/dot_axes.h"
#include "rule/tables/eval_rules.h"
#include "rule/tables/expand_rules.h"

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

// out[β, i, j] = Σ_κ lhs[β, i, κ] · rhs[β, κ, j], each index put where its axis is
void eval(const op::DotGeneral& op, EvalContext& c) {
  with_number_class(c.dtype(0), [&]<class N>() {
    const Nd<N> lhs = c.numbers<N>(0);
    const Nd<N> rhs = c.numbers<N>(1);
    const Axes lhs_free = free_axes(lhs.dims.size(), op.lhs_contracting, op.lhs_batch);
    const Axes rhs_free = free_axes(rhs.dims.size(), op.rhs_contracting, op.rhs_batch);
    StaticDims summed;
    for (const Axis a : op.lhs_contracting) summed.push_back(lhs.dims[a.index()]);
    const auto put = [](StaticDims& into, const Axes& axes, const std::int64_t* from) {
      for (const Axis a : axes) into[a.index()] = *from++;
    };
    Nd<N> out(c.result_dims(0));
    StaticDims il(lhs.dims.size());
    StaticDims ir(rhs.dims.size());
    for_each_index(out.dims, [&](const StaticDims& index) {
      const std::int64_t* at = index.data();
      put(il, op.lhs_batch, at);
      put(ir, op.rhs_batch, at);
      put(il, lhs_free, at + op.lhs_batch.size());
      put(ir, rhs_free, at + op.lhs_batch.size() + lhs_free.size());
      N total{};
      for_each_index(summed, [&](const StaticDims& k) {
        put(il, op.lhs_contracting, k.data());
        put(ir, op.rhs_contracting, k.data());
        total = add_wrapping(total, mul_wrapping(lhs.at(il), rhs.at(ir)));
      });
      out.at(index) = total;
    });
    c.give(0, out);
  });
}

namespace {

// An operand as [batch.., rows, columns], its axes brought together in that order.
Value as_matrix(Value x, const Axes& batch, const Axes& rows, const Axes& columns) {
  Axes perm = batch;
  perm.insert(perm.end(), rows.begin(), rows.end());
  perm.insert(perm.end(), columns.begin(), columns.end());
  Dims dims = dims_of(x.dims(), batch);
  dims.push_back(product(dims_of(x.dims(), rows)));
  dims.push_back(product(dims_of(x.dims(), columns)));
  return reshape_to(transpose(x, {.perm = std::move(perm)}), std::move(dims));
}

}  // namespace

std::vector<Value> expand(const op::DotGeneral& op, const ExpandContext& c) {
  const Axes lhs_free = free_axes(c[0].rank(), op.lhs_contracting, op.lhs_batch);
  const Axes rhs_free = free_axes(c[1].rank(), op.rhs_contracting, op.rhs_batch);
  const Value l = as_matrix(c[0], op.lhs_batch, lhs_free, op.lhs_contracting);
  const Value r = as_matrix(c[1], op.rhs_batch, op.rhs_contracting, rhs_free);
  return {reshape_to(matmul(l, r), c.node.types[0].dims)};
}

namespace {

// y[β, n] = Σ_k x[β, k] · w[k, n] + scale · Σ_r (Σ_k x[β, k] · a[k, r]) · b[r, n]
template <class N>
void eval_lora(const op::LoraMatmul& op, EvalContext& c) {
  const Nd<N> x = c.numbers<N>(0);
  const Nd<N> w = c.numbers<N>(1);
  const Nd<N> a = c.numbers<N>(2);
  const Nd<N> b = c.numbers<N>(3);
  const std::int64_t inner = x.dims.back();
  Nd<N> y(c.result_dims(0));
  for_each_index(y.dims, [&](const StaticDims& index) {
    const std::int64_t n = index.back();
    StaticDims ix = index;
    const auto row_times = [&](const Nd<N>& matrix, std::int64_t column) {
      N total{};
      for (ix.back() = 0; ix.back() < inner; ++ix.back()) {
        total += x.at(ix) * matrix.at({ix.back(), column});
      }
      return total;
    };
    N correction{};
    for (std::int64_t r = 0; r < b.dims[0]; ++r) correction += row_times(a, r) * b.at({r, n});
    y.at(index) = row_times(w, n) + op.scale.value * correction;
  });
  c.give(0, y);
}

}  // namespace

void eval(const op::LoraMatmul& op, EvalContext& c) {
  if (is_complex(c.dtype(0))) return eval_lora<std::complex<double>>(op, c);
  eval_lora<double>(op, c);
}

std::vector<Value> expand(const op::LoraMatmul& op, const ExpandContext& c) {
  Value x = c[0];
  if (x.rank() == 1) x = reshape_to(x, {1, x.dims()[0]});
  const Value y = matmul(x, c[1]) + matmul(matmul(x, c[2]), c[3]) * op.scale.value;
  return {reshape_to(y, c.node.types[0].dims)};
}

}  // namespace ricci::rule
