// The body comes last, not first as in JAX.
#include <mutex>
#include <string>
#include <thread>

#include "ricci/array.h"

using namespace ricci;  // NOLINT

void mistake(const Array& x) {
#ifdef RICCI_EXPECT_OK
  (void)scan(x[0], x, [](Array c, Array r) { return carry_and(c + r, c); });
#else
  (void)scan([](Array c, Array r) { return carry_and(c + r, c); }, x[0], x);
#endif
}
