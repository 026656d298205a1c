// Whatever happens to the files of a cache folder, a kernel that is found is the one that was
// stored.
#include <cstdint>

#include "fuzz/cache_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static ricci::testing::CacheFolderAttack attack;
  attack.run({data, size});
  return 0;
}
