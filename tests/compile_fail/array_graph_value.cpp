#include <mutex>
#include <string>
#include <thread>

#include "ricci/array.h"

using namespace ricci;  // NOLINT

void mistake(const Array& x) {
#ifdef RICCI_EXPECT_OK
  (void)(x + x);
#else
  Graph g;
  Value v = g.input("v", f32());
  (void)(x + v);
#endif
}
