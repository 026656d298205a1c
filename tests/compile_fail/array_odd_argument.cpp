#include <mutex>
#include <string>
#include <thread>

#include "ricci/array.h"

using namespace ricci;  // NOLINT

void mistake(const Array& x) {
#ifdef RICCI_EXPECT_OK
  (void)jit([](Array a, int) { return a; })(x, 1);
#else
  std::thread t;
  (void)jit([](Array a, const std::thread&) { return a; })(x, t);
#endif
}
