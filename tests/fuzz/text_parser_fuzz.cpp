// Any text is parsed or refused; what parses is well formed and survives printing and reading.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ricci;
  std::vector<Graph> graphs;
  try {
    graphs = parse({reinterpret_cast<const char*>(data), size});
  } catch (const UserError&) {
    return 0;
  }
  for (const Graph& graph : graphs) verify(graph);
  const std::string text = print_file(graphs);
  const std::vector<Graph> again = parse(text);
  if (!(again == graphs) || print_file(again) != text) std::abort();
  return 0;
}
