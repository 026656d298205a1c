// Sizes without braces.
#include <mutex>
#include <string>
#include <thread>

#include "ricci/graph.h"
#include "ricci/ricci.h"

using namespace ricci;  // NOLINT

void mistake(Graph& g, Value x, Value y) {
#ifdef RICCI_EXPECT_OK
  (void)g, (void)x, (void)y;
  (void)reshape(x, {2, 3});
#else
  (void)reshape(x, 2, 3);
#endif
}
