// Steps the reference kernels of the fused ops are made of, on plain arrays.
#pragma once

#include "ricci/compiler/rule/nd.h"
#include "ricci/op/attention.h"

#include "rule/norm_parts.h"

namespace ricci::rule {

/// out[β, m, n] = Σ_k x[β, m, k] · w[β, k, n] + bias[n]; a bias without elements is 0
[[nodiscard]] RealNd linear(const RealNd& x, const RealNd& w, const RealNd& bias, StaticDims out);
/// As above, for a matrix w.
[[nodiscard]] RealNd linear(const RealNd& x, const RealNd& w, const RealNd& bias);
/// x[.., first + i] for i < count
[[nodiscard]] RealNd columns(const RealNd& x, std::int64_t first, std::int64_t count);
/// Rotates the pairs (i, i + n_rot/2) of every head by the angles of its step; what is behind them
/// stays.
[[nodiscard]] RealNd rotated(const RealNd& x, const RealNd& cos, const RealNd& sin,
                             std::int64_t head_dim, std::int64_t n_rot);
/// x += y, of one shape or broadcast along the axes in front.
void add_to(RealNd& x, const RealNd& y);
/// The norm of rows along the last axis.
[[nodiscard]] RealNd normalised_last(const RealNd& x, const RealNd& gamma, const RealNd& beta,
                                     double eps, Centred centred);
/// P v, with P the probabilities of attention over q and k.
[[nodiscard]] RealNd attended(const op::Attention& op, const RealNd& q, const RealNd& k,
                              const RealNd& v, const RealNd& mask);

}  // namespace ricci::rule
