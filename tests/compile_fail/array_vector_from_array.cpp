#include "ricci/array.h"

#include <mutex>
#include <string>
#include <thread>

using namespace ricci;  // NOLINT

void mistake(const Array& x) {
#ifdef RICCI_EXPECT_OK
  std::vector<double> v = x.to_vector();
  (void)v;
#else
  std::vector<double> v = x;
  (void)v;
#endif
}
