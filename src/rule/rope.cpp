// Rotary embeddings: pairs (x1, x2) of a head turned by the angle of their position.
#include "ricci/op/rope.h"

#include "ricci/build/build.h"

#include "rule/tables/eval_rules.h"
#include "rule/tables/expand_rules.h"

namespace ricci::rule {
namespace {

// Heads lie next to each other in every rank, so one view [batch, S, heads, head_dim] serves all.
StaticDims headed(const StaticDims& x, std::int64_t head_dim) {
  if (x.size() == 4) return x;
  const std::int64_t heads = x.back() / head_dim;
  return x.size() == 3 ? StaticDims{x[0], x[1], heads, head_dim}
                       : StaticDims{1, x[0], heads, head_dim};
}

struct Pair {
  std::int64_t first;
  std::int64_t second;
};
Pair pair_of(RopeStyle style, std::int64_t i, std::int64_t rotated) {
  if (style == RopeStyle::Gptj) return {2 * i, 2 * i + 1};
  return {i, i + rotated / 2};
}

// y = x with every pair turned; `direction` 1 turns forwards, -1 back.
RealNd turned(const auto& op, RealNd x, const RealNd& cosine, const RealNd& sine,
              double direction) {
  const StaticDims given = x.dims;
  x.dims = headed(given, op.head_dim);
  const std::int64_t rotated = op.n_rot.value_or(op.head_dim);
  for_each_index({x.dims[0], x.dims[1], x.dims[2], rotated / 2}, [&](const StaticDims& at) {
    const std::int64_t p = at[1];
    const std::int64_t i = at[3];
    const Pair pair = pair_of(op.style, i, rotated);
    double& x1 = x.at({at[0], p, at[2], pair.first});
    double& x2 = x.at({at[0], p, at[2], pair.second});
    // A table of one row has one position only, so reading it broadcasts nothing.
    const double co = cosine.at({p, i});
    const double si = direction * sine.at({p, i});
    const double y1 = x1 * co - x2 * si;
    x2 = x2 * co + x1 * si;
    x1 = y1;
  });
  x.dims = given;
  return x;
}

// The rotation in graph form.
struct Halves {
  Value first;   // [batch, S, heads, n_rot/2]
  Value second;  // [batch, S, heads, n_rot/2]
  Value rest;    // [batch, S, heads, head_dim - n_rot]; invalid when nothing is left
};

Halves split(const auto& op, Value x) {
  const std::int64_t rotated = op.n_rot.value_or(op.head_dim);
  if (x.rank() != 4) {
    const Dims d = x.dims();
    const Dim batch = x.rank() == 3 ? d[0] : Dim(1);
    x = reshape(x, {.new_shape = {batch, d[d.size() - 2], *Dim::divide(d.back(), op.head_dim),
                                  op.head_dim}});
  }
  Halves h;
  if (rotated != op.head_dim) {
    h.rest = narrow(x, {.axis = 3, .start = rotated, .len = op.head_dim - rotated});
    x = narrow(x, {.axis = 3, .start = 0, .len = rotated});
  }
  const Dims d = x.dims();
  const Dims half = {d[0], d[1], d[2], rotated / 2};
  if (op.style == RopeStyle::Neox) {
    h.first = narrow(x, {.axis = 3, .start = 0, .len = rotated / 2});
    h.second = narrow(x, {.axis = 3, .start = rotated / 2, .len = rotated / 2});
  } else {
    const Value pairs = reshape(x, {.new_shape = {d[0], d[1], d[2], rotated / 2, 2}});
    h.first = reshape(narrow(pairs, {.axis = 4, .start = 0, .len = 1}), {.new_shape = half});
    h.second = reshape(narrow(pairs, {.axis = 4, .start = 1, .len = 1}), {.new_shape = half});
  }
  return h;
}

Value join(const auto& op, const Halves& h, const Dims& dims) {
  std::vector<Value> parts = {h.first, h.second};
  if (op.style == RopeStyle::Gptj) {
    const Dims d = h.first.dims();
    for (Value& v : parts) v = reshape(v, {.new_shape = {d[0], d[1], d[2], d[3], 1}});
    parts = {reshape(concat(parts, {.axis = 4}), {.new_shape = {d[0], d[1], d[2], d[3] * 2}})};
  }
  if (h.rest.valid()) parts.push_back(h.rest);
  return reshape_to(parts.size() == 1 ? parts[0] : concat(parts, {.axis = 3}), dims);
}

// The part of a table that is read, as [S, 1, n_rot/2].
Value table_part(const auto& op, Value table, const Dim& positions) {
  const std::int64_t columns = op.n_rot.value_or(op.head_dim) / 2;
  const Value rows = narrow(table, {.axis = 0, .start = 0, .len = positions});
  return reshape(narrow(rows, {.axis = 1, .start = 0, .len = columns}),
                 {.new_shape = {positions, 1, columns}});
}

// A table's gradient from its read part, summed over batch and heads; zeros elsewhere.
Value whole_table(Value terms, const Dims& table) {
  Value part = sum(terms, {0, 2});
  const auto pad = [&](std::int64_t axis) {
    const auto at = static_cast<std::size_t>(axis);
    Dims missing = part.dims();
    missing[at] = table[at] - missing[at];
    if (missing[at].is(0)) return;
    const Value zeros = broadcast_to(scalar_like(part, 0.0), missing);
    part = concat({part, zeros}, {.axis = axis});
  };
  pad(1);
  pad(0);
  return part;
}

}  // namespace

// y1 = x1·cos - x2·sin, y2 = x2·cos + x1·sin
void eval(const op::Rope& op, EvalContext& c) {
  c.give(0, turned(op, c.real(0), c.real(1), c.real(2), 1));
}

std::vector<Value> expand(const op::Rope& op, const ExpandContext& c) {
  const Halves x = split(op, c[0]);
  const Dim positions = x.first.dims()[1];
  const Value co = table_part(op, c[1], positions);
  const Value si = table_part(op, c[2], positions);
  const Halves y{x.first * co - x.second * si, x.second * co + x.first * si, x.rest};
  return {join(op, y, c[0].dims())};
}

// dx1 = dy1·cos + dy2·sin, dx2 = dy2·cos - dy1·sin;
// dcos[p, i] = Σ (dy1·x1 + dy2·x2), dsin[p, i] = Σ (dy2·x1 - dy1·x2)
void eval(const op::RopeBackward& op, EvalContext& c) {
  RealNd dy = c.real(0);
  if (c.wanted(0)) c.give(0, turned(op, dy, c.real(1), c.real(2), -1));
  if (c.operands() < 4 || !(c.wanted(1) || c.wanted(2))) return;
  RealNd x = c.real(3);
  dy.dims = x.dims = headed(dy.dims, op.head_dim);
  const std::int64_t rotated = op.n_rot.value_or(op.head_dim);
  RealNd dcos(c.result_dims(1));
  RealNd dsin(c.result_dims(2));
  for_each_index({x.dims[0], x.dims[1], x.dims[2], rotated / 2}, [&](const StaticDims& at) {
    const Pair pair = pair_of(op.style, at[3], rotated);
    const StaticDims i1 = {at[0], at[1], at[2], pair.first};
    const StaticDims i2 = {at[0], at[1], at[2], pair.second};
    dcos.at({at[1], at[3]}) += dy.at(i1) * x.at(i1) + dy.at(i2) * x.at(i2);
    dsin.at({at[1], at[3]}) += dy.at(i2) * x.at(i1) - dy.at(i1) * x.at(i2);
  });
  if (c.wanted(1)) c.give(1, dcos);
  if (c.wanted(2)) c.give(2, dsin);
}

std::vector<Value> expand(const op::RopeBackward& op, const ExpandContext& c) {
  const Halves dy = split(op, c[0]);
  const Dim positions = dy.first.dims()[1];
  const Dims table = c[1].dims();
  std::vector<Value> results(c.node.types.size());
  if (c.wanted(0)) {
    const Value co = table_part(op, c[1], positions);
    const Value si = table_part(op, c[2], positions);
    const Halves dx{dy.first * co + dy.second * si, dy.second * co - dy.first * si, dy.rest};
    results[0] = join(op, dx, c[0].dims());
  }
  if (c.size() < 4) return results;
  const Halves x = split(op, c[3]);
  if (c.wanted(1)) results[1] = whole_table(dy.first * x.first + dy.second * x.second, table);
  if (c.wanted(2)) results[2] = whole_table(dy.second * x.first - dy.first * x.second, table);
  return results;
}

}  // namespace ricci::rule
