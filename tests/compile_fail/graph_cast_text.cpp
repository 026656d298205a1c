// A dtype as a text.
#include <mutex>
#include <string>
#include <thread>

#include "ricci/graph.h"
#include "ricci/ricci.h"

using namespace ricci;  // NOLINT

void mistake(Graph& g, Value x, Value y, const Array& a) {
  (void)g, (void)x, (void)y, (void)a;
#ifdef RICCI_EXPECT_OK
  (void)cast(x, {.to = DType::F32});
#else
  (void)cast(x, "f32");
#endif
}
