#include <mutex>
#include <string>
#include <thread>

#include "ricci/array.h"

using namespace ricci;  // NOLINT

void mistake(Array& x) {
#ifdef RICCI_EXPECT_OK
  x = x.at(0).set(5.0);
#else
  x[0] = 5.0;
#endif
}
