#include <mutex>
#include <string>
#include <thread>

#include "ricci/array.h"

using namespace ricci;  // NOLINT

struct Common {
  Array scale;
};
#ifdef RICCI_EXPECT_OK
struct Layer {
  Common common;
  Array w;
};
#else
struct Layer : Common {
  Array w;
};
#endif

void mistake() {
  (void)jit([](const Layer& p) { return p.w; })(Layer{});
}
