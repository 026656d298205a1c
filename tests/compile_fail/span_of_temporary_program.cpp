// The list of a compiled graph's inputs dies with it. [FE-7c]
#include "ricci/runtime/compiled_graph.h"

void f(const ricci::Graph& graph) {
#ifdef RICCI_EXPECT_OK
  const ricci::CompiledGraph program = compile(graph);
  for (const ricci::Port& p : program.inputs()) (void)p;
#else
  for (const ricci::Port& p : compile(graph).inputs()) (void)p;
#endif
}
