// The state-space scan and its derivative as loops over time. Within a step values lie in
// [batch, channels, state_size], with sizes 1 where they do not vary.
#include "ricci/build/build.h"
#include "ricci/op/sequence.h"

#include "rule/derivative_parts.h"
#include "rule/tables/expand_rules.h"

namespace ricci::rule {
namespace {

// [batch, S, width] ↔ [S, batch, width]
Value exchange_time(Value v) { return move_axis(v, 1, 0); }

// Step t of what varies over channels: [batch, channels] → [batch, channels, 1].
Value per_channel(Value v) { return reshape_to(v, {v.dims()[0], v.dims()[1], 1}); }
// Step t of what varies over the state: [batch, state_size] → [batch, 1, state_size].
Value per_state(Value v) { return reshape_to(v, {v.dims()[0], 1, v.dims()[1]}); }

// Operands 0 to 4 as one step sees them.
struct ScanStep {
  Value a;
  Value x;
  Value delta;
  Value b;
  Value c;

  // `rows` are x, delta, b and c.
  ScanStep(Value decay_rates, std::span<const Value> rows)
      : a(decay_rates),
        x(per_channel(rows[0])),
        delta(per_channel(rows[1])),
        b(per_state(rows[2])),
        c(per_state(rows[3])) {}
  [[nodiscard]] Value decay() const { return exp(delta * a); }
  [[nodiscard]] Value next(Value kept) const { return kept + delta * b * x; }
};

std::vector<Value> time_major(const ExpandContext& c) {
  return {exchange_time(c[0]), exchange_time(c[1]), exchange_time(c[3]), exchange_time(c[4])};
}

// Operand 5, or zero.
Value first_state(const ExpandContext& c, const Dim& state_size, bool given) {
  if (given) return c[5];
  const Dims& x = c[0].dims();
  return filled(c.graph, {c[0].dtype(), {x[0], x[2], state_size}}, 0);
}

}  // namespace

std::vector<Value> expand(const op::SelectiveScan& op, const ExpandContext& c) {
  const Value start = first_state(c, op.state_size, c.size() > 5);
  // carry: the state; every step sees a; rows: x, delta, b, c
  const std::vector<Value> run = scan(std::array{start}, {.bcasts = {c[2]}, .xs = time_major(c)},
                                      [&](Graph&, std::span<const Value> in) {
                                        const ScanStep step(in[1], in.subspan(2));
                                        std::vector<Value> out{step.next(step.decay() * in[0])};
                                        if (c.wanted(0)) out.push_back(sum(step.c * out[0], {2}));
                                        return out;
                                      });
  std::vector<Value> results(2);
  if (c.wanted(0)) results[0] = exchange_time(run[1]);
  if (c.wanted(1)) results[1] = run[0];
  return results;
}

namespace {

// The state each step starts from, [S, batch, channels, state_size].
Value entering_states(const ExpandContext& c, Value start) {
  return scan(std::array{start}, {.bcasts = {c[2]}, .xs = time_major(c)},
              [](Graph&, std::span<const Value> in) {
                const ScanStep step(in[1], in.subspan(2));
                return std::vector{step.next(step.decay() * in[0]), in[0]};
              })[1];
}

}  // namespace

// Backwards in time. Carries: ā_{t+1}·G_{t+1} and, when it is wanted, da so far.
std::vector<Value> expand(const op::SelectiveScanBackward& op, const ExpandContext& c) {
  const std::size_t dy_index = op.has_initial_state ? 6 : 5;
  const Value start = first_state(c, op.state_size, op.has_initial_state);
  std::vector<Value> carries{op.has_final_cotangent ? c[dy_index + 1]
                                                    : filled(c.graph, start.type(), 0)};
  if (c.wanted(2)) carries.push_back(filled(c.graph, c[2].type(), 0));
  std::vector<Value> rows = time_major(c);
  rows.push_back(exchange_time(c[dy_index]));
  rows.push_back(entering_states(c, start));
  const std::vector<Value> run =
      scan(carries, {.bcasts = {c[2]}, .xs = rows, .reverse = true},
           [&](Graph&, std::span<const Value> in) {
             const auto now = in.subspan(carries.size() + 1);
             const ScanStep step(in[carries.size()], now);
             const Value dy = per_channel(now[4]);
             const Value decay = step.decay();
             const Value kept = decay * now[5];
             const Value g = dy * step.c + in[0];
             std::vector<Value> out{decay * g};
             if (c.wanted(2)) {
               const Value of_rows = g * step.delta * kept;
               out.push_back(in[1] + (step.a.rank() == 3 ? of_rows : sum(of_rows, {0})));
             }
             if (c.wanted(0)) out.push_back(sum(g * step.delta * step.b, {2}));
             if (c.wanted(1)) out.push_back(sum(g * (step.a * kept + step.b * step.x), {2}));
             if (c.wanted(3)) out.push_back(sum(g * step.delta * step.x, {1}));
             if (c.wanted(4)) out.push_back(sum(dy * step.next(kept), {1}));
             return out;
           });
  std::vector<Value> results(c.node.types.size());
  std::size_t next = 1;
  if (c.wanted(2)) results[2] = run[next++];
  for (const std::size_t r : {0, 1, 3, 4}) {
    if (c.wanted(r)) results[r] = exchange_time(run[next++]);
  }
  if (op.has_initial_state && c.wanted(5)) results[5] = run[0];
  return results;
}

}  // namespace ricci::rule
