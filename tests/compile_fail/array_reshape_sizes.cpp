#include <mutex>
#include <string>
#include <thread>

#include "ricci/array.h"

using namespace ricci;  // NOLINT

void mistake(const Array& x) {
#ifdef RICCI_EXPECT_OK
  (void)reshape(x, {2, 3});
#else
  (void)reshape(x, 2, 3);
#endif
}
