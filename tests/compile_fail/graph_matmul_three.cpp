// A third operand that is none.
#include <mutex>
#include <string>
#include <thread>

#include "ricci/graph.h"
#include "ricci/ricci.h"

using namespace ricci;  // NOLINT

void mistake(Graph& g, Value x, Value y) {
#ifdef RICCI_EXPECT_OK
  (void)g, (void)x, (void)y;
  (void)matmul(x, y);
#else
  (void)matmul(x, y, 3);
#endif
}
