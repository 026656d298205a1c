// What goes wrong when a program is differentiated: a family of UserErrors, so that a caller can
// tell "this has no derivative" from any other mistake.
//
//   try { grad_with_loss(graph, {"w"}); }
//   catch (const ricci::AutodiffError& e) { … e.code() … }
#pragma once

#include "ricci/support/error.h"

namespace ricci {

/// One of wrong_stage, lower_failed, no_gradient, refused and unbounded_loop. Where another error
/// is the cause it is nested: std::rethrow_if_nested gives it.
class AutodiffError : public UserError {
 public:
  using UserError::UserError;
  /// Does a code belong to the family?
  [[nodiscard]] static bool covers(ErrorCode code) noexcept {
    return code == ErrorCode::WrongStage || code == ErrorCode::LowerFailed ||
           code == ErrorCode::NoGradient || code == ErrorCode::Refused ||
           code == ErrorCode::UnboundedLoop;
  }
};

}  // namespace ricci
