// What the loop starts with comes first, not last as in JAX.
#include <mutex>
#include <string>
#include <thread>

#include "ricci/array.h"

using namespace ricci;  // NOLINT

void mistake(const Array& x) {
#ifdef RICCI_EXPECT_OK
  (void)while_loop(x, [](Array c) { return c < 3; }, [](Array c) { return c + 1; });
#else
  (void)while_loop([](Array c) { return c < 3; }, [](Array c) { return c + 1; }, x);
#endif
}
