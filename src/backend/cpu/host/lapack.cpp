#include "backend/cpu/host/lapack.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif

#include "backend/cpu/kernels/cpu_features.h"
#include "support/environment.h"

extern "C" {
// How an OpenBLAS that has kernels for many processors chooses among them; others have no such
// functions.
[[gnu::weak]] void gotoblas_dynamic_init();
[[gnu::weak]] void gotoblas_dynamic_quit();
}

namespace ricci::cpu {
namespace {

bool has_avx512() {
  constexpr std::array<std::string_view, 5> Names{"avx512f", "avx512bw", "avx512cd", "avx512dq",
                                                  "avx512vl"};
  return std::ranges::all_of(Names, cpu_has);
}

// The environment is the whole process's: it is left alone where threads may be reading it.
bool has_threads() {
#if __has_include(<sys/single_threaded.h>)
  return __libc_single_threaded == 0;
#else
  return true;
#endif
}

// A release that is older than the processor does not know it and takes the kernels of one without
// wide vectors, two to five times slower: it is told of a relative. The variable is how it is told,
// and is read nowhere else; this happens while the program is loaded.
bool choose_kernels() {
  constexpr const char* Variable = "OPENBLAS_CORETYPE";
  if (gotoblas_dynamic_init == nullptr || gotoblas_dynamic_quit == nullptr) return false;
  if (has_threads() || environment_variable(Variable) != nullptr) return false;
  if (std::string_view(openblas_get_corename()) != "Prescott" || !cpu_has("avx2") ||
      !cpu_has("fma")) {
    return false;
  }
  setenv(Variable, has_avx512() ? "SkylakeX" : "Haswell", 1);
  gotoblas_dynamic_quit();
  gotoblas_dynamic_init();
  unsetenv(Variable);
  return true;
}

[[maybe_unused]] const bool Chosen = choose_kernels();

}  // namespace

std::unique_lock<ForkMutex> alone() {
  static ForkMutex mutex;
  return std::unique_lock(mutex);
}

}  // namespace ricci::cpu
