// An op is made on purpose: attributes do not turn into an Op by themselves.
#include "ricci/op/ops.h"

ricci::Op op() {
#ifdef RICCI_EXPECT_OK
  return ricci::Op(ricci::op::Matmul{});
#else
  return ricci::op::Matmul{};
#endif
}
