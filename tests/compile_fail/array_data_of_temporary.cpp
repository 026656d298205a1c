#include <mutex>
#include <string>
#include <thread>

#include "ricci/array.h"

using namespace ricci;  // NOLINT

void mistake(const Array& x) {
#ifdef RICCI_EXPECT_OK
  (void)x.data<float>();
#else
  (void)(x + 1).data<float>();
#endif
}
