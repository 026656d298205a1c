// An axis, where an element would be one too.
#include <mutex>
#include <string>
#include <thread>

#include "ricci/array.h"

using namespace ricci;  // NOLINT

void mistake(const Array& x, const Array& y) {
  (void)x, (void)y;
#ifdef RICCI_EXPECT_OK
  (void)amax(x, 1);
#else
  (void)max(x, 1);
#endif
}
