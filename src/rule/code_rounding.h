// Numbers as they are rounded where codes are made.
#pragma once

#include "ricci/type/dtype.h"

namespace ricci::rule {

/// In f64 for that, in f32 for narrower floats: a quotient just off the middle of two codes decides
/// for another one, and all devices have to agree.
class CodeRounding {
 public:
  explicit CodeRounding(DType dtype) : wide_(dtype == DType::F64) {}
  /// Of one operation on numbers that are rounded, in f64: rounded again it is what f32 gives.
  double operator()(double v) const {
    return wide_ ? v : static_cast<double>(static_cast<float>(v));
  }

 private:
  bool wide_;
};

}  // namespace ricci::rule
