// The state-space scan: H_t = ā_t·H_{t-1} + Δ_t·B_t·x_t with ā_t = e^(Δ_t a); y_t = Σ_m C_t·H_t.
#include <algorithm>
#include <cmath>

#include "ricci/op/sequence.h"

#include "rule/tables/eval_rules.h"

namespace ricci::rule {
namespace {

// Operands 0 to 4 and the state after every step.
struct ScanRun {
  RealNd x;
  RealNd delta;
  RealNd a;
  RealNd b;
  RealNd c;
  std::int64_t steps;
  RealNd states;  // [S + 1, batch, channels, state_size]; states[0] is the initial one

  ScanRun(const EvalContext& context, bool has_initial_state)
      : x(context.real(0)),
        delta(context.real(1)),
        a(context.real(2)),
        b(context.real(3)),
        c(context.real(4)),
        // Without states no step need be taken, however many there are.
        steps(count_elements({x.dims[0], x.dims[2], a.dims.back()}) == 0 ? 0 : x.dims[1]),
        // Nor is there a state to keep where no step is taken and none is given.
        states({steps + 1, x.dims[1] == 0 && !has_initial_state ? 0 : x.dims[0], x.dims[2],
                a.dims.back()}) {
    if (has_initial_state) {
      const RealNd h0 = context.real(5);
      std::ranges::copy(h0.data, states.data.begin());
    }
    for (std::int64_t t = 0; t < steps; ++t) {
      for_each_index(state_dims(), [&](const StaticDims& at) {
        const std::int64_t row = at[0];
        const std::int64_t j = at[1];
        const std::int64_t m = at[2];
        states.at({t + 1, row, j, m}) =
            decay(row, t, j, m) * states.at({t, row, j, m}) +
            delta.at({row, t, j}) * b.at({row, t, m}) * x.at({row, t, j});
      });
    }
  }

  [[nodiscard]] StaticDims state_dims() const {
    return {states.dims[1], states.dims[2], states.dims[3]};
  }
  [[nodiscard]] double decay(std::int64_t row, std::int64_t t, std::int64_t j,
                             std::int64_t m) const {
    return std::exp(delta.at({row, t, j}) * a.at(rate(row, j, m)));
  }
  // Where a row has its a.
  [[nodiscard]] StaticDims rate(std::int64_t row, std::int64_t j, std::int64_t m) const {
    return a.dims.size() == 3 ? StaticDims{row, j, m} : StaticDims{j, m};
  }
};

}  // namespace

// H_t = e^(Δ_t a)·H_{t-1} + Δ_t·B_t·x_t; y_t = Σ_m C_t·H_t
void eval(const op::SelectiveScan&, EvalContext& c) {
  const ScanRun run(c, c.operands() > 5);
  RealNd y(c.result_dims(0));
  RealNd last(c.result_dims(1));
  for_each_index(run.state_dims(), [&](const StaticDims& at) {
    for (std::int64_t t = 0; t < run.steps; ++t) {
      y.at({at[0], t, at[1]}) +=
          run.c.at({at[0], t, at[2]}) * run.states.at({t + 1, at[0], at[1], at[2]});
    }
    last.at(at) = run.states.at({run.steps, at[0], at[1], at[2]});
  });
  if (c.wanted(0)) c.give(0, y);
  if (c.wanted(1)) c.give(1, last);
}

// G_t = dy_t·C_t + ā_{t+1}·G_{t+1}; dC = Σ_j dy·H; dB = Σ_j G·Δ·x; dx = Σ_m G·Δ·B;
// dΔ = Σ_m G·(a·ā·H_{t-1} + B·x); da = Σ G·Δ·ā·H_{t-1}; dh0 = ā_1·G_1
void eval(const op::SelectiveScanBackward& op, EvalContext& c) {
  const ScanRun run(c, op.has_initial_state);
  const std::size_t cotangent = op.has_initial_state ? 6 : 5;
  const RealNd dy = c.real(cotangent);
  RealNd dx(c.result_dims(0));
  RealNd ddelta(c.result_dims(1));
  RealNd da(c.result_dims(2));
  RealNd of_rows(run.state_dims());  // da: rows are added up in the end, as those of a batch are
  RealNd db(c.result_dims(3));
  RealNd dc(c.result_dims(4));
  // What later steps ask of the state: ā_{t+1}·G_{t+1}.
  RealNd later = op.has_final_cotangent ? c.real(cotangent + 1) : RealNd(run.state_dims());
  for (std::int64_t t = run.steps; t-- > 0;) {
    for_each_index(run.state_dims(), [&](const StaticDims& at) {
      const std::int64_t row = at[0];
      const std::int64_t j = at[1];
      const std::int64_t m = at[2];
      const double x = run.x.at({row, t, j});
      const double delta = run.delta.at({row, t, j});
      const double b = run.b.at({row, t, m});
      const double decay = run.decay(row, t, j, m);
      const double kept = decay * run.states.at({t, row, j, m});
      const double g = dy.at({row, t, j}) * run.c.at({row, t, m}) + later.at(at);
      dc.at({row, t, m}) += dy.at({row, t, j}) * run.states.at({t + 1, row, j, m});
      db.at({row, t, m}) += g * delta * x;
      dx.at({row, t, j}) += g * delta * b;
      ddelta.at({row, t, j}) += g * (run.a.at(run.rate(row, j, m)) * kept + b * x);
      of_rows.at(at) += g * delta * kept;
      later.at(at) = decay * g;
    });
  }
  for_each_index(run.state_dims(), [&](const StaticDims& at) {
    da.at(run.rate(at[0], at[1], at[2])) += of_rows.at(at);
  });
  if (c.wanted(0)) c.give(0, dx);
  if (c.wanted(1)) c.give(1, ddelta);
  if (c.wanted(2)) c.give(2, da);
  if (c.wanted(3)) c.give(3, db);
  if (c.wanted(4)) c.give(4, dc);
  if (op.has_initial_state && c.wanted(5)) c.give(5, later);
}

}  // namespace ricci::rule
