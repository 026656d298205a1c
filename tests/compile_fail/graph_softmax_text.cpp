// An axis by a name it does not have.
#include <mutex>
#include <string>
#include <thread>

#include "ricci/graph.h"
#include "ricci/ricci.h"

using namespace ricci;  // NOLINT

void mistake(Graph& g, Value x, Value y) {
#ifdef RICCI_EXPECT_OK
  (void)g, (void)x, (void)y;
  (void)softmax(x, 1);
#else
  (void)softmax(x, "rows");
#endif
}
