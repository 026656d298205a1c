#include "ricci/array.h"

using namespace ricci;  // NOLINT

void mistake() {
#ifdef RICCI_EXPECT_OK
  (void)zeros({2, 3});
#else
  (void)zeros(2, 3);
#endif
}
