// What waits on its way through a program: between the passes over a row that is too long to wait
// near by, and from an activation to its gradient.
#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/compiler/rewrite/precision.h"
#include "ricci/compiler/schedule/program.h"
#include "ricci/compiler/schedule/target.h"
#include "ricci/ir/text.h"
#include "ricci/op/precision_policy.h"
#include "ricci/transform/grad.h"

namespace ricci::testing::long_rows_test {
namespace {

// Rows of 4096 bytes wait near by, and totals of 1024 elements have room.
class ShortRoomTarget final : public schedule::Target {
 public:
  ShortRoomTarget() {
    shape_.largest_row_buffer = 4096;
    shape_.longest_summed_row = 1024;
  }
  [[nodiscard]] bool claims(const loop::Call& /*call*/,
                            std::span<const Type> /*operands*/) const override {
    return true;
  }
  [[nodiscard]] const schedule::KernelShape& kernel_shape() const override { return shape_; }

 private:
  schedule::KernelShape shape_;
};

Program program_of(const Graph& graph) {
  static const ShortRoomTarget target;
  return make_program(graph, {.target = &target});
}

TEST(BackendLongRows, AreComputedAgainFromWhatIsReadAnyway) {
  const Program softmax = program_of(parse_graph(R"(graph @g {
    %x = input "x" : f32[16, 3000]
    %b = input "b" : f32[3000]
    %z = add %x, %b
    %y = softmax %z
    return %y
  })"));
  EXPECT_EQ(softmax.arena_bytes, 0);
  ASSERT_EQ(softmax.kernels.size(), 1U);
  EXPECT_TRUE(std::ranges::none_of(softmax.kernels[0].arguments, [](const loop::Argument& a) {
    return a.role == loop::ArgumentRole::Local;
  }));
}

// Two arrays are no more to read than what would be written and read; three are.
TEST(BackendLongRows, AreStoredWhereTheyAreMadeOfMore) {
  const Program program = program_of(parse_graph(R"(graph @g {
    %x = input "x" : f32[16, 3000]
    %y = input "y" : f32[16, 3000]
    %z = input "z" : f32[16, 3000]
    %0 = mul %x, %y
    %1 = mul %0, %z
    %2 = softmax %1
    return %2
  })"));
  EXPECT_GE(program.arena_bytes, 16 * 3000 * 4);
}

TEST(BackendLongRows, AreReducedAndSummedOverApart) {
  for (const std::int64_t row : {1000, 3000}) {
    Graph g("norm");
    const Value x = g.input("x", Type{DType::F32, {Dim(64), Dim(row)}});
    const Value gamma = g.param("gamma", Type{DType::F32, {Dim(row)}});
    const Value beta = g.param("beta", Type{DType::F32, {Dim(row)}});
    g.set_outputs({layer_norm(x, gamma, beta)});
    const Program program = program_of(vjp(g, std::vector<ValueRef>{"x", "gamma", "beta"}).graph);
    const bool together = std::ranges::any_of(program.kernels, [](const loop::Kernel& k) {
      return !k.reductions.empty() &&
             std::ranges::any_of(k.accumulators, &loop::Accumulator::per_element);
    });
    EXPECT_EQ(together, row <= 1024) << row;
  }
}

// Those that kernels write in f32.
std::size_t wide_temporaries(const Program& program, std::int64_t elements) {
  std::set<BufferId> found;
  const auto look = [&](const Launch& launch) {
    for (const BufferId b : launch.buffers) {
      if (b < 0) continue;
      const Buffer& buffer = program.buffers[static_cast<std::size_t>(b)];
      const bool wide = buffer.role == Buffer::Role::Temporary && buffer.dtype == DType::F32;
      if (wide && buffer.elements == elements) found.insert(b);
    }
  };
  for (const Step& step : program.steps) {
    if (const auto* kernels = std::get_if<KernelStep>(&step.what)) {
      for (const Launch& launch : kernels->launches) look(launch);
    } else if (const auto* call = std::get_if<CallStep>(&step.what)) {
      if (call->before) look(*call->before);
      if (call->after) look(*call->after);
    }
  }
  return found.size();
}

// Derivatives in f32 of activations in bf16 are computed when the gradient is there.
TEST(BackendLateValues, AreNotKeptWhereTheyAreMadeOfLess) {
  const Graph loss = parse_graph(R"(graph @g {
    %x = input "x" : f32[128, 64]
    %w = param "w" : f32[64, 96]
    %b = param "b" : f32[96]
    %v = param "v" : f32[96, 64]
    %0 = matmul %x, %w
    %1 = add %0, %b
    %2 = gelu_approx %1
    %3 = matmul %2, %v
    %4 = reduce %3 {op = mean, axes = [0, 1]}
    return %4
  })");
  const Graph gradients = value_and_grad(loss, std::vector<ValueRef>{"w", "b", "v"}).graph;
  const Graph mixed =
      auto_mixed_precision(gradients, precision_policy_named("auto_mixed_bf16")).graph;
  const Program program = program_of(mixed);
  EXPECT_EQ(wide_temporaries(program, 128 * 96), 0U);
}

}  // namespace
}  // namespace ricci::testing::long_rows_test
