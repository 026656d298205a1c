// Kernels by hand, as the interpreter of programs runs them.
#include <array>
#include <cstring>

#include <gtest/gtest.h>

#include "ricci/support/error.h"

#include "backend/lir/kernel.h"
#include "backend/lir/number.h"
#include "loop/of_nothing.h"

namespace ricci::testing::lir_kernels_test {
namespace {

using loop::Access;
using loop::ArgumentRole;
using loop::Code;
using loop::Instr;
using loop::Kernel;

template <class T>
lir::KernelArgument over(std::vector<T>& v) {
  return {reinterpret_cast<std::byte*>(v.data()), static_cast<std::int64_t>(v.size() * sizeof(T))};
}

Instr load(DType dtype, Access access) {
  return {.code = Code::Load, .dtype = dtype, .per_element = true, .access = std::move(access)};
}

// out[i] = in[i]
Kernel copy_kernel(std::int64_t n) { return loop::copying_kernel(DType::F32, n, "copy"); }

TEST(BackendLirKernels, CopyElementByElement) {
  std::vector<float> in = {1, 2, 3};
  std::vector<float> out(3);
  EXPECT_FALSE(lir::run_kernel(copy_kernel(3), std::array{over(in), over(out)}));
  EXPECT_EQ(out, in);
}

TEST(BackendLirKernels, PlacesOutsideAnArrayAreRefused) {
  std::vector<float> in(2);
  std::vector<float> out(3);
  EXPECT_THROW((void)lir::run_kernel(copy_kernel(3), std::array{over(in), over(out)}),
               InternalError);
  EXPECT_THROW((void)lir::run_kernel(copy_kernel(3), std::array{over(out), over(in)}),
               InternalError);
}

TEST(BackendLirKernels, ValuesOfAnotherElementAreNotThere) {
  Kernel k = copy_kernel(3);
  k.stages.push_back(k.stages[0]);
  k.stages[1].code.clear();  // stores what the stage before computed
  std::vector<float> in(3);
  std::vector<float> out(3);
  EXPECT_THROW((void)lir::run_kernel(k, std::array{over(in), over(out)}), InternalError);
}

// out[i] = table[ids[i]]
Kernel picking_kernel(std::int64_t n, std::int64_t limit, bool clamp) {
  Kernel k{.name = "pick", .extents = {n}};
  k.arguments = {{DType::I32, ArgumentRole::In},
                 {DType::F32, ArgumentRole::In},
                 {DType::F32, ArgumentRole::Out}};
  k.code = {load(DType::I32, {.argument = 0, .strides = {1}}),
            load(DType::F32, {.argument = 1, .strides = {0}, .terms = {{0, 1, limit, clamp}}})};
  k.stages = {
      {.per_element = true, .code = {0, 1}, .stores = {{1, {.argument = 2, .strides = {1}}}}}};
  return k;
}

TEST(BackendLirKernels, IndicesAreCheckedOrClamped) {
  std::vector<std::int32_t> ids = {2, -5, 7};
  std::vector<float> table = {10, 11, 12};
  std::vector<float> out(3);
  const std::array arguments = {over(ids), over(table), over(out)};
  const auto fault = lir::run_kernel(picking_kernel(3, 3, false), arguments);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->number, -5);
  EXPECT_EQ(fault->limit, 3);
  EXPECT_FALSE(lir::run_kernel(picking_kernel(3, 3, true), arguments));
  EXPECT_EQ(out, (std::vector<float>{12, 10, 12}));
}

// Sums of 4 rows of 3 in chunks of 2 rows each, per element.
TEST(BackendLirKernels, AccumulatorsWriteAPartPerChunk) {
  Kernel k{.name = "sum", .extents = {4, 3}, .kept = 0, .outer = 1};
  k.arguments = {{DType::F32, ArgumentRole::In},
                 {DType::F32, ArgumentRole::Local, 3},
                 {DType::F32, ArgumentRole::Out}};
  k.code = {load(DType::F32, {.argument = 0, .strides = {3, 1}})};
  k.accumulators = {{.kind = ReduceKind::Sum, .value = 0, .argument = 2, .local = 1}};
  k.stages = {{.per_element = true, .code = {0}, .accumulators = {0}}};
  k.chunks = 2;
  std::vector<float> in = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  std::vector<float> out(6);
  EXPECT_FALSE(lir::run_kernel(k, std::array{over(in), lir::KernelArgument{}, over(out)}));
  EXPECT_EQ(out, (std::vector<float>{5, 7, 9, 17, 19, 21}));
}

TEST(BackendLirKernels, ReductionsOfNothing) {
  const auto nothing = [](ReduceKind kind, DType dtype) {
    return loop::reduction_of_nothing(kind, dtype);
  };
  EXPECT_EQ(std::get<double>(nothing(ReduceKind::Max, DType::F16)), -INFINITY);
  EXPECT_EQ(std::get<std::int64_t>(nothing(ReduceKind::Min, DType::I8)), 127);
  EXPECT_EQ(std::get<std::int64_t>(nothing(ReduceKind::Max, DType::U8)), 0);
  EXPECT_EQ(std::get<std::int64_t>(nothing(ReduceKind::All, DType::Bool)), 1);
  EXPECT_EQ(std::get<std::int64_t>(nothing(ReduceKind::Min, DType::U32)), 4294967295);
  EXPECT_EQ(std::get<std::complex<double>>(nothing(ReduceKind::Prod, DType::C64)), 1.0);
  EXPECT_THROW((void)nothing(ReduceKind::Max, DType::C64), InternalError);
  EXPECT_THROW((void)nothing(ReduceKind::Mean, DType::F32), InternalError);
}

TEST(BackendLirKernels, NumbersAreRoundedOnceAndWrapped) {
  EXPECT_EQ(std::get<double>(lir::as_stored(DType::F32, 0.1)), static_cast<double>(0.1F));
  EXPECT_EQ(std::get<double>(lir::as_stored(DType::BF16, 1.0 + 0x1p-9)), 1.0);
  EXPECT_EQ(std::get<std::int64_t>(lir::as_stored(DType::U8, std::int64_t{-1})), 255);
  EXPECT_EQ(std::get<std::int64_t>(lir::as_stored(DType::I8, 300.7)), 127);  // a cast saturates
  EXPECT_EQ(std::get<std::int64_t>(lir::as_stored(DType::Bool, 0.5)), 1);
}

}  // namespace
}  // namespace ricci::testing::lir_kernels_test
