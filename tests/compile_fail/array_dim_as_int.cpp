// A size may have a name, so it is no int by itself.
#include <mutex>
#include <string>
#include <thread>

#include "ricci/array.h"

using namespace ricci;  // NOLINT

void mistake(const Array& x) {
#ifdef RICCI_EXPECT_OK
  const int n = static_cast<int>(x.size(0));
  (void)n;
#else
  const int n = x.dim(0);
  (void)n;
#endif
}
