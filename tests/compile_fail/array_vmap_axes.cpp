#include <mutex>
#include <string>
#include <thread>

#include "ricci/array.h"

using namespace ricci;  // NOLINT

void mistake(const Array& x) {
#ifdef RICCI_EXPECT_OK
  (void)vmap([](Array a) { return a; }, {.in_axes = {0}})(x);
#else
  (void)vmap([](Array a) { return a; }, 0)(x);
#endif
}
