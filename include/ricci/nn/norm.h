// Normalisations, and dropout.
#pragma once

#include <cstdint>

#include "ricci/array/array.h"
#include "ricci/array/tree.h"
#include "ricci/nn/training_scope.h"

namespace ricci::nn {

struct NormOptions {
  double eps = 1e-5;
  DType dtype = DType::F32;
};

/// Zero mean and unit variance along the last axis, scaled and shifted.
struct LayerNorm {
  Array w, b;  ///< [width]
  double eps = 1e-5;

  LayerNorm() = default;
  explicit LayerNorm(std::int64_t width, const NormOptions& options = {});
  [[nodiscard]] Array operator()(const Array& x, Here where = Here::current()) const;
  void visit(TreeVisitor& v) {
    v.visit("w", w);
    v.visit("b", b);
    v.visit("eps", eps);
  }
};

/// Unit mean square along the last axis, scaled.
struct RMSNorm {
  Array w;  ///< [width]
  double eps = 1e-5;

  RMSNorm() = default;
  explicit RMSNorm(std::int64_t width, const NormOptions& options = {});
  [[nodiscard]] Array operator()(const Array& x, Here where = Here::current()) const;
  void visit(TreeVisitor& v) {
    v.visit("w", w);
    v.visit("eps", eps);
  }
};

/// Zero mean and unit variance over groups of channels of each example, x [N, channels, ..].
struct GroupNorm {
  Array w, b;  ///< [channels]
  std::int64_t groups = 1;
  double eps = 1e-5;

  GroupNorm() = default;
  GroupNorm(std::int64_t group_count, std::int64_t channels, const NormOptions& options = {});
  [[nodiscard]] Array operator()(const Array& x, Here where = Here::current()) const;
  void visit(TreeVisitor& v) {
    v.visit("w", w);
    v.visit("b", b);
    v.visit("groups", groups);
    v.visit("eps", eps);
  }
};

struct BatchNormOptions {
  double eps = 1e-5;
  double momentum = 0.1;  ///< the share of a batch in the running statistics, as in PyTorch
  DType dtype = DType::F32;
};

/// Zero mean and unit variance of every channel, x [N, channels, ..]: of the batch in training,
/// which the running statistics follow; of the running statistics otherwise. The variance that is
/// kept is unbiased.
struct BatchNorm {
  Array w, b;        ///< [channels]
  Buffer mean, var;  ///< [channels]
  double eps = 1e-5;
  double momentum = 0.1;

  BatchNorm() = default;
  explicit BatchNorm(std::int64_t channels, const BatchNormOptions& options = {});
  [[nodiscard]] Array operator()(const Array& x, Here where = Here::current()) const;
  void visit(TreeVisitor& v) {
    v.visit("w", w);
    v.visit("b", b);
    v.visit("mean", mean);
    v.visit("var", var);
    v.visit("eps", eps);
    v.visit("momentum", momentum);
  }
};

/// In training: elements are left out with probability p, and the others made larger by 1/(1 - p).
/// Every call of every step has a mask of its own. Otherwise the identity.
struct Dropout {
  double p = 0.5;

  Dropout() = default;
  explicit Dropout(double probability);
  [[nodiscard]] Array operator()(const Array& x, Here where = Here::current()) const;
  void visit(TreeVisitor& v) { v.visit("p", p); }
};

}  // namespace ricci::nn
