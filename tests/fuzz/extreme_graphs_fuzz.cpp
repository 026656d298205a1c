// Any bytes stand for a graph with extreme attributes and sizes, which is refused or computed alike
// by the interpreter and, made for the CPU, by the interpreter of programs. What takes long is done
// for a share of them (`ExtremeShares`): the CPU's own code, larger graphs, a second run with every
// temporary apart, text.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "property/extreme_graphs.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ricci::testing;
  const ExtremeResult result = try_extreme_graph({data, size}, ExtremeRun::Interpreted);
  if (result.wrong.empty()) return 0;
  std::fprintf(stderr, "%s\n", result.wrong.c_str());
  std::abort();
}
