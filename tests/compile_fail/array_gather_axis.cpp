// Another library's order.
#include <mutex>
#include <string>
#include <thread>

#include "ricci/array.h"

using namespace ricci;  // NOLINT

void mistake(const Array& x, const Array& y) {
  (void)x, (void)y;
#ifdef RICCI_EXPECT_OK
  (void)take_along_axis(x, y, 1);
#else
  (void)gather(x, 1, y);
#endif
}
