#include <mutex>
#include <string>
#include <thread>

#include "ricci/array.h"

using namespace ricci;  // NOLINT

void mistake(const Array& x) {
#ifdef RICCI_EXPECT_OK
  (void)grad([](Array y) { return sum(y); })(x);
#else
  struct S {
    Array a;
  };
  (void)grad([](Array y) { return S{y}; })(x);
#endif
}
