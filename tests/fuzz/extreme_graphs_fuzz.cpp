// Any bytes stand for a graph with extreme attributes and sizes, which is refused or computed alike
// by the interpreter and the CPU.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "property/extreme_graphs.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto result = ricci::testing::try_extreme_graph({data, size});
  if (result.wrong.empty()) return 0;
  std::fprintf(stderr, "%s\n", result.wrong.c_str());
  std::abort();
}
