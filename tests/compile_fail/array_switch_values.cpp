// Values in the place of functions.
#include <mutex>
#include <string>
#include <thread>

#include "ricci/array.h"

using namespace ricci;  // NOLINT

void mistake(const Array& x, const Array& y) {
  (void)x, (void)y;
#ifdef RICCI_EXPECT_OK
  (void)switch_(0, [&] { return x; }, [&] { return y; });
#else
  (void)switch_(0, x, y);
#endif
}
