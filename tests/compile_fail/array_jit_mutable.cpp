#include <mutex>
#include <string>
#include <thread>

#include "ricci/array.h"

using namespace ricci;  // NOLINT

void mistake(const Array& x) {
  int calls = 0;
#ifdef RICCI_EXPECT_OK
  (void)jit([calls](const Array& a) { return a * calls; })(x);
#else
  (void)jit([calls](const Array& a) mutable { return a * ++calls; })(x);
#endif
}
