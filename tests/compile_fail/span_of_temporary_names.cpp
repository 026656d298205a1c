// The names of a run's outputs die with them.
#include "ricci/interp/interpreter.h"

std::size_t f(const ricci::Graph& graph) {
#ifdef RICCI_EXPECT_OK
  const ricci::Outputs outputs = ricci::interpret(graph, {});
  std::span<const std::string> names = outputs.names();
#else
  std::span<const std::string> names = ricci::interpret(graph, {}).names();
#endif
  return names.size();
}
