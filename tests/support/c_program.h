// C programs that use graphs compiled ahead of time: written, compiled and linked as users do, with
// no LLVM in sight, and run.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ricci/runtime/ahead_of_time.h"

#include "support/tool.h"

namespace ricci::testing {

/// One run, or several with the same arrays, of a program from C.
struct CRun {
  ObjectFile program;
  std::map<std::string, Tensor> read;     ///< by field of the struct of arrays
  std::map<std::string, Tensor> written;  ///< their values before the first run
  int runs = 1;
  int threads = 2;
};

/// What the arrays that are written hold afterwards, for each run; all in one executable. A failed
/// build or run is a failure of the test.
[[nodiscard]] std::vector<std::map<std::string, Tensor>> run_in_c(const std::vector<CRun>& runs);

/// Compiles a C99 source with all warnings as errors and links it with objects and the runtime; the
/// path of the executable, empty when it failed.
[[nodiscard]] std::string build_c(const std::string& name, const std::string& source,
                                  const std::vector<ObjectFile>& programs);

}  // namespace ricci::testing
