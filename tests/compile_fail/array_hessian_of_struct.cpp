#include <mutex>
#include <string>
#include <thread>

#include "ricci/array.h"

using namespace ricci;  // NOLINT

void mistake(const Array& x) {
#ifdef RICCI_EXPECT_OK
  (void)hessian([](Array s) { return sum(s); })(x);
#else
  struct S {
    Array a;
  };
  (void)hessian([](const S& s) { return sum(s.a); })(S{x});
#endif
}
