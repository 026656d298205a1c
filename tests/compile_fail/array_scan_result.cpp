#include <mutex>
#include <string>
#include <thread>

#include "ricci/array.h"

using namespace ricci;  // NOLINT

void mistake(const Array& x) {
#ifdef RICCI_EXPECT_OK
  (void)scan(x, 3, [](Array a) { return a; });
#else
  (void)scan(x, 3, [](Array) { return std::string(); });
#endif
}
