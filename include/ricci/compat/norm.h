// One gradient of a normalisation at a time. Each builds the backward op and asks for one of its
// results; operands the gradient does not depend on are accepted and dropped, or made up where the
// list leaves them out.
#pragma once

#include "ricci/build/build.h"

namespace ricci {

Value layer_norm_backward_input(Value x, Value gamma, Value dy, op::LayerNormBackward attrs = {},
                                std::source_location loc = std::source_location::current());
Value layer_norm_backward_gamma(Value x, Value dy, op::LayerNormBackward attrs = {},
                                std::source_location loc = std::source_location::current());

Value rms_norm_backward_input(Value x, Value gamma, Value beta, Value dy,
                              op::RmsNormBackward attrs = {},
                              std::source_location loc = std::source_location::current());
Value rms_norm_backward_gamma(Value x, Value gamma, Value beta, Value dy,
                              op::RmsNormBackward attrs = {},
                              std::source_location loc = std::source_location::current());
Value rms_norm_backward_beta(Value x, Value gamma, Value beta, Value dy,
                             op::RmsNormBackward attrs = {},
                             std::source_location loc = std::source_location::current());

Value group_norm_backward_input(Value x, Value gamma, Value beta, Value dy,
                                op::GroupNormBackward attrs,
                                std::source_location loc = std::source_location::current());
Value group_norm_backward_gamma(Value x, Value dy, op::GroupNormBackward attrs,
                                std::source_location loc = std::source_location::current());
Value group_norm_backward_beta(Value x, Value dy, op::GroupNormBackward attrs,
                               std::source_location loc = std::source_location::current());

Value batch_norm_inference_backward_input(
    Value x, Value gamma, Value mean, Value var, Value dy,
    op::BatchNormInferenceBackward attrs = {},
    std::source_location loc = std::source_location::current());
Value batch_norm_inference_backward_gamma(
    Value x, Value mean, Value var, Value dy, op::BatchNormInferenceBackward attrs = {},
    std::source_location loc = std::source_location::current());
Value batch_norm_inference_backward_beta(
    Value dy, op::BatchNormInferenceBackward attrs = {},
    std::source_location loc = std::source_location::current());

}  // namespace ricci
