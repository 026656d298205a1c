#include <mutex>
#include <string>
#include <thread>

#include "ricci/array.h"

using namespace ricci;  // NOLINT

void mistake(const Array& x) {
#ifdef RICCI_EXPECT_OK
  (void)(x * 2.0);
#else
  struct S {
  } s;
  (void)(x * s);
#endif
}
