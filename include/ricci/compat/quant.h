// Single gradients of fake quantisation.
#pragma once

#include "ricci/build/build.h"

namespace ricci {

/// fake_quantize_backward of scales that come from x itself.
Value fake_quantize_backward(Value x, Value dy, op::FakeQuantizeBackward attrs = {},
                             std::source_location loc = std::source_location::current());

/// One gradient of fake_quantize_lsq each.
Value fake_quantize_lsq_backward_x(Value x, Value scale, Value dy,
                                   op::FakeQuantizeLsqBackward attrs = {},
                                   std::source_location loc = std::source_location::current());
Value fake_quantize_lsq_backward_scale(Value x, Value scale, Value dy,
                                       op::FakeQuantizeLsqBackward attrs = {},
                                       std::source_location loc = std::source_location::current());

}  // namespace ricci
