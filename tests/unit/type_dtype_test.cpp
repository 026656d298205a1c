#include <vector>

#include <gtest/gtest.h>

#include "ricci/type/dtype.h"

namespace ricci::type_dtype_test {
namespace {

using enum DType;

struct Promotion {
  DType a;
  DType b;
  DType result;
};

TEST(DTypePromotion, FollowsTheTable) {
  for (const Promotion& p :
       std::vector<Promotion>{// two signed integers: the wider
                              {I8, I16, I16},
                              {I8, I64, I64},
                              {I16, I32, I32},
                              {I32, I64, I64},
                              // unsigned with signed: the smallest signed that holds both
                              {U8, I8, I16},
                              {U8, I16, I16},
                              {U8, I32, I32},
                              {U8, I64, I64},
                              {U32, I8, I64},
                              {U32, I16, I64},
                              {U32, I32, I64},
                              {U32, I64, I64},
                              {U8, U32, U32},
                              // floats
                              {F16, BF16, F32},
                              {F16, F32, F32},
                              {BF16, F32, F32},
                              {F16, F64, F64},
                              {F32, F64, F64},
                              // integers with floats
                              {I8, F16, F32},
                              {U32, F16, F32},
                              {I32, BF16, F32},
                              {U8, BF16, F32},
                              {I32, F32, F32},
                              {U32, F32, F32},
                              {I64, F16, F64},
                              {I64, BF16, F64},
                              {I64, F32, F64},
                              {I8, F64, F64},
                              {I64, F64, F64},
                              // complex
                              {C64, I32, C64},
                              {C64, U32, C64},
                              {C64, F16, C64},
                              {C64, BF16, C64},
                              {C64, F32, C64},
                              {C64, F64, C128},
                              {C64, I64, C128},
                              {C64, C128, C128},
                              {C128, F16, C128},
                              {C128, I8, C128},
                              {C128, F64, C128}}) {
    EXPECT_EQ(promote(p.a, p.b), p.result) << name(p.a) << " with " << name(p.b);
  }
}

// [DT-01]
TEST(DTypePromotion, IsCommutativeAndIdempotent) {
  for (const DType a : AllDTypes) {
    EXPECT_EQ(promote(a, a), a);
    EXPECT_EQ(promote(a, Bool), a);
    for (const DType b : AllDTypes) EXPECT_EQ(promote(a, b), promote(b, a));
  }
}

TEST(DTypePromotion, NeverNarrows) {
  for (const DType a : AllDTypes) {
    for (const DType b : AllDTypes) {
      const DType r = promote(a, b);
      EXPECT_GE(size_of(r), std::max(size_of(a), size_of(b))) << name(a) << " with " << name(b);
      EXPECT_EQ(promote(r, a), r);
      EXPECT_EQ(promote(r, b), r);
    }
  }
}

TEST(DType, NamesReadBack) {
  for (const DType d : AllDTypes) EXPECT_EQ(dtype_from_name(name(d)), d);
  EXPECT_EQ(dtype_from_name("f8"), std::nullopt);
  EXPECT_EQ(dtype_from_name(""), std::nullopt);
}

TEST(DType, BelongsToOneClass) {
  for (const DType d : AllDTypes) {
    const int classes = is_float(d) + is_int(d) + is_complex(d) + (d == Bool);
    EXPECT_EQ(classes, 1) << name(d);
    EXPECT_EQ(dtypes::floats.has(d), is_float(d));
    EXPECT_EQ(dtypes::ints.has(d), is_int(d));
    EXPECT_EQ(dtypes::complexes.has(d), is_complex(d));
    EXPECT_EQ(is_differentiable(d), is_float(d) || is_complex(d));
  }
  EXPECT_EQ(real_part_of(C64), F32);
  EXPECT_EQ(real_part_of(C128), F64);
  EXPECT_EQ(real_part_of(I8), I8);
}

}  // namespace
}  // namespace ricci::type_dtype_test
