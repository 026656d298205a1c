// Few rows of many columns, added up: the columns are shared out, rather than chunks of rows whose
// partial results would be as large as the rows.
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/build/reduce.h"
#include "ricci/compiler/schedule/program.h"
#include "ricci/runtime/compiled_graph.h"
#include "ricci/transform/grad.h"

#include "backend/agreement.h"
#include "backend/all_widths.h"
#include "backend/cpu/run/target.h"
#include "support/compare.h"

namespace ricci::testing::shared_columns_test {
namespace {

// Totals of every kind down the middle axis.
Graph totals(Type type) {
  Graph g("totals");
  const Value x = g.input("x", std::move(type));
  std::vector<Value> outputs;
  for (const ReduceKind kind :
       {ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min, ReduceKind::Prod}) {
    outputs.push_back(reduce(x, {.op = kind, .axes = {1}}));
  }
  g.set_outputs(outputs);
  return g;
}

// Small whole numbers, whose totals are exact, with what is not finite between them.
Tensor with_infinities(const Type& type) {
  constexpr double Infinity = std::numeric_limits<double>::infinity();
  std::vector<double> numbers(static_cast<std::size_t>(Tensor::zeros(type).numel()));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i * 7 % 5) - 2;
  for (std::size_t i = 3; i < numbers.size(); i += 911) numbers[i] = Infinity;
  for (std::size_t i = 5; i < numbers.size(); i += 1213) numbers[i] = -Infinity;
  for (std::size_t i = 8; i < numbers.size(); i += 1709) numbers[i] = std::nan("");
  return Tensor::from_numbers<double>(type, numbers);
}

TEST(BackendSharedColumns, KernelsHaveNoChunksAndShortTotals) {
  for (const StaticDims& dims : {StaticDims{2, 19, 128, 96}, StaticDims{3, 40, 10240},
                                 StaticDims{1, 50, 40000}, StaticDims{40, 12, 8192}}) {
    const Type type = f32(Dims(dims.begin(), dims.end()));
    SCOPED_TRACE(type.to_string());
    const Program program = make_program(totals(type), {.target = &cpu::target()});
    int totalling = 0;
    for (const loop::Kernel& k : program.kernels) {
      if (k.accumulators.empty()) continue;  // products are kept in f64, and rounded afterwards
      ++totalling;
      EXPECT_EQ(k.chunks, 1);
      EXPECT_LE(k.row_elements(), 512);
      EXPECT_GE(k.kept_rows(), 8);
    }
    EXPECT_GT(totalling, 0);
  }
}

TEST(BackendSharedColumns, TotalsOfOddSizesAgree) {
  for (const DType dtype : {DType::F32, DType::F64, DType::BF16, DType::I32, DType::C64}) {
    for (const StaticDims& dims :
         {StaticDims{3, 5, 36, 43}, StaticDims{2, 7, 1031}, StaticDims{1, 3, 17, 1001},
          StaticDims{2, 1, 2187}, StaticDims{4, 255, 1100}}) {
      const Type type{dtype, Dims(dims.begin(), dims.end())};
      SCOPED_TRACE(type.to_string());
      Graph g("sums");
      const Value x = g.input("x", type);
      g.set_outputs({reduce(x, {.op = ReduceKind::Sum, .axes = {1}})});
      expect_agreement_everywhere(g, {{"x", random_tensor(1, type)}});
    }
  }
}

TEST(BackendSharedColumns, TotalsAreTheSameInVectorsOfEveryWidth) {
  const Graph g = totals(f32({3, 5, 36, 43}));
  const Feeds feeds = {{"x", with_infinities(f32({3, 5, 36, 43}))}};
  const std::vector<Tensor> expected = interpret(g, feeds);
  for (const cpu::TargetInfo& target : targets_of_all_widths()) {
    const std::vector<Tensor> actual = run_kernels(g, feeds, target);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(close(actual[i], expected[i]))
          << target.name << " " << target.vector_bits << ", output " << i;
    }
  }
}

TEST(BackendSharedColumns, BitsDoNotDependOnThreads) {
  Graph g("channels");
  const Value x = g.input("x", f32({2, 19, 64, 72}));
  g.set_outputs({softmax(x, {.axis = 1}), log_sum_exp(tanh(x), {1}), mean(exp(x), {1})});
  const Feeds feeds = {{"x", random_tensor(4, x.type())}};
  const std::vector<Tensor> expected = compile(g, Device::cpu(1)).run(feeds);
  for (const int threads : {2, 3, 8}) {
    const std::vector<Tensor> actual = compile(g, Device::cpu(threads)).run(feeds);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(actual[i].identical(expected[i])) << threads << " threads, output " << i;
    }
  }
}

// Rows and columns of one array are still reduced by one kernel.
TEST(BackendSharedColumns, RowsAndColumnsAreReducedTogether) {
  Graph g("both");
  const Value x = g.input("x", f32({64, 4096}));
  g.set_outputs({sum(x, {0}), sum(x, {1})});
  const Program program = make_program(g, {.target = &cpu::target()});
  std::size_t readers = 0;
  for (const loop::Kernel& k : program.kernels) readers += k.rows() * k.row_elements() >= 64 * 4096;
  EXPECT_EQ(readers, 1U);
}

// A gradient takes the powers that the function has, though it must not be differentiated through
// their largest.
TEST(BackendSharedColumns, PowersOfALogSumExpAreComputedOnce) {
  Graph g("loss");
  const Value x = g.input("x", f32({6, 300}));
  g.set_outputs({sum(reduce(x, {.op = ReduceKind::LogSumExp, .axes = {1}}))});
  const Graph both = value_and_grad(g, {"x"}).graph;
  const Program program = make_program(both, {.target = &cpu::target()});
  std::size_t powers = 0;
  for (const loop::Kernel& k : program.kernels) {
    for (const loop::Instr& i : k.code) {
      powers += i.code == loop::Code::Unary && i.unary() == UnaryKind::Exp;
    }
  }
  EXPECT_EQ(powers, 1U) << to_string(program);
  expect_agreement_everywhere(both, {{"x", random_tensor(2, x.type())}});
}

}  // namespace
}  // namespace ricci::testing::shared_columns_test
