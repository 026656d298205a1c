// Memory that is not there, as an error of ours. Kernels report it where they know the op; this is
// for everything between: graphs, programs, results. For handlers of whole functions:
//
//   … compile(…) try { … } catch (const std::exception&) { rethrow_as_ours("compile", name); }
#pragma once

#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include "ricci/support/error.h"

namespace ricci::runtime {

/// Throws what is being handled; UserError(out_of_memory) when that is a want of memory.
[[noreturn]] inline void rethrow_as_ours(const char* action, const std::string& what) {
  const auto no_memory = [&] {
    return UserError(Diagnostic{ErrorCode::OutOfMemory,
                                action,
                                fmt::format("there is no memory to {} '{}'", action, what),
                                {},
                                {},
                                {}});
  };
  try {
    throw;
  } catch (const std::bad_alloc&) {
    throw no_memory();
  } catch (const std::length_error&) {  // more than any memory has
    throw no_memory();
  }
}

}  // namespace ricci::runtime
