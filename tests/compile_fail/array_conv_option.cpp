#include <mutex>
#include <string>
#include <thread>

#include "ricci/array.h"

using namespace ricci;  // NOLINT

void mistake(const Array& x) {
#ifdef RICCI_EXPECT_OK
  (void)conv2d(x, x, {.padding = 1});
#else
  (void)conv2d(x, x, {.pad = 1});
#endif
}
