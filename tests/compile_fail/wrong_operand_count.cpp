// The number of operands is checked where the call is compiled.
#include "ricci/build/build.h"

ricci::Value f(ricci::Value x) {
#ifdef RICCI_EXPECT_OK
  return matmul(x, x);
#else
  return matmul(x);
#endif
}
