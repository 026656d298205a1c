#include <mutex>
#include <string>
#include <thread>

#include "ricci/array.h"

using namespace ricci;  // NOLINT

void mistake(const Array& x) {
#ifdef RICCI_EXPECT_OK
  (void)grad([](Array a) { return sum(a); })(x);
#else
  (void)grad([](Array a) { return sum(a); })(x, x);
#endif
}
