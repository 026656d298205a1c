// Views within bounds: padding and its relatives are read where they are used, by guarded loads
// that never leave their array (every buffer here lies next to a page nobody may touch).
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/build/reduce.h"
#include "ricci/compiler/schedule/program.h"
#include "ricci/compiler/schedule/verify.h"

#include "backend/agreement.h"
#include "support/compare.h"

namespace ricci::testing::guarded_loads_test {
namespace {

std::size_t kernel_count(const Graph& graph) { return make_program(graph).kernels.size(); }
bool is_kernels_only(const Graph& graph) {
  const Program program = make_program(graph);
  return std::ranges::all_of(
      program.steps, [](const Step& s) { return std::holds_alternative<KernelStep>(s.what); });
}

Value scalar_of(Graph& g, DType dtype, double n) {
  return g.constant(Tensor::splat({dtype, {}}, n));
}

Value padded(Value x, Dims low, Dims high, double fill) {
  return pad(x, scalar_of(x.graph(), x.dtype(), fill),
             {.low = std::move(low), .high = std::move(high)});
}

// The neighbour at (dy, dx), zero outside.
Value shifted(Value x, std::int64_t dy, std::int64_t dx) {
  return padded(x, {dy, dx}, {-dy, -dx}, 0);
}

Value stencil(Value x) {
  const Value around =
      add(add(shifted(x, 1, 0), shifted(x, -1, 0)), add(shifted(x, 0, 1), shifted(x, 0, -1)));
  return sub(around, mul(x, scalar_of(x.graph(), x.dtype(), 4)));
}

TEST(BackendGuardedLoads, AStencilOfPadsIsOneKernel) {
  for (const DType dtype :
       {DType::F32, DType::F64, DType::F16, DType::I32, DType::I8, DType::C64, DType::C128}) {
    for (const auto& [rows, columns] : {std::pair{5, 7}, std::pair{40, 64}, std::pair{3, 150},
                                        std::pair{1, 1}, std::pair{70, 3}}) {
      SCOPED_TRACE(fmt::format("{}[{}, {}]", name(dtype), rows, columns));
      Graph g("stencil");
      std::vector<Value> out;
      const Value x = g.input("x", {dtype, {rows, columns}});
      out.push_back(stencil(x));
      g.set_outputs(out);
      expect_agreement_everywhere(g, {{"x", random_tensor(3, {dtype, {rows, columns}})}});
      EXPECT_EQ(kernel_count(g), 1U);
      EXPECT_TRUE(is_kernels_only(g));
    }
  }
}

// A bound that a slice makes needless is dropped; those that stay must not be thought to reach
// where nobody goes.
TEST(BackendGuardedLoads, WhatIsNotWalkedIsNotRead) {
  Graph g("walked");
  const Value x = g.input("x", f32({15}));
  const Value rows = reshape(padded(x, {1}, {0}, 0), {.new_shape = {4, 4}});
  const Value wide = padded(rows, {0, 0}, {0, 1}, 0);
  const Value part =
      narrow(narrow(wide, {.axis = 0, .start = 0, .len = 3}), {.axis = 1, .start = 1, .len = 4});
  g.set_outputs({mul(part, scalar_of(g, DType::F32, 2))});
  verify(make_program(g));
  expect_agreement_everywhere(g, {{"x", random_tensor(3, x.type())}});
  Graph h("nothing");
  const Value empty = h.input("x", f32({0}));
  const auto zeros = [&](std::int64_t n) { return h.constant(Tensor::zeros(f32({n}))); };
  const Value joined = concat(std::vector{zeros(2), empty, zeros(3)}, {.axis = 0});
  const Value y = h.input("y", f32({5}));
  h.set_outputs({add(joined, y)});
  verify(make_program(h));
  expect_agreement_everywhere(h,
                              {{"x", Tensor::zeros(f32({0}))}, {"y", random_tensor(4, y.type())}});
}

// Shifts as users of other libraries write them: slices with zeros beside them.
TEST(BackendGuardedLoads, AStencilOfSlicesAndZerosIsOneKernel) {
  Graph g("shifts");
  std::vector<Value> out;
  const Value x = g.input("x", {DType::F32, {33, 47}});
  const auto beside = [&](std::int64_t axis, bool after) {
    const std::int64_t size = x.dims()[static_cast<std::size_t>(axis)].value();
    const Value part = narrow(x, {.axis = axis, .start = after ? 1 : 0, .len = size - 1});
    Dims edge = x.dims();
    edge[static_cast<std::size_t>(axis)] = 1;
    const Value zero = g.constant(Tensor::splat({DType::F32, edge}, 0.0));
    return after ? concat({part, zero}, {.axis = axis}) : concat({zero, part}, {.axis = axis});
  };
  const Value around =
      add(add(beside(0, true), beside(0, false)), add(beside(1, true), beside(1, false)));
  out.push_back(sub(around, mul(x, scalar_of(g, DType::F32, 4))));
  g.set_outputs(out);
  expect_agreement_everywhere(g, {{"x", random_tensor(5, {DType::F32, {33, 47}})}});
  EXPECT_EQ(kernel_count(g), 1U);
}

TEST(BackendGuardedLoads, ViewsOfPaddedValuesStayViews) {
  constexpr double Nan = std::numeric_limits<double>::quiet_NaN();
  for (const double fill : {0.0, -0.0, 1.5, Nan, std::numeric_limits<double>::infinity()}) {
    for (const DType dtype : {DType::F32, DType::BF16, DType::C128}) {
      SCOPED_TRACE(fmt::format("{} {}", name(dtype), fill));
      Graph g("views");
      std::vector<Value> out;
      const Value x = g.input("x", {dtype, {6, 5}});
      const Value around = padded(x, {2, 1}, {1, 19}, fill);  // [9, 25]
      out.push_back(neg(transpose(around, {.perm = {1, 0}})));
      out.push_back(neg(reverse(around, {.axes = {0, 1}})));
      out.push_back(neg(narrow(around, {.axis = 1, .start = 1, .len = 5})));
      out.push_back(neg(narrow(around, {.axis = 1, .start = 7, .len = 3})));  // none of x
      out.push_back(neg(reshape(around, {.new_shape = {3, 3, 5, 5}})));
      out.push_back(neg(reshape(around, {.new_shape = {225}})));
      out.push_back(
          neg(expand(reshape(around, {.new_shape = {9, 1, 25}}), {.target_shape = {9, 2, 25}})));
      out.push_back(neg(padded(around, {-1, 3}, {2, -4}, fill)));
      out.push_back(neg(padded(reverse(around, {.axes = {1}}), {-1, 3}, {2, -4}, fill)));
      out.push_back(neg(padded(around, {1, 0}, {0, 1}, 2)));
      out.push_back(around);
      g.set_outputs(out);
      expect_agreement_everywhere(g, {{"x", random_tensor(7, {dtype, {6, 5}})}});
      EXPECT_TRUE(is_kernels_only(g));
    }
  }
}

TEST(BackendGuardedLoads, ReductionsAndCallsReadPaddedValues) {
  Graph g("reads");
  std::vector<Value> out;
  const Value x = g.input("x", {DType::F32, {6, 40}});
  const Value around = padded(x, {1, 3}, {2, 4}, 0.5);  // [9, 47]
  out.push_back(sum(around, {1}));
  out.push_back(reduce_max(around, {0}));
  out.push_back(sum(around, {0, 1}));
  out.push_back(sub(around, reduce_max(around, {1}, true)));
  const Value per_row = sum(x, {1});
  out.push_back(add(padded(per_row, {1}, {2}, 3), sum(around, {1})));
  out.push_back(matmul(around, transpose(around, {.perm = {1, 0}})));
  out.push_back(padded(exp(x), {1, 1}, {1, 1}, 0));
  g.set_outputs(out);
  expect_agreement_everywhere(g, {{"x", random_tensor(9, {DType::F32, {6, 40}})}});
}

TEST(BackendGuardedLoads, WhatIsPutAroundMayBeComputed) {
  Graph g("computed");
  std::vector<Value> out;
  const Value x = g.input("x", {DType::F32, {6, 5}});
  const Value v = g.input("v", {DType::F32, {}});
  out.push_back(pad(x, exp(v), {.low = {1, 2}, .high = {0, 30}}));
  out.push_back(
      pad(pad(x, v, {.low = {1, 0}, .high = {0, 3}}), neg(v), {.low = {-1, 2}, .high = {1, 0}}));
  g.set_outputs(out);
  expect_agreement_everywhere(g, {{"x", random_tensor(1, {DType::F32, {6, 5}})},
                                  {"v", random_tensor(2, {DType::F32, {}})}});
  EXPECT_TRUE(is_kernels_only(g));
}

TEST(BackendGuardedLoads, ConstantsAndCountsArePadded) {
  Graph g("constants");
  std::vector<Value> out;
  const Value ones = g.constant(Tensor::splat({DType::I32, {4}}, std::int64_t{1}));
  const Value counts = iota(g, {.shape = {4}, .dtype = DType::I32});
  out.push_back(pad(ones, scalar_of(g, DType::I32, 7), {.low = {1}, .high = {2}}));
  out.push_back(pad(counts, scalar_of(g, DType::I32, -7), {.low = {1}, .high = {2}}));
  out.push_back(pad(narrow(counts, {.axis = 0, .start = 0, .len = 0}), scalar_of(g, DType::I32, 3),
                    {.low = {1}, .high = {2}}));
  g.set_outputs(out);
  expect_agreement_everywhere(g, {});
}

}  // namespace
}  // namespace ricci::testing::guarded_loads_test
