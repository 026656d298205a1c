// Mixtures of experts: every row goes through a few of many networks.
#pragma once

#include <cstdint>

#include "ricci/array/array.h"
#include "ricci/array/tree.h"
#include "ricci/nn/linear.h"

namespace ricci::nn {

struct MixtureOfExpertsOptions {
  std::int64_t picks = 2;  ///< experts a row goes through
  Initializer init = lecun_normal;
  DType dtype = DType::F32;
};

/// Σ p_e · (gelu(x·w_in[e])·w_out[e]) over the experts e a router picks for x, with p the softmax
/// of their scores; x [.., width].
struct MixtureOfExperts {
  Linear router;  ///< width to experts
  Array w_in;     ///< [experts, width, hidden]
  Array w_out;    ///< [experts, hidden, width]
  std::int64_t picks = 2;

  struct Routed {
    Array y;
    /// experts · Σ_e (share of picks that e gets)·(mean probability of e): 1 where all get the same
    /// (Fedus et al., 2021). Add a little of it to the loss.
    Array balance;
  };

  MixtureOfExperts() = default;
  MixtureOfExperts(std::int64_t width, std::int64_t hidden, std::int64_t experts,
                   const MixtureOfExpertsOptions& options = {});
  [[nodiscard]] Array operator()(const Array& x, Here where = Here::current()) const;
  /// The same, and how evenly rows were spread.
  [[nodiscard]] Routed route(const Array& x, Here where = Here::current()) const;
  void visit(TreeVisitor& v) {
    v.visit("router", router);
    v.visit("w_in", w_in);
    v.visit("w_out", w_out);
    v.visit("picks", picks);
  }
};

}  // namespace ricci::nn
