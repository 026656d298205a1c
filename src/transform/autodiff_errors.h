// Puts what rules and passes report into the family of errors of differentiation.
#pragma once

#include <exception>
#include <utility>

#include "ricci/transform/error.h"

namespace ricci {

/// Runs `f`. A UserError of a code the family has becomes an AutodiffError with that one nested.
template <class F>
auto with_autodiff_errors(F&& f) {
  try {
    return std::forward<F>(f)();
  } catch (const AutodiffError&) {
    throw;
  } catch (const UserError& e) {
    if (!AutodiffError::covers(e.code())) throw;
    std::throw_with_nested(AutodiffError(e.diagnostics()));
  }
}

}  // namespace ricci
