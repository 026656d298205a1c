// The one way registered ops are called. What their code throws becomes one clear error: Ricci's
// own errors and want of memory pass, everything else, be it an exception or not, is
// UserError(refused).
#pragma once

#include <new>
#include <stdexcept>

#include <fmt/format.h>

#include "ricci/op/custom.h"

namespace ricci {

[[noreturn]] inline void fail_custom(const op::Custom& op, std::string_view callback,
                                     std::string_view what) {
  throw UserError(ErrorCode::Refused,
                  fmt::format("{} of the registered op '{}' version {} failed: {}", callback,
                              op.name, op.version, what),
                  "throw UserError to say what is wrong in words of your own");
}

/// `call()`, a call of the `callback` ("the kernel") of a registered op.
template <class F>
decltype(auto) call_custom(const op::Custom& op, std::string_view callback, F&& call) {
  try {
    return call();
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::length_error&) {  // more elements than any memory: the same want
    throw;
  } catch (const std::exception& e) {
    fail_custom(op, callback, e.what());
  } catch (...) {
    fail_custom(op, callback, "it threw something that is no exception");
  }
}

}  // namespace ricci
