// Gated delta-rule linear attention and its derivative as loops over time. Batch rows and heads are
// one axis; within a step a vector is a row [rows, 1, width] and a state [rows, n_k, n_v].
#include <cmath>

#include "ricci/build/build.h"
#include "ricci/op/sequence.h"

#include "rule/derivative_parts.h"
#include "rule/tables/expand_rules.h"

namespace ricci::rule {
namespace {

// How operands lie in time and heads.
struct HeadsInTime {
  Dim batch;
  Dim steps;
  Dim heads;

  explicit HeadsInTime(const Dims& v) : batch(v[0]), steps(v[1]), heads(v[2]) {}

  // [batch, S, heads, width] → [S, batch·heads, 1, width]; fewer heads are repeated.
  [[nodiscard]] Value rows(Value x) const {
    const Dims d = x.dims();
    if (d[2] != heads) {
      const Dim group = *Dim::divide(heads, d[2]);
      const Value apart = reshape_to(x, {d[0], d[1], d[2], 1, d[3]});
      x = reshape_to(broadcast_to(apart, {d[0], d[1], d[2], group, d[3]}),
                     {d[0], d[1], heads, d[3]});
    }
    return reshape_to(move_axis(x, 1, 0), {steps, batch * heads, 1, d[3]});
  }
  // The same for a number per head: [batch, S, heads] → [S, batch·heads, 1, 1].
  [[nodiscard]] Value numbers(Value x) const {
    return reshape_to(move_axis(x, 1, 0), {steps, batch * heads, 1, 1});
  }
  // [S, batch·heads, 1, width] → `dims`: as `rows` was given it; heads of a group are summed.
  [[nodiscard]] Value restored(Value x, const Dims& dims) const {
    if (dims.size() == 3) return move_axis(reshape_to(x, {steps, batch, heads}), 1, 0);
    const Value apart = move_axis(reshape_to(x, {steps, batch, heads, dims[3]}), 1, 0);
    if (dims[2] == heads) return apart;
    const Dim group = *Dim::divide(heads, dims[2]);
    return sum(reshape_to(apart, {batch, steps, dims[2], group, dims[3]}), {3});
  }
};

// κ = 1/√n_k
Value scaled(Value x, const Dim& key_width) {
  if (const auto width = key_width.try_value()) {
    return x * (1 / std::sqrt(static_cast<double>(*width)));
  }
  return x * rsqrt(size_as_number(key_width, x));
}

// Operand 5 with heads and batch in one axis, or zero.
Value initial_state(const ExpandContext& c, const Dim& key_width, bool given) {
  const Dims& v = c[2].dims();
  const Dims dims{v[0] * v[2], key_width, v[3]};
  return given ? reshape_to(c[5], dims) : filled(c.graph, {c[2].dtype(), dims}, 0);
}

// The recurrence of one step.
struct DeltaNetStep {
  Value gate;     // e^g
  Value decayed;  // S̃ = e^g·S
  Value error;    // u = v - S̃ᵀk
  Value change;   // d = β·u
  Value after;    // S̃ + k dᵀ

  DeltaNetStep(Value before, Value k, Value v, Value g, Value beta)
      : gate(exp(g)),
        decayed(gate * before),
        error(v - matmul(k, decayed)),
        change(beta * error),
        after(decayed + transpose_last(k) * change) {}
};

}  // namespace

std::vector<Value> expand(const op::GatedDeltaNet& op, const ExpandContext& c) {
  const Dims& v = c[2].dims();
  const HeadsInTime lay(v);
  const Value start = initial_state(c, op.state_size, op.carry_state);
  // carry: the state; rows: q, k, v, g, beta
  const std::vector<Value> run = scan(std::array{start},
                                      {.xs = {lay.rows(c[0]), lay.rows(c[1]), lay.rows(c[2]),
                                              lay.numbers(c[3]), lay.numbers(c[4])}},
                                      [&](Graph&, std::span<const Value> in) {
                                        const DeltaNetStep step(in[0], in[2], in[3], in[4], in[5]);
                                        std::vector<Value> out{step.after};
                                        if (c.wanted(0)) out.push_back(matmul(in[1], step.after));
                                        return out;
                                      });
  std::vector<Value> results(2);
  if (c.wanted(0)) results[0] = scaled(lay.restored(run[1], v), op.state_size);
  if (c.wanted(1)) results[1] = reshape_to(run[0], c.node.types[1].dims);
  return results;
}

namespace {

// The state each step starts from, [S, rows, n_k, n_v]. `rows` are q, k, v, g, beta.
Value entering_states(Value start, const std::vector<Value>& rows) {
  return scan(std::array{start}, {.xs = {rows.begin() + 1, rows.end()}},
              [](Graph&, std::span<const Value> in) {
                const DeltaNetStep step(in[0], in[1], in[2], in[3], in[4]);
                return std::vector{step.after, in[0]};
              })[1];
}

// One step back: inputs E_{t+1}, κ·q, k, v, g, beta, do and the state before the step; gives E_t
// and the wanted of dq/κ, dk, dv, dg, dbeta.
std::vector<Value> step_back(std::span<const Value> in, const std::vector<bool>& wanted) {
  const Value q = in[1];
  const Value k = in[2];
  const Value dout = in[6];
  const DeltaNetStep step(in[7], k, in[3], in[4], in[5]);
  const Value g = in[0] + transpose_last(q) * dout;
  const Value toward = matmul(k, g);  // δ = Gᵀk
  const Value dv = in[5] * toward;
  const Value ddecayed = g - transpose_last(k) * dv;
  std::vector<Value> out{step.gate * ddecayed};
  if (wanted[0]) out.push_back(matmul(dout, transpose_last(step.after)));
  if (wanted[1]) {
    out.push_back(matmul(step.change, transpose_last(g)) -
                  matmul(dv, transpose_last(step.decayed)));
  }
  if (wanted[2]) out.push_back(dv);
  if (wanted[3]) out.push_back(sum(ddecayed * step.decayed, {1, 2}, true));
  if (wanted[4]) out.push_back(sum(toward * step.error, {1, 2}, true));
  return out;
}

}  // namespace

// Backwards in time; the carry is E.
std::vector<Value> expand(const op::GatedDeltaNetBackward& op, const ExpandContext& c) {
  const HeadsInTime lay(c[2].dims());
  const std::size_t do_index = op.carry_state ? 6 : 5;
  const Value start = initial_state(c, op.state_size, op.carry_state);
  const Value last = op.has_final_cotangent ? reshape_to(c[do_index + 1], start.dims())
                                            : filled(c.graph, start.type(), 0);
  std::vector<Value> rows{lay.rows(scaled(c[0], op.state_size)), lay.rows(c[1]), lay.rows(c[2]),
                          lay.numbers(c[3]), lay.numbers(c[4])};
  const Value before = entering_states(start, rows);
  rows.push_back(lay.rows(c[do_index]));
  rows.push_back(before);
  const std::vector<Value> run =
      scan(std::array{last}, {.xs = rows, .reverse = true},
           [&](Graph&, std::span<const Value> in) { return step_back(in, c.node.wanted); });
  std::vector<Value> results(c.node.types.size());
  for (std::size_t r = 0, next = 1; r < 5; ++r) {
    if (c.wanted(r)) results[r] = lay.restored(run[next++], c.node.types[r].dims);
  }
  if (results[0].valid()) results[0] = scaled(results[0], op.state_size);
  if (op.carry_state && c.wanted(5)) results[5] = reshape_to(run[0], c.node.types[5].dims);
  return results;
}

}  // namespace ricci::rule
