// An operand too few: the message names them.
#include <mutex>
#include <string>
#include <thread>

#include "ricci/graph.h"
#include "ricci/ricci.h"

using namespace ricci;  // NOLINT

void mistake(Graph& g, Value x, Value y) {
#ifdef RICCI_EXPECT_OK
  (void)g, (void)x, (void)y;
  (void)layer_norm(x, y, y);
#else
  (void)layer_norm(x, y);
#endif
}
