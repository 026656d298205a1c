#include <mutex>
#include <string>
#include <thread>

#include "ricci/array.h"

using namespace ricci;  // NOLINT

void mistake() {
#ifdef RICCI_EXPECT_OK
  struct P {
    Array w;
    int m;
  };
  (void)jit([](const P& p) { return p.w; })(P{});
#else
  struct P {
    Array w;
    std::mutex* m;
  };
  (void)jit([](const P& p) { return p.w; })(P{});
#endif
}
