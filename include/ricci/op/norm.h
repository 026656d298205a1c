// Normalisations and their gradients. Variances are biased, and computed from centred values.
#pragma once

#include "ricci/op/fields.h"

namespace ricci::op {

/// Zero mean and unit variance along an axis, then scaled and shifted along it.
///   μ = mean x, v = mean (x - μ)², x̂ = (x - μ)/√(v + eps), y = γ x̂ + β
struct LayerNorm {
  Axis axis = -1;
  Real eps = 1e-5;

  static constexpr OpInfo info{
      .name = "layer_norm",
      .operands = "x, gamma, beta",
      .results = "out",
      .help = "zero mean and unit variance along an axis, scaled and shifted",
      .formula = "out = γ (x - μ)/√(v + eps) + β, μ = mean_axis x, v = mean_axis (x - μ)²",
      .constraints = "c1 dtype: all operands have one floating dtype\n"
                     "c2 shape: gamma and beta are [x.dim(axis)]\n"
                     "c3 attr: eps is not negative",
      .vjp = RuleSource::Written,
      .batch = RuleSource::Written};
  static void fields(auto& self, auto&& f) {
    f("axis", self.axis, "axis that is normalised");
    f("eps", self.eps, "added to the variance");
  }
  bool operator==(const LayerNorm&) const = default;
};

/// Unit mean square along an axis, then scaled and shifted along it.
///   r = 1/√(mean x² + eps), y = γ x r + β
struct RmsNorm {
  Axis axis = -1;
  Real eps = 1e-5;

  static constexpr OpInfo info{.name = "rms_norm",
                               .operands = "x, gamma, beta",
                               .results = "out",
                               .help = "unit mean square along an axis, scaled and shifted",
                               .formula = "out = γ x r + β, r = 1/√(mean_axis x² + eps)",
                               .constraints = "c1 dtype: all operands have one floating dtype\n"
                                              "c2 shape: gamma and beta are [x.dim(axis)]\n"
                                              "c3 attr: eps is not negative",
                               .vjp = RuleSource::Written,
                               .batch = RuleSource::Written};
  static void fields(auto& self, auto&& f) {
    f("axis", self.axis, "axis that is normalised");
    f("eps", self.eps, "added to the mean square");
  }
  bool operator==(const RmsNorm&) const = default;
};

/// As layer_norm, with statistics over a group of channels and all spatial axes of one example.
///   x [N, C, spatial…]; y = γ_c x̂ + β_c
struct GroupNorm {
  std::int64_t num_groups = 1;
  Real eps = 1e-5;

  static constexpr OpInfo info{
      .name = "group_norm",
      .operands = "x, gamma, beta",
      .results = "out",
      .help = "normalises groups of channels of each example",
      .formula = "x [N, C, spatial…]: out = γ_c (x - μ)/√(v + eps) + β_c, statistics over "
                 "(C/num_groups)·spatial elements",
      .constraints = "c1 dtype: all operands have one floating dtype\n"
                     "c2 shape: x has rank 2 or more\n"
                     "c3 attr: num_groups is positive and divides x.dim(1)\n"
                     "c4 shape: gamma and beta are [x.dim(1)]\n"
                     "c5 attr: eps is not negative",
      .vjp = RuleSource::Written,
      .batch = RuleSource::Written};
  static void fields(auto& self, auto&& f) {
    f("num_groups", self.num_groups, "groups the channels are divided into", Presence::Required);
    f("eps", self.eps, "added to the variance");
  }
  bool operator==(const GroupNorm&) const = default;
};

/// Normalises channels with statistics that are given.   y = γ (x - mean)/√(var + eps) + β
struct BatchNormInference {
  Axis axis = -1;
  Real eps = 1e-5;

  static constexpr OpInfo info{.name = "batch_norm_inference",
                               .operands = "x, gamma, beta, mean, var",
                               .results = "out",
                               .help = "normalises channels with statistics that are given",
                               .formula = "out = γ (x - mean)/√(var + eps) + β, along axis",
                               .constraints = "c1 dtype: all operands have one floating dtype\n"
                                              "c2 shape: gamma, beta, mean and var are "
                                              "[x.dim(axis)]\n"
                                              "c3 attr: eps is not negative",
                               .vjp = RuleSource::Written,
                               .batch = RuleSource::Written};
  static void fields(auto& self, auto&& f) {
    f("axis", self.axis, "axis of the channels");
    f("eps", self.eps, "added to the variance");
  }
  bool operator==(const BatchNormInference&) const = default;
};

/// The gradients of layer_norm, in one pass. With h = dy γ and s = 1/√(v + eps):
///   dx = s (h - mean h - x̂ mean(h x̂)), dγ = Σ_others dy x̂, dβ = Σ_others dy
struct LayerNormBackward {
  Axis axis = -1;
  Real eps = 1e-5;

  static constexpr OpInfo info{.name = "layer_norm_backward",
                               .operands = "x, gamma, dy",
                               .results = "dx, dgamma, dbeta",
                               .help = "the gradients of layer_norm",
                               .formula =
                                   "dx = s (h - mean h - x̂ mean(h x̂)), h = dy γ, s = 1/√(v + eps); "
                                   "dgamma = Σ_others dy x̂; dbeta = Σ_others dy",
                               .constraints = "c1 dtype: all operands have one floating dtype\n"
                                              "c2 shape: gamma is [x.dim(axis)]\n"
                                              "c3 attr: eps is not negative\n"
                                              "c4 shape: dy has x's shape"};
  static void fields(auto& self, auto&& f) {
    f("axis", self.axis, "axis that is normalised");
    f("eps", self.eps, "added to the variance");
  }
  bool operator==(const LayerNormBackward&) const = default;
};

/// The gradients of rms_norm, in one pass. With h = dy γ and r = 1/√(mean x² + eps):
///   dx = r h - r³ x mean(h x), dγ = Σ_others dy x r, dβ = Σ_others dy
struct RmsNormBackward {
  Axis axis = -1;
  Real eps = 1e-5;

  static constexpr OpInfo info{.name = "rms_norm_backward",
                               .operands = "x, gamma, dy",
                               .results = "dx, dgamma, dbeta",
                               .help = "the gradients of rms_norm",
                               .formula =
                                   "dx = r h - r³ x mean(h x), h = dy γ, r = 1/√(mean x² + eps); "
                                   "dgamma = Σ_others dy x r; dbeta = Σ_others dy",
                               .constraints = "c1 dtype: all operands have one floating dtype\n"
                                              "c2 shape: gamma is [x.dim(axis)]\n"
                                              "c3 attr: eps is not negative\n"
                                              "c4 shape: dy has x's shape"};
  static void fields(auto& self, auto&& f) {
    f("axis", self.axis, "axis that is normalised");
    f("eps", self.eps, "added to the mean square");
  }
  bool operator==(const RmsNormBackward&) const = default;
};

/// The gradients of group_norm, in one pass: layer_norm's with means over a group.
struct GroupNormBackward {
  std::int64_t num_groups = 1;
  Real eps = 1e-5;

  static constexpr OpInfo info{
      .name = "group_norm_backward",
      .operands = "x, gamma, dy",
      .results = "dx, dgamma, dbeta",
      .help = "the gradients of group_norm",
      .formula = "dx = s (h - mean h - x̂ mean(h x̂)) with means over a group, h = dy γ_c; "
                 "dgamma_c = Σ dy x̂; dbeta_c = Σ dy, over all axes but the channel's",
      .constraints = "c1 dtype: all operands have one floating dtype\n"
                     "c2 shape: x has rank 2 or more\n"
                     "c3 attr: num_groups is positive and divides x.dim(1)\n"
                     "c4 shape: gamma is [x.dim(1)]\n"
                     "c5 attr: eps is not negative\n"
                     "c6 shape: dy has x's shape"};
  static void fields(auto& self, auto&& f) {
    f("num_groups", self.num_groups, "groups the channels are divided into", Presence::Required);
    f("eps", self.eps, "added to the variance");
  }
  bool operator==(const GroupNormBackward&) const = default;
};

/// The gradients of batch_norm_inference, in one pass. With s = 1/√(var + eps), sums over all axes
/// but the channel's:
///   dx = dy γ s, dγ = Σ dy (x - mean) s, dβ = Σ dy, dmean = -Σ dy γ s,
///   dvar = -½ Σ dy γ (x - mean) s³
struct BatchNormInferenceBackward {
  Axis axis = -1;
  Real eps = 1e-5;

  static constexpr OpInfo info{
      .name = "batch_norm_inference_backward",
      .operands = "x, gamma, mean, var, dy",
      .results = "dx, dgamma, dbeta, dmean, dvar",
      .help = "the gradients of batch_norm_inference",
      .formula = "dx = dy γ s, s = 1/√(var + eps); dgamma = Σ dy (x - mean) s; dbeta = Σ dy; "
                 "dmean = -Σ dy γ s; dvar = -½ Σ dy γ (x - mean) s³",
      .constraints = "c1 dtype: all operands have one floating dtype\n"
                     "c2 shape: gamma, mean and var are [x.dim(axis)]\n"
                     "c3 attr: eps is not negative\n"
                     "c4 shape: dy has x's shape"};
  static void fields(auto& self, auto&& f) {
    f("axis", self.axis, "axis of the channels");
    f("eps", self.eps, "added to the variance");
  }
  bool operator==(const BatchNormInferenceBackward&) const = default;
};

}  // namespace ricci::op
