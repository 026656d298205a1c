// Tests that want a GPU, run in a process of their own that finds an emulated one
// (emulated_driver.h): a process has one driver.
#pragma once

#include <string>

namespace ricci::testing {

/// Where the emulated libraries of this process are; null when its GPU, if any, is a real one.
[[nodiscard]] const char* emulated_folder();
/// A function of one of them (`libcuda.so.1`); null where it is not loaded.
[[nodiscard]] void* emulated_function(const std::string& library, const char* name);

/// Why no GPU can be emulated here; empty: it can.
[[nodiscard]] std::string why_no_emulated_gpu();

struct EmulatedRun {
  int status = 0;
  std::string log;
};
/// The tests of this binary that match. With cuBLASLt, too, where that is asked for; on compute
/// capability 9.0, or an `older` one, 8.0.
[[nodiscard]] EmulatedRun run_with_emulated_gpu(const std::string& filter, bool with_products,
                                                bool older = false);

}  // namespace ricci::testing
