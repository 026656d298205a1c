// Gated delta-rule linear attention: S̃ = e^g·S; d = β·(v - S̃ᵀk); S ← S̃ + k dᵀ; o = κ·Sᵀq.
#include <algorithm>
#include <cmath>

#include "ricci/op/sequence.h"

#include "rule/tables/eval_rules.h"

namespace ricci::rule {
namespace {

// Operands 0 to 4, with the sizes they imply.
struct DeltaNetOperands {
  RealNd q;
  RealNd k;
  RealNd v;
  RealNd g;
  RealNd beta;
  std::int64_t steps;
  std::int64_t key_width;
  std::int64_t value_width;
  std::int64_t group;  // value heads per key head
  double kappa;

  explicit DeltaNetOperands(const EvalContext& c)
      : q(c.real(0)),
        k(c.real(1)),
        v(c.real(2)),
        g(c.real(3)),
        beta(c.real(4)),
        // Without states no step need be taken, however many there are.
        steps(count_elements({v.dims[0], v.dims[2], v.dims[3], q.dims[3]}) == 0 ? 0 : v.dims[1]),
        key_width(q.dims[3]),
        value_width(v.dims[3]),
        group(q.dims[2] == 0 ? 1 : v.dims[2] / q.dims[2]),
        kappa(1 / std::sqrt(static_cast<double>(key_width))) {}
};

// The recurrence of one batch row and head. Matrices are [key_width, value_width].
struct DeltaNetHead {
  const DeltaNetOperands& in;
  std::int64_t row;
  std::int64_t head;
  std::vector<RealNd> states;               // S_0 … S_steps
  std::vector<RealNd> decayed;              // S̃_1 … S̃_steps
  std::vector<std::vector<double>> errors;  // u_t = v_t - S̃_tᵀ k_t

  [[nodiscard]] std::int64_t key_head() const { return head / in.group; }
  [[nodiscard]] double q(std::int64_t t, std::int64_t i) const {
    return in.q.at({row, t, key_head(), i});
  }
  [[nodiscard]] double k(std::int64_t t, std::int64_t i) const {
    return in.k.at({row, t, key_head(), i});
  }
  [[nodiscard]] double beta(std::int64_t t) const { return in.beta.at({row, t, head}); }
  [[nodiscard]] double gate(std::int64_t t) const { return std::exp(in.g.at({row, t, head})); }
  void run(RealNd initial);
};

void DeltaNetHead::run(RealNd initial) {
  states.push_back(std::move(initial));
  for (std::int64_t t = 0; t < in.steps; ++t) {
    RealNd s = states.back();
    for (double& e : s.data) e *= gate(t);
    decayed.push_back(s);
    std::vector<double> u;
    for (std::int64_t j = 0; j < in.value_width; ++j) {
      double recalled = 0;
      for (std::int64_t i = 0; i < in.key_width; ++i) recalled += s.at({i, j}) * k(t, i);
      u.push_back(in.v.at({row, t, head, j}) - recalled);
    }
    for_each_index(s.dims, [&](const StaticDims& at) {
      s.at(at) += k(t, at[0]) * beta(t) * u[static_cast<std::size_t>(at[1])];
    });
    errors.push_back(std::move(u));
    states.push_back(std::move(s));
  }
}

// Runs `f` for every batch row and head, with the recurrence already run.
template <class F>
void for_each_head(const DeltaNetOperands& in, const RealNd* initial, F&& f) {
  for_each_index({in.v.dims[0], in.v.dims[2]}, [&](const StaticDims& at) {
    RealNd first({in.key_width, in.value_width});
    if (initial != nullptr) {
      for_each_index(first.dims, [&](const StaticDims& e) {
        first.at(e) = initial->at({at[0], at[1], e[0], e[1]});
      });
    }
    DeltaNetHead head{in, at[0], at[1], {}, {}, {}};
    head.run(std::move(first));
    f(head);
  });
}

struct DeltaNetGradients {
  RealNd dq;
  RealNd dk;
  RealNd dv;
  RealNd dg;
  RealNd dbeta;

  // Step t of the formulas, given `later` = E_{t+1}, which becomes E_t.
  void add_step(const DeltaNetHead& h, const RealNd& dout, std::int64_t t, RealNd& later);
};

void DeltaNetGradients::add_step(const DeltaNetHead& h, const RealNd& dout, std::int64_t t,
                                 RealNd& later) {
  const auto step = static_cast<std::size_t>(t);
  const RealNd& after = h.states[step + 1];
  const RealNd& decayed = h.decayed[step];
  const std::int64_t kh = h.key_head();
  for (std::int64_t j = 0; j < h.in.value_width; ++j) {
    const double u = h.errors[step][static_cast<std::size_t>(j)];
    const double grad = dout.at({h.row, t, h.head, j});
    double toward = 0;  // δ_j = Σ_i G_ij k_i
    for (std::int64_t i = 0; i < h.in.key_width; ++i) {
      dq.at({h.row, t, kh, i}) += h.in.kappa * after.at({i, j}) * grad;
      later.at({i, j}) += h.in.kappa * h.q(t, i) * grad;
      toward += later.at({i, j}) * h.k(t, i);
    }
    dbeta.at({h.row, t, h.head}) += toward * u;
    const double value = h.beta(t) * toward;
    dv.at({h.row, t, h.head, j}) = value;
    for (std::int64_t i = 0; i < h.in.key_width; ++i) {
      dk.at({h.row, t, kh, i}) += later.at({i, j}) * h.beta(t) * u - decayed.at({i, j}) * value;
      later.at({i, j}) -= h.k(t, i) * value;
      dg.at({h.row, t, h.head}) += later.at({i, j}) * decayed.at({i, j});
      later.at({i, j}) *= h.gate(t);
    }
  }
}

}  // namespace

// S̃ = e^g·S; d = β·(v - S̃ᵀk); S ← S̃ + k dᵀ; o = κ·Sᵀq
void eval(const op::GatedDeltaNet& op, EvalContext& c) {
  const DeltaNetOperands in(c);
  const RealNd initial = op.carry_state ? c.real(5) : RealNd();
  RealNd out(c.result_dims(0));
  RealNd last(c.result_dims(1));
  for_each_head(in, op.carry_state ? &initial : nullptr, [&](const DeltaNetHead& h) {
    for_each_index({in.key_width, in.value_width}, [&](const StaticDims& e) {
      for (std::int64_t t = 0; t < in.steps; ++t) {
        const RealNd& s = h.states[static_cast<std::size_t>(t) + 1];
        out.at({h.row, t, h.head, e[1]}) += in.kappa * s.at(e) * h.q(t, e[0]);
      }
      last.at({h.row, h.head, e[0], e[1]}) = h.states.back().at(e);
    });
  });
  if (c.wanted(0)) c.give(0, out);
  if (c.wanted(1)) c.give(1, last);
}

// G = κ·q doᵀ + E_{t+1}; dq = κ·S do; δ = Gᵀk; dβ = ⟨δ, u⟩; dv = β·δ; dS̃ = G - k dvᵀ;
// dk = G d - S̃ dv; dg = ⟨dS̃, S̃⟩; E_t = e^g·dS̃
void eval(const op::GatedDeltaNetBackward& op, EvalContext& c) {
  const DeltaNetOperands in(c);
  const std::size_t cotangent = op.carry_state ? 6 : 5;
  const RealNd initial = op.carry_state ? c.real(5) : RealNd();
  const RealNd dout = c.real(cotangent);
  const RealNd dlast = op.has_final_cotangent ? c.real(cotangent + 1) : RealNd();
  DeltaNetGradients d{RealNd(c.result_dims(0)), RealNd(c.result_dims(1)), RealNd(c.result_dims(2)),
                      RealNd(c.result_dims(3)), RealNd(c.result_dims(4))};
  RealNd dstate = op.carry_state ? RealNd(c.result_dims(5)) : RealNd();
  for_each_head(in, op.carry_state ? &initial : nullptr, [&](const DeltaNetHead& h) {
    RealNd later({in.key_width, in.value_width});
    if (op.has_final_cotangent) {
      for_each_index(later.dims, [&](const StaticDims& e) {
        later.at(e) = dlast.at({h.row, h.head, e[0], e[1]});
      });
    }
    for (std::int64_t t = in.steps; t-- > 0;) d.add_step(h, dout, t, later);
    if (!op.carry_state) return;
    for_each_index(later.dims, [&](const StaticDims& e) {
      dstate.at({h.row, h.head, e[0], e[1]}) = later.at(e);
    });
  });
  if (c.wanted(0)) c.give(0, d.dq);
  if (c.wanted(1)) c.give(1, d.dk);
  if (c.wanted(2)) c.give(2, d.dv);
  if (c.wanted(3)) c.give(3, d.dg);
  if (c.wanted(4)) c.give(4, d.dbeta);
  if (op.carry_state && c.wanted(5)) c.give(5, dstate);
}

}  // namespace ricci::rule
