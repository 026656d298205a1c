// Blocks whose memory is a state of fixed size: x [batch, places, width] to the same.
#pragma once

#include <cstdint>
#include <utility>

#include "ricci/array/array.h"
#include "ricci/array/tree.h"
#include "ricci/nn/attention.h"
#include "ricci/nn/conv.h"
#include "ricci/nn/linear.h"
#include "ricci/nn/norm.h"

namespace ricci::nn {

struct MambaOptions {
  std::int64_t expand = 2;  ///< inner width over width
  std::int64_t state = 16;  ///< numbers a channel remembers
  std::int64_t window = 4;  ///< of the convolution
  std::int64_t rank = 0;    ///< of the step sizes; 0: width/16, rounded up
  DType dtype = DType::F32;
};

/// What a MambaBlock remembers of the places so far.
struct MambaState {
  Array past;  ///< [rows, window - 1, inner]: what the convolution still reads
  Array h;     ///< [rows, inner, state]
};

/// A selective state space (Gu and Dao, 2023). With [u, z] = in(x), u = silu(conv(u)),
/// [δ, B, C] = select(u) and Δ = softplus(step(δ)):
///   y = scan(u, Δ, -e^(a_log), B, C) + d·u;  out(y · silu(z))
struct MambaBlock {
  Linear in;
  Conv1d conv;  ///< each channel with its past
  Linear select, step;
  Array a_log;  ///< [inner, state]
  Array d;      ///< [inner]
  Linear out;

  MambaBlock() = default;
  explicit MambaBlock(std::int64_t width, const MambaOptions& options = {});
  [[nodiscard]] Array operator()(const Array& x, Here where = Here::current()) const;
  /// The next places of sequences of different lengths, and the state behind those that count.
  [[nodiscard]] std::pair<Array, MambaState> advance(const Array& x, const MambaState& state,
                                                     const StepPlaces& at,
                                                     Here where = Here::current()) const;
  /// The state before the first place.
  [[nodiscard]] MambaState make_state(std::int64_t rows) const;
  void visit(TreeVisitor& v) {
    v.visit("in", in);
    v.visit("conv", conv);
    v.visit("select", select);
    v.visit("step", step);
    v.visit("a_log", a_log);
    v.visit("d", d);
    v.visit("out", out);
  }
};

/// What a GatedDeltaNet remembers of the places so far.
struct GatedDeltaState {
  Array q, k, v;  ///< [rows, window - 1, channels]: what the convolutions still read
  Array s;        ///< [rows, heads, key width, value width]
};

struct GatedDeltaNetOptions {
  std::int64_t key_width = 0;    ///< of a head; 0: width/heads
  std::int64_t value_width = 0;  ///< of a head; 0: the same
  std::int64_t window = 4;       ///< of the convolutions
  double eps = 1e-5;
  DType dtype = DType::F32;
};

/// Gated delta-rule attention (Yang et al., 2024). With q, k, v = silu(conv(..(x))), q and k of
/// length 1, β = σ(beta(x)) and g = -e^(a_log)·softplus(decay(x)):
///   o = gated_delta_net(q, k, v, g, β);  out(norm(o) · silu(gate(x)))
struct GatedDeltaNet {
  Linear q, k, v;
  Conv1d q_conv, k_conv, v_conv;
  Linear beta, decay;
  Array a_log;  ///< [heads]
  RMSNorm norm;
  Linear gate, out;
  std::int64_t heads = 1;

  GatedDeltaNet() = default;
  GatedDeltaNet(std::int64_t width, std::int64_t head_count,
                const GatedDeltaNetOptions& options = {});
  [[nodiscard]] Array operator()(const Array& x, Here where = Here::current()) const;
  /// The next places of sequences of different lengths, and the state behind those that count.
  [[nodiscard]] std::pair<Array, GatedDeltaState> advance(const Array& x,
                                                          const GatedDeltaState& state,
                                                          const StepPlaces& at,
                                                          Here where = Here::current()) const;
  /// The state before the first place.
  [[nodiscard]] GatedDeltaState make_state(std::int64_t rows) const;
  void visit(TreeVisitor& visitor) {
    visitor.visit("q", q);
    visitor.visit("k", k);
    visitor.visit("v", v);
    visitor.visit("q_conv", q_conv);
    visitor.visit("k_conv", k_conv);
    visitor.visit("v_conv", v_conv);
    visitor.visit("beta", beta);
    visitor.visit("decay", decay);
    visitor.visit("a_log", a_log);
    visitor.visit("norm", norm);
    visitor.visit("gate", gate);
    visitor.visit("out", out);
    visitor.visit("heads", heads);
  }
};

}  // namespace ricci::nn
