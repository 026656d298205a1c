// Rows times the matrix each of them picks, and the transposes of that.
#include "rule/axis_moves.h"
#include "rule/derivative_parts.h"
#include "rule/merged_rows.h"
#include "rule/tables/batch_rules.h"
#include "rule/tables/eval_rules.h"
#include "rule/tables/jvp_rules.h"
#include "rule/tables/vjp_rules.h"

namespace ricci::rule {
namespace {

// Calls `f(i, r, e)` for every row i of x, every product r of it, counted over all rows, and the
// expert e that product is with.
template <class F>
void for_each_product(const EvalContext& c, const F& f) {
  const IntNd experts = c.indices(2, c.dims(1)[0]);
  const std::int64_t picks = experts.dims.size() == 1 ? 1 : experts.dims[1];
  for (std::int64_t r = 0; r < static_cast<std::int64_t>(experts.size()); ++r) {
    f(r / picks, r, experts.data[static_cast<std::size_t>(r)]);
  }
}

template <class N>
void add_product(N& to, N a, N b) {
  to = add_wrapping(to, mul_wrapping(a, b));
}

}  // namespace

// out[r, n] = Σ_k x[i, k] · w[e, k, n]
void eval(const op::GroupedMatmul&, EvalContext& c) {
  with_number_class(c.dtype(0), [&]<class N>() {
    const Nd<N> x = c.numbers<N>(0);
    const Nd<N> w = c.numbers<N>(1);
    const std::int64_t inner = w.dims[1];
    const std::int64_t columns = w.dims[2];
    Nd<N> out(c.result_dims(0));
    for_each_product(c, [&](std::int64_t i, std::int64_t r, std::int64_t e) {
      for (std::int64_t n = 0; n < columns; ++n) {
        N& sum_of_products = out.data[static_cast<std::size_t>(r * columns + n)];
        for (std::int64_t k = 0; k < inner; ++k) {
          add_product(sum_of_products, x.at({i, k}), w.at({e, k, n}));
        }
      }
    });
    c.give(0, out);
  });
}

// dx[i, k] = Σ_{r of i} Σ_n dy[r, n] · w[e, k, n];  dw[e, k, n] = Σ_{r of e} x[i, k] · dy[r, n]
void eval(const op::GroupedMatmulBackward&, EvalContext& c) {
  with_number_class(c.dtype(0), [&]<class N>() {
    const Nd<N> x = c.numbers<N>(0);
    const Nd<N> w = c.numbers<N>(1);
    const std::int64_t inner = w.dims[1];
    const std::int64_t columns = w.dims[2];
    const Nd<N> dy{{count_elements(c.dims(2)), columns}, c.numbers<N>(3).data};
    Nd<N> dx(x.dims);
    Nd<N> dw(w.dims);
    for_each_product(c, [&](std::int64_t i, std::int64_t r, std::int64_t e) {
      for_each_index({inner, columns}, [&](const StaticDims& at) {
        const N g = dy.at({r, at[1]});
        add_product(dx.at({i, at[0]}), g, w.at({e, at[0], at[1]}));
        add_product(dw.at({e, at[0], at[1]}), x.at({i, at[0]}), g);
      });
    });
    if (c.wanted(0)) c.give(0, dx);
    if (c.wanted(1)) c.give(1, dw);
  });
}

namespace {

// One gradient each. What the other one alone would read is there for its sizes.
Value gradient_of_rows(Value x, Value w, Value experts, Value dy) {
  return add_wanted(x.graph(), Op(op::GroupedMatmulBackward{}), std::array{x, w, experts, dy},
                    {true, false})[0];
}
Value gradient_of_experts(Value x, Value w, Value experts, Value dy) {
  return add_wanted(x.graph(), Op(op::GroupedMatmulBackward{}), std::array{x, w, experts, dy},
                    {false, true})[1];
}

}  // namespace

// [gmm-grad-memory] both gradients are grouped products again
Cotangents vjp(const op::GroupedMatmul&, const VjpContext& c) {
  Cotangents out =
      add_wanted(c.graph(), Op(op::GroupedMatmulBackward{}),
                 std::array{conj(c[0]), conj(c[1]), c[2], c.cotangent()}, {c.needs(0), c.needs(1)});
  out.emplace_back();
  return out;
}

// With u and v the cotangents of dx and dw, ⟨u, dx⟩ + ⟨v, dw⟩ = Σ ⟨u·w + x·v, dy⟩.
Cotangents vjp(const op::GroupedMatmulBackward&, const VjpContext& c) {
  Cotangents out = c.none();
  const Value u = c.cotangent(0);
  const Value v = c.cotangent(1);
  const Value experts = c[2];
  const Value dy = conj(c[3]);
  if (c.needs(0) && v.valid()) out[0] = gradient_of_rows(c[0], v, experts, dy);
  if (c.needs(1) && u.valid()) out[1] = gradient_of_experts(u, c[1], experts, dy);
  if (c.needs(3)) {
    const Value by_u = u.valid() ? grouped_matmul(u, conj(c[1]), experts) : Value();
    const Value by_v = v.valid() ? grouped_matmul(conj(c[0]), v, experts) : Value();
    out[3] = sum_of(by_u, by_v);
  }
  return out;
}

// Each gradient is linear in dy and in the factor it reads.
Tangents jvp(const op::GroupedMatmulBackward&, JvpContext& c) {
  Tangents out = c.none();
  const std::vector<bool>& wanted = c.node().wanted;
  if (c.live(3)) {
    out = add_wanted(c.graph(), c.node().op, std::array{c[0], c[1], c[2], c.tangent(3)}, wanted);
  }
  if (wanted[0] && c.live(1)) {
    out[0] = sum_of(out[0], gradient_of_rows(c[0], c.tangent(1), c[2], c[3]));
  }
  if (wanted[1] && c.live(0)) {
    out[1] = sum_of(out[1], gradient_of_experts(c.tangent(0), c[1], c[2], c[3]));
  }
  return out;
}

namespace {

// [B, M, …] or [B, M, k, …] → [M, B, …] or [M, B·k, …]: examples as further products of the rows
// they share, so that those are not repeated. `picks` says that there is an axis k.
Value as_products(Value v, bool picks) {
  const Value apart = with_axis_moved(v, 0, 1);
  if (!picks) return apart;
  Dims dims = apart.dims();
  dims[1] = dims[1] * dims[2];
  dims.erase(dims.begin() + 2);
  return reshape_to(apart, std::move(dims));
}

// A stand-in for an operand that is read for its sizes alone.
Value sizes_only(Value like, Dims dims) { return broadcast_to(zero_like(like), std::move(dims)); }

// The experts of examples: those they share, or one after the other with their indices moved on.
struct Experts {
  Value w;
  Value indices;  ///< with the batch in front
};
Experts experts_of(const VmapContext& c, bool apart) {
  const Value indices = c.lifted(2);
  if (!apart) return {c[1], indices};
  const Dims& dims = c.type(1).dims;
  return {c.batched(1) ? c.folded(1) : sizes_only(c[1], {c.batch() * dims[0], dims[1], dims[2]}),
          merged_rows(indices, dims[0])};
}

}  // namespace

// [gmm-rest] examples of shared experts are more rows, or more products of rows they share; experts
// of their own follow each other
BatchedValues batch(const op::GroupedMatmul&, const VmapContext& c) {
  const auto [w, indices] = experts_of(c, c.batched(1));
  if (c.batched(0)) return {c.unfolded(grouped_matmul(c.folded(0), w, merge_front(indices)))};
  const bool picks = c.type(2).rank() == 2;
  const Value out = grouped_matmul(c[0], w, as_products(indices, picks));
  Dims dims = out.dims();
  if (picks) {
    dims[1] = c.type(2).dims[1];
    dims.insert(dims.begin() + 1, c.batch());
  }
  return {with_axis_moved(reshape_to(out, std::move(dims)), 1, 0)};
}

// Experts that examples share have a gradient in each of them, so for dw they are apart always.
BatchedValues batch(const op::GroupedMatmulBackward&, const VmapContext& c) {
  BatchedValues out(2);
  const Dims& row = c.type(0).dims;
  if (c.node().wanted[0]) {
    const auto [w, indices] = experts_of(c, c.batched(1));
    const Value x = c.batched(0) ? c.folded(0) : sizes_only(c[0], {c.batch() * row[0], row[1]});
    out[0] = c.unfolded(gradient_of_rows(x, w, merge_front(indices), c.folded(3)), 0);
  }
  if (c.node().wanted[1]) {
    const auto [w, indices] = experts_of(c, true);
    const bool picks = c.type(2).rank() == 2;
    const Value dw = c.batched(0)
                         ? gradient_of_experts(c.folded(0), w, merge_front(indices), c.folded(3))
                         : gradient_of_experts(c[0], w, as_products(indices, picks),
                                               as_products(c.lifted(3), picks));
    out[1] = c.unfolded(dw, 1);
  }
  return out;
}

}  // namespace ricci::rule
