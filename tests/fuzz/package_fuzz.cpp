// Whatever happens to a program compiled ahead of time, it is refused with a reason, or runs within
// the arrays it is given.
#include <cstdint>

#include "fuzz/package_attack.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static ricci::testing::PackageAttack attack;
  attack.run({data, size});
  return 0;
}
