// Derivatives of scatter. A row of its result is one value of its own and those of the updates that
// name it, combined: what each rule needs is each one's share of that row.
#include "ricci/build/select.h"

#include "rule/derivative_parts.h"
#include "rule/tables/jvp_rules.h"
#include "rule/tables/vjp_rules.h"

namespace ricci::rule {
namespace {

// The operands with one axis of updates.
struct ScatterRows {
  Value x;        ///< [R, t…]
  Value updates;  ///< [K, t…]
  Value indices;  ///< [K]
};

Dims with_front(const Dims& dims, const Dim& front) {
  Dims out = dims;
  out[0] = front;
  return out;
}

Value flat_indices(Value indices) { return reshape_to(indices, {product(indices.dims())}); }
// [k…, t…] → [K, t…] for x [R, t…]
Value flat_updates(Value updates, Value indices, Value x) {
  return reshape_to(updates, with_front(x.dims(), product(indices.dims())));
}

ScatterRows rows_of(Value x, Value updates, Value indices) {
  return {x, flat_updates(updates, indices, x), flat_indices(indices)};
}

Value rows_at(Value table, Value indices) { return gather(table, indices, {.axis = 0}); }
Value added(Value slices, const ScatterRows& r) {
  return scatter_add(slices, r.indices, {.out_dim = r.x.dims()[0]});
}

// [n] as [n, 1…], to meet values of a rank.
Value column(Value v, std::size_t rank) {
  Dims dims(rank, Dim(1));
  dims[0] = v.dims()[0];
  return reshape_to(v, dims);
}

// Which update a row keeps of those that are set: its number, -1 where there is none.
struct Kept {
  Value row;     ///< [R, 1…]: was the row set?
  Value update;  ///< [K, 1…]: does the update stay?
};
Kept kept(const ScatterRows& r) {
  Graph& graph = r.x.graph();
  const Value number = iota(graph, {.shape = r.indices.dims(), .dtype = DType::I64});
  const Value none = filled(graph, {DType::I64, {r.x.dims()[0]}}, -1);
  const Value last = scatter(none, number, r.indices, {.kind = ScatterKind::Max});
  const std::size_t rank = r.x.rank();
  return {column(ge(last, zero_like(last)), rank),
          column(eq(rows_at(last, r.indices), number), rank)};
}

// Equal shares: v/n for each of the n that equal the result, or are NaN with it.
class Shares {
 public:
  Shares(const ScatterRows& r, Value out)
      : x_(chosen(r.x, out)), updates_(chosen(r.updates, rows_at(out, r.indices))) {
    const DType wide = widened(r.x.dtype());  // counts are exact in it
    x_count_ = cast_to(x_, wide) + added(cast_to(updates_, wide), r);
    updates_count_ = rows_at(x_count_, r.indices);
  }

  [[nodiscard]] Value of_x(Value v) const { return share(x_, v, x_count_); }
  [[nodiscard]] Value of_updates(Value v) const { return share(updates_, v, updates_count_); }

 private:
  static Value chosen(Value a, Value best) {
    return logical_or(eq(a, best), logical_and(ne(a, a), ne(best, best)));
  }
  // Chosen, not multiplied: what is not of the extreme has no part in an infinite v.
  static Value share(Value takes_part, Value v, Value count) {
    const Value part = cast_to(cast_to(v, count.dtype()) / count, v.dtype());
    return where(takes_part, part, zero_like(v));
  }

  Value x_;
  Value updates_;
  Value x_count_;
  Value updates_count_;
};

Value shifted_down(Value v, std::int64_t by, Value fill) {
  Dims low(v.rank(), Dim(0));
  Dims high(v.rank(), Dim(0));
  low[0] = by;
  high[0] = -by;
  return pad(v, fill, {.low = low, .high = high});
}

// For values sorted by key the product of all before each one that have its key, in log K steps.
Value products_before(Value sorted, Value keys) {
  const auto count = keys.dims()[0].try_value();
  if (!count) {
    throw UserError(
        ErrorCode::NeedsStaticDim,
        "the derivative of scatter by products needs to know how many updates there are",
        "bind the sizes of its indices");
  }
  const Value one = scalar_like(sorted, 1);
  const auto meets = [&](std::int64_t by) {
    return column(eq(shifted_down(keys, by, scalar_like(keys, -1)), keys), sorted.rank());
  };
  Value product = where(meets(1), shifted_down(sorted, 1, one), one);
  for (std::int64_t by = 1; by < *count; by *= 2) {
    product = product * where(meets(by), shifted_down(product, by, one), one);
  }
  return product;
}

// The product of all other updates of each update's row. No division: factors may be zero.
Value products_of_others(const ScatterRows& r) {
  const auto order = sort(cast_to(r.indices, DType::I64), {.axis = 0});
  const Value keys = order[0];
  const Value sorted = rows_at(r.updates, order[1]);
  const Value before = products_before(sorted, keys);
  const op::Reverse back{.axes = {0}};
  const Value behind = reverse(products_before(reverse(sorted, back), reverse(keys, back)), back);
  return rows_at(before * behind, arg_sort(order[1], {.axis = 0}));
}

Value product_of_updates(const ScatterRows& r) {
  return scatter(filled(r.x.graph(), r.x.type(), 1), r.updates, r.indices,
                 {.kind = ScatterKind::Mul});
}

}  // namespace

Cotangents vjp(const op::Scatter& op, const VjpContext& c) {
  const Value g = c.cotangent();
  const ScatterRows r = rows_of(c[0], c[1], c[2]);
  Value dx;
  Value du;
  switch (op.kind) {
    case ScatterKind::Add:
      dx = g;
      if (c.needs(1)) du = rows_at(g, r.indices);
      break;
    case ScatterKind::Mul:
      if (c.needs(0)) dx = g * conj(product_of_updates(r));
      if (c.needs(1)) du = rows_at(g * conj(r.x), r.indices) * conj(products_of_others(r));
      break;
    case ScatterKind::Max:
    case ScatterKind::Min: {
      const Shares shares(r, c.result());
      dx = shares.of_x(g);
      if (c.needs(1)) du = shares.of_updates(rows_at(g, r.indices));
      break;
    }
    case ScatterKind::Set: {
      const Kept k = kept(r);
      dx = where(k.row, zero_like(g), g);
      if (c.needs(1)) du = where(k.update, rows_at(g, r.indices), zero_like(g));
      break;
    }
  }
  Cotangents out = c.none();
  if (c.needs(0)) out[0] = dx;
  if (c.needs(1)) out[1] = reshape_to(du, c[1].dims());
  return out;
}

Tangents jvp(const op::Scatter& op, JvpContext& c) {
  const ScatterRows r = rows_of(c[0], c[1], c[2]);
  const bool own = c.live(0);
  Value t_u;
  if (c.live(1)) t_u = flat_updates(c.tangent(1), c[2], c[0]);
  const bool moves = op.kind == ScatterKind::Add || op.kind == ScatterKind::Set;
  if (moves) {
    return {scatter(c.tangent_or_zero(0), c.tangent_or_zero(1), c[2], op)};
  }
  Value x_part;
  Value u_part;
  if (op.kind == ScatterKind::Mul) {
    if (own) x_part = c.tangent(0) * product_of_updates(r);
    if (t_u.valid()) {
      u_part = added(t_u * products_of_others(r) * rows_at(r.x, r.indices), r);
    }
  } else {
    const Shares shares(r, c.result());
    if (own) x_part = shares.of_x(c.tangent(0));
    if (t_u.valid()) u_part = added(shares.of_updates(t_u), r);
  }
  return {sum_of(x_part, u_part)};
}

}  // namespace ricci::rule
