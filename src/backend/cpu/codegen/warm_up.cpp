#include "backend/cpu/codegen/warm_up.h"

#include <algorithm>

#include "backend/cpu/codegen/jit.h"
#include "backend/cpu/math/vector_math.h"

namespace ricci::cpu {

void warm_up(ThreadPool& pool) {
  // Compiles run side by side, and each of them needs a target machine.
  constexpr int Machines = 4;
  const int lanes = host_target().vector_bits / 32;
  pool.run(std::min(pool.threads(), Machines), [&](std::int64_t) {
    static_cast<void>(jit_map({.name = "tanh", .dtype = DType::F32, .lanes = lanes}, {}));
  });
}

}  // namespace ricci::cpu
