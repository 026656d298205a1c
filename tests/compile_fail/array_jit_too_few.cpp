#include <mutex>
#include <string>
#include <thread>

#include "ricci/array.h"

using namespace ricci;  // NOLINT

void mistake(const Array& x) {
#ifdef RICCI_EXPECT_OK
  (void)jit([](Array a, Array b) { return a + b; })(x, x);
#else
  (void)jit([](Array a, Array b) { return a + b; })(x);
#endif
}
