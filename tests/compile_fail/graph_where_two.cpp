// One branch too few.
#include <mutex>
#include <string>
#include <thread>

#include "ricci/graph.h"
#include "ricci/ricci.h"

using namespace ricci;  // NOLINT

void mistake(Graph& g, Value x, Value y) {
#ifdef RICCI_EXPECT_OK
  (void)g, (void)x, (void)y;
  (void)where(x > y, x, 1.0);
#else
  (void)where(x > y, x);
#endif
}
