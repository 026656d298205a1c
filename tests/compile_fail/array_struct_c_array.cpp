#include "ricci/array.h"

#include <mutex>
#include <string>
#include <thread>

using namespace ricci;  // NOLINT

struct Layers {
#ifdef RICCI_EXPECT_OK
  std::array<Array, 3> w;
#else
  Array w[3];
#endif
  Array b;
};

void mistake() {
  (void)jit([](const Layers& p) { return p.b; })(Layers{});
}
