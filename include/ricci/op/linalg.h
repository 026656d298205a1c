// Matrix products and linear systems.
#pragma once

#include "ricci/op/fields.h"

namespace ricci::op {

/// Matrix product; leading axes are batches and broadcast.
///   a [.., M, K], b [.., K, N]:  out[β, m, n] = Σ_k a[β, m, k] · b[β, k, n]
struct Matmul {
  static constexpr OpInfo info{.name = "matmul",
                               .operands = "a, b",
                               .results = "out",
                               .traits = Trait::Multilinear,
                               .help = "batched matrix product",
                               .formula = "a [.., M, K], b [.., K, N]: "
                                          "out[β, m, n] = Σ_k a[β, m, k] · b[β, k, n]",
                               .constraints = "c1 shape: a and b have rank 2 or more\n"
                                              "c2 shape: a's last size equals b's last but one\n"
                                              "c3 shape: the leading axes broadcast together\n"
                                              "c4 dtype: a and b have one dtype, not bool"};
  static void fields(auto&, auto&&) {}
  bool operator==(const Matmul&) const = default;
};

}  // namespace ricci::op
