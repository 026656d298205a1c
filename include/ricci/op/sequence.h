// Recurrences over time with a state of their own. States are kept in x's dtype, but at least f32.
#pragma once

#include "ricci/op/fields.h"

namespace ricci::op {

/// The state-space scan. Per batch row, channel j and state index m:
///   H_t[j,m] = e^(Δ_t[j]·a[j,m])·H_{t-1}[j,m] + Δ_t[j]·B_t[m]·x_t[j];  y_t[j] = Σ_m
///   C_t[m]·H_t[j,m]
/// H_0 is h0, or zero. `h_final` is the state after the last step. Batch rows share an a, or have
/// each their own.
struct SelectiveScan {
  Dim state_size = 1;

  static constexpr OpInfo info{
      .name = "selective_scan",
      .operands = "x, delta, a, b, c, h0?",
      .results = "y, h_final?",
      .help = "state-space scan over time",
      .formula = "H_t = e^(Δ_t a) H_{t-1} + Δ_t B_t x_t; y_t = Σ_m C_t H_t",
      .constraints = "c1 dtype: x, delta, a, b and c have one floating dtype\n"
                     "c2 shape: x and delta are [batch, S, channels]\n"
                     "c3 shape: a is [channels, state_size], or [batch, channels, state_size]\n"
                     "c4 shape: b and c are [batch, S, state_size]\n"
                     "c5 shape: h0 is [batch, channels, state_size], of x's dtype but at least f32",
      .jvp = RuleSource::Expansion,
      .numerics = Numerics::Reduction};
  static void fields(auto& self, auto&& f) {
    f("state_size", self.state_size, "states per channel", Presence::Required);
  }
  bool operator==(const SelectiveScan&) const = default;
};

/// The derivative of selective_scan. With ā_t = e^(Δ_t a) and G_t = dy_t·C_t + ā_{t+1}·G_{t+1}
/// (ā·G past the end is dh_final, or zero):
///   dC_t = Σ_j dy_t·H_t;  dB_t = Σ_j G_t·Δ_t·x_t;  dx_t = Σ_m G_t·Δ_t·B_t;
///   dΔ_t = Σ_m G_t·(a·ā_t·H_{t-1} + B_t·x_t);  da = Σ_{batch,t} G_t·Δ_t·ā_t·H_{t-1}, over t
///   alone where rows have each their own a;
///   dh0 = ā_1·G_1
/// The attributes say which optional operands there are; `dh0` exists with an initial state only.
struct SelectiveScanBackward {
  Dim state_size = 1;
  bool has_initial_state = false;
  bool has_final_cotangent = false;

  static constexpr OpInfo info{
      .name = "selective_scan_backward",
      .operands = "x, delta, a, b, c, h0?, dy, dh_final?",
      .results = "dx, ddelta, da, db, dc, dh0?",
      .help = "derivative of selective_scan",
      .formula = "G_t = dy_t C_t + ā_{t+1} G_{t+1}; dC = Σ_j dy H; dB = Σ_j G Δ x; dx = Σ_m G Δ B; "
                 "dΔ = Σ_m G (a ā H_{t-1} + B x); da = Σ G Δ ā H_{t-1}",
      .constraints =
          "c1 dtype: x, delta, a, b, c and dy have one floating dtype\n"
          "c2 shape: x and delta are [batch, S, channels]\n"
          "c3 shape: a is [channels, state_size], or [batch, channels, state_size]\n"
          "c4 shape: b and c are [batch, S, state_size]\n"
          "c5 shape: h0 is [batch, channels, state_size], of x's dtype but at least f32\n"
          "c6 attr: operands are given as has_initial_state and has_final_cotangent say\n"
          "c7 shape: dy has the shape of x\n"
          "c8 shape: dh_final has the type of h0",
      .vjp = RuleSource::Expansion,
      .jvp = RuleSource::Expansion,
      .numerics = Numerics::Reduction};
  static void fields(auto& self, auto&& f) {
    SelectiveScan::fields(self, f);
    f("has_initial_state", self.has_initial_state, "the operand h0 is given");
    f("has_final_cotangent", self.has_final_cotangent, "the operand dh_final is given");
  }
  bool operator==(const SelectiveScanBackward&) const = default;
};

/// Gated delta-rule linear attention. Per batch row and head, with a state matrix S [n_k, n_v] and
/// κ = 1/√n_k:
///   S̃ = e^(g_t)·S_{t-1};  d = β_t·(v_t - S̃ᵀk_t);  S_t = S̃ + k_t dᵀ;  o_t = κ·S_tᵀ q_t
/// The state starts as the operand, with carry_state, or as zero. Query and key heads may be fewer:
/// each then serves a group of neighbouring value heads.
struct GatedDeltaNet {
  Dim state_size = 1;
  bool carry_state = false;

  static constexpr OpInfo info{
      .name = "gated_delta_net",
      .operands = "q, k, v, g, beta, state?",
      .results = "o, state_final?",
      .help = "gated delta-rule linear attention",
      .formula = "S̃ = e^g S; d = β (v - S̃ᵀk); S ← S̃ + k dᵀ; o = Sᵀq / √n_k",
      .constraints =
          "c1 dtype: q, k, v, g and beta have one floating dtype\n"
          "c2 shape: q and k are [batch, S, key_heads, state_size], state_size positive\n"
          "c3 shape: v is [batch, S, heads, n_v]\n"
          "c4 shape: key_heads divides heads\n"
          "c5 shape: g and beta are [batch, S, heads]\n"
          "c6 attr: the operand state is given exactly with carry_state\n"
          "c7 shape: state is [batch, heads, state_size, n_v], of q's dtype but at least "
          "f32",
      .jvp = RuleSource::Expansion,
      .numerics = Numerics::Reduction};
  static void fields(auto& self, auto&& f) {
    f("state_size", self.state_size, "width n_k of a key", Presence::Required);
    f("carry_state", self.carry_state, "the state before the first step is an operand");
  }
  bool operator==(const GatedDeltaNet&) const = default;
};

/// The derivative of gated_delta_net. With u_t = v_t - S̃_tᵀk_t, d_t = β_t u_t and
/// G_t = κ·q_t do_tᵀ + E_{t+1} (E past the end is dstate_final, or zero):
///   dq_t = κ·S_t do_t;  δ_t = G_tᵀ k_t;  dβ_t = ⟨δ_t, u_t⟩;  dv_t = β_t δ_t;
///   dS̃_t = G_t - k_t dv_tᵀ;  dk_t = G_t d_t - S̃_t dv_t;  dg_t = ⟨dS̃_t, S̃_t⟩;
///   E_t = e^(g_t)·dS̃_t;  dstate = E_1
/// The attributes say which optional operands there are; `dstate` exists with carry_state only.
struct GatedDeltaNetBackward {
  Dim state_size = 1;
  bool carry_state = false;
  bool has_final_cotangent = false;

  static constexpr OpInfo info{
      .name = "gated_delta_net_backward",
      .operands = "q, k, v, g, beta, state?, do, dstate_final?",
      .results = "dq, dk, dv, dg, dbeta, dstate?",
      .help = "derivative of gated_delta_net",
      .formula = "G_t = κ q doᵀ + E_{t+1}; dq = κ S do; δ = Gᵀk; dβ = ⟨δ, u⟩; dv = β δ; "
                 "dS̃ = G - k dvᵀ; dk = G d - S̃ dv; dg = ⟨dS̃, S̃⟩; E_t = e^g dS̃",
      .constraints =
          "c1 dtype: q, k, v, g, beta and do have one floating dtype\n"
          "c2 shape: q and k are [batch, S, key_heads, state_size], state_size positive\n"
          "c3 shape: v is [batch, S, heads, n_v]\n"
          "c4 shape: key_heads divides heads\n"
          "c5 shape: g and beta are [batch, S, heads]\n"
          "c6 attr: operands are given as carry_state and has_final_cotangent say\n"
          "c7 shape: state is [batch, heads, state_size, n_v], of q's dtype but at least "
          "f32\n"
          "c8 shape: do has the shape of v\n"
          "c9 shape: dstate_final has the type of state",
      .vjp = RuleSource::Expansion,
      .jvp = RuleSource::Expansion,
      .numerics = Numerics::Reduction};
  static void fields(auto& self, auto&& f) {
    GatedDeltaNet::fields(self, f);
    f("has_final_cotangent", self.has_final_cotangent, "the operand dstate_final is given");
  }
  bool operator==(const GatedDeltaNetBackward&) const = default;
};

}  // namespace ricci::op
