// A builder takes the op's own attributes and no others.
#include "ricci/build/build.h"

ricci::Value f(ricci::Value x) {
#ifdef RICCI_EXPECT_OK
  return softmax(x, {.axis = 1});
#else
  return softmax(x, {.axes = 1});
#endif
}
