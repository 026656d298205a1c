// Norms that are compositions: of images, and by the statistics of a batch.
#pragma once

#include <source_location>

#include "ricci/build/build.h"

namespace ricci {

/// layer_norm over the channels of images [N, C, H, W], at every pixel by itself.
Value layer_norm2d(Value x, Value gamma, Value beta, Real eps = 1e-5,
                   std::source_location loc = std::source_location::current());

struct BatchNormOptions {
  Axis axis = -1;  ///< of the channels
  Real eps = 1e-5;
  double momentum = 0.1;  ///< the share of this batch in the running statistics
};
struct BatchNormResult {
  Value out;
  Value mean;          ///< of the batch, [C]
  Value var;           ///< of the batch, biased: what x is divided by
  Value running_mean;  ///< (1 - momentum)·running_mean + momentum·mean
  Value running_var;   ///< the same, with the batch's unbiased variance
};
/// Normalisation of channels by the statistics of the batch, through which gradients go, and the
/// running statistics a step passes on: no gradient goes through those.
BatchNormResult batch_norm_training(Value x, Value gamma, Value beta, Value running_mean,
                                    Value running_var, BatchNormOptions options = {},
                                    std::source_location loc = std::source_location::current());

}  // namespace ricci
