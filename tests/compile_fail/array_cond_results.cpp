#include <mutex>
#include <string>
#include <thread>

#include "ricci/array.h"

using namespace ricci;  // NOLINT

void mistake(const Array& x) {
#ifdef RICCI_EXPECT_OK
  (void)cond(x, [&] { return x; }, [&] { return x; });
#else
  (void)cond(x, [&] { return x; }, [&] { return std::pair{x, x}; });
#endif
}
