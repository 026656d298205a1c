// The list of a graph's nodes dies with it.
#include "ricci/ir/text.h"

std::size_t f() {
#ifdef RICCI_EXPECT_OK
  const ricci::Graph graph = ricci::parse_graph("graph @g { return }");
  std::span<const ricci::Node> nodes = graph.nodes();
#else
  std::span<const ricci::Node> nodes = ricci::parse_graph("graph @g { return }").nodes();
#endif
  return nodes.size();
}
