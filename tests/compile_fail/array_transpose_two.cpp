// Two axes, which some exchange and others take for all.
#include <mutex>
#include <string>
#include <thread>

#include "ricci/array.h"

using namespace ricci;  // NOLINT

void mistake(const Array& x, const Array& y) {
  (void)x, (void)y;
#ifdef RICCI_EXPECT_OK
  (void)swapaxes(x, 0, 1);
#else
  (void)transpose(x, 0, 1);
#endif
}
