#include <mutex>
#include <string>
#include <thread>

#include "ricci/array.h"

using namespace ricci;  // NOLINT

void mistake(const Array& x) {
#ifdef RICCI_EXPECT_OK
  float f = static_cast<float>(x);
  (void)f;
#else
  float f = x;
  (void)f;
#endif
}
