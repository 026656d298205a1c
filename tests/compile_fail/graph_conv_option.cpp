// An option that conv2d does not have.
#include <mutex>
#include <string>
#include <thread>

#include "ricci/graph.h"
#include "ricci/ricci.h"

using namespace ricci;  // NOLINT

void mistake(Graph& g, Value x, Value y) {
#ifdef RICCI_EXPECT_OK
  (void)g, (void)x, (void)y;
  (void)conv2d(x, y, {.padding = 1});
#else
  (void)conv2d(x, y, {.pad = 1});
#endif
}
