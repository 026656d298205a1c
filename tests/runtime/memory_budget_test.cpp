// [planner-remat] Training graphs under a byte budget: what is not kept is computed again, to the
// same bits; on every device.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/build/reduce.h"
#include "ricci/compiler/schedule/cost.h"
#include "ricci/compiler/schedule/verify.h"
#include "ricci/runtime/compiled_graph.h"
#include "ricci/transform/grad.h"

#include "runtime/models.h"
#include "support/every_device.h"

namespace ricci::testing {
namespace {

class RuntimeMemoryBudget : public OnEveryDevice {};
RICCI_ON_EVERY_DEVICE(RuntimeMemoryBudget);

// Loss and gradients of layers of products and a bent function.
Graph deep_network(int layers, std::int64_t rows = 48, std::int64_t width = 16) {
  Graph g("deep");
  Value x = g.input("x", f32({rows, width}));
  std::vector<ValueRef> params;
  for (int i = 0; i < layers; ++i) {
    const std::string name = fmt::format("w{}", i);
    x = gelu(matmul(x, g.param(name, f32({width, width}))));
    params.emplace_back(name);
  }
  g.set_outputs({sum(square(x))});
  return value_and_grad(g, params).graph;
}

// Loss and gradients of blocks of attention and two products, each around a sum that goes on.
Graph transformer(int blocks, std::int64_t length = 24, std::int64_t width = 16) {
  Graph g("transformer");
  Value x = g.input("x", f32({length, width}));
  std::vector<ValueRef> params;
  const auto param = [&](int block, const char* what, Dims dims) {
    const std::string name = fmt::format("{}{}", what, block);
    params.emplace_back(name);
    return g.param(name, f32(std::move(dims)));
  };
  for (int i = 0; i < blocks; ++i) {
    const Value n = layer_norm(x, param(i, "gamma", {width}), param(i, "beta", {width}));
    const auto head = [&](const char* what) {
      return reshape(matmul(n, param(i, what, {width, width})), {.new_shape = {1, length, width}});
    };
    const Value y =
        attention(head("q"), head("k"), head("v"), {.num_heads = 2, .head_dim = width / 2});
    x = x + matmul(reshape(y, {.new_shape = {length, width}}), param(i, "o", {width, width}));
    x = x + matmul(gelu(matmul(x, param(i, "up", {width, 4 * width}))),
                   param(i, "down", {4 * width, width}));
  }
  g.set_outputs({sum(square(x))});
  return value_and_grad(g, params).graph;
}

// A part of the bytes of temporaries, and what calls need besides.
std::int64_t budget_of(const CompiledGraph& freely, double part) {
  const std::int64_t temporaries = freely.program().arena_bytes;
  return freely.workspace_bytes() - temporaries +
         static_cast<std::int64_t>(part * static_cast<double>(temporaries));
}

double flops_of(const CompiledGraph& f) { return estimate_cost(f.program()).flops; }

// From what it takes freely down to the least: never more than the budget, never another bit.
void expect_fits(const Graph& graph, const Device& device, double least_part) {
  const Feeds feeds = random_feeds(graph);
  const CompiledGraph freely = compile(graph, device);
  const std::vector<Tensor> expected = freely.run(feeds);
  double flops = flops_of(freely);
  for (double part = 0.9; part >= least_part; part -= 0.1) {
    const std::int64_t budget = budget_of(freely, part);
    SCOPED_TRACE(fmt::format("{} of {} bytes", budget, freely.workspace_bytes()));
    const CompiledGraph f = compile(graph, device, {.memory_budget = budget});
    EXPECT_LE(f.workspace_bytes(), budget);
    verify(f.program());
    EXPECT_TRUE(identical(f.run(feeds), expected));
    EXPECT_GE(flops_of(f), flops);  // less room, more work
    flops = flops_of(f);
  }
  EXPECT_GT(flops, flops_of(freely));
}

TEST_P(RuntimeMemoryBudget, NetworksFitAndKeepTheirBits) {
  expect_fits(deep_network(12), device(), 0.45);
}

TEST_P(RuntimeMemoryBudget, TransformersFitAndKeepTheirBits) {
  expect_fits(transformer(4), device(), 0.55);
}

// Several kernels write one array, a piece each: what one of them writes again is no whole array.
TEST_P(RuntimeMemoryBudget, ArraysMadeOfPiecesKeepTheirBits) {
  Graph g("pieces");
  const Value a = g.input("a", f32({64, 64}));
  const Value x = exp(a);
  const Value c = concat(std::vector{x, neg(g.input("b", f32({64, 32})))}, {.axis = 1});
  Value y = matmul(matmul(c, g.input("v", f32({96, 64}))), x);
  y = matmul(matmul(y, g.input("u", f32({64, 256}))), g.input("w", f32({256, 256})));
  y = matmul(matmul(y, g.input("d", f32({256, 64}))), x);
  g.set_outputs({y + matmul(c, g.input("last", f32({96, 64})))});
  const Feeds feeds = random_feeds(g);
  const CompiledGraph freely = compile(g, device());
  const std::vector<Tensor> expected = freely.run(feeds);
  bool again = false;
  for (double part = 0.98; part >= 0.9; part -= 0.01) {
    try {
      const CompiledGraph f = compile(g, device(), {.memory_budget = budget_of(freely, part)});
      again = again || f.program().steps.size() > freely.program().steps.size();
      EXPECT_TRUE(identical(f.run(feeds), expected)) << part;
    } catch (const UserError&) {
      break;  // less than that cannot be had
    }
  }
  EXPECT_TRUE(again);
}

// No room is wanted that is there, and a budget that is large enough changes nothing.
TEST_P(RuntimeMemoryBudget, ALargeBudgetChangesNothing) {
  const Graph graph = deep_network(4);
  const CompiledGraph freely = compile(graph, device());
  const CompiledGraph f = compile(graph, device(), {.memory_budget = freely.workspace_bytes()});
  EXPECT_EQ(to_string(f.program()), to_string(freely.program()));
}

// The same budget gives the same program.
TEST_P(RuntimeMemoryBudget, WhatIsComputedAgainIsDecidedByShapesAlone) {
  const Graph graph = transformer(3);
  const std::int64_t budget = budget_of(compile(graph, device()), 0.7);
  const CompiledGraph one = compile(graph, device(), {.memory_budget = budget});
  const CompiledGraph two = compile(graph, device(), {.memory_budget = budget});
  EXPECT_EQ(to_string(one.program()), to_string(two.program()));
}

TEST_P(RuntimeMemoryBudget, WhatCannotBeMetIsAnError) {
  const Graph graph = deep_network(4);
  try {
    (void)compile(graph, device(), {.memory_budget = 1000});
    FAIL() << "fits into 1000 bytes";
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ErrorCode::OutOfMemory);
    EXPECT_NE(std::string(e.what()).find("budget is 1000"), std::string::npos) << e.what();
  }
}

// A product costs more than an element-wise function with a result of the same size; both would do.
TEST_P(RuntimeMemoryBudget, TheCheapestBytesGoFirst) {
  Graph g("choice");
  const Value x = g.input("x", f32({64, 64}));
  const Value w = g.input("w", f32({64, 64}));
  const Value cheap = exp(x);
  const Value dear = matmul(x, w);
  // Products that nobody can put together with what is above.
  Value y = matmul(cheap, dear);
  for (int i = 0; i < 3; ++i) y = matmul(y, w);
  g.set_outputs({matmul(y, cheap), matmul(y, dear)});
  const CompiledGraph freely = compile(g, device());
  const std::int64_t bytes = 64 * 64 * 4;
  const CompiledGraph f = compile(g, device(), {.memory_budget = freely.workspace_bytes() - bytes});
  std::string again;
  for (const Step& step : f.program().steps) {
    if (step.label.ends_with("(again)")) again += step.label;
  }
  EXPECT_EQ(again, "exp (again)");
  const Feeds feeds = random_feeds(g);
  EXPECT_TRUE(identical(f.run(feeds), freely.run(feeds)));
}

// Keeps `exp` of its argument over products that nobody can put together with it.
Value idle_over_products(const Value& x, const Value& w) {
  const Value cheap = exp(tanh(x));
  Value y = matmul(cheap, w);
  for (int i = 0; i < 3; ++i) y = tanh(matmul(y, w));
  return matmul(y, cheap);
}

// The same in a loop, in a loop in a loop, or in a branch.
Graph with_body(std::string_view kind) {
  Graph g(std::string{kind});
  const Value x = g.input("x", f32({32, 32}));
  const Value w = g.input("w", f32({32, 32}));
  const auto body = [](Graph&, std::span<const Value> v) -> std::vector<Value> {
    return {idle_over_products(v[0], v[1])};
  };
  const auto nested = [&](Graph&, std::span<const Value> v) -> std::vector<Value> {
    return {scan(std::array{v[0]}, {.bcasts = {v[1]}, .length = 2}, body)[0]};
  };
  if (kind == "loop") {
    g.set_outputs({scan(std::array{x}, {.bcasts = {w}, .length = 3}, body)[0]});
  } else if (kind == "nested") {
    g.set_outputs({scan(std::array{x}, {.bcasts = {w}, .length = 3}, nested)[0]});
  } else {
    const auto other = [](Graph&, std::span<const Value> v) -> std::vector<Value> {
      return {v[0] + v[1]};
    };
    g.set_outputs({cond(g.input("p", Type(DType::Bool, {})), std::array{x, w}, body, other)[0]});
  }
  return g;
}

const Program* innermost(const Program& program) {
  for (const Step& step : program.steps) {
    const auto* control = std::get_if<ControlStep>(&step.what);
    if (control != nullptr) return innermost(*control->bodies[0].second);
  }
  return &program;
}

// What a loop's body keeps in every trip counts like everything else.
TEST_P(RuntimeMemoryBudget, BodiesComputeAgainWhatTheyHaveNoRoomFor) {
  for (const std::string_view kind : {"loop", "nested", "branch"}) {
    SCOPED_TRACE(kind);
    const Graph g = with_body(kind);
    const Feeds feeds = random_feeds(g);
    const CompiledGraph freely = compile(g, device());
    const std::int64_t budget = freely.workspace_bytes() - std::int64_t{32 * 32 * 4};
    const CompiledGraph f = compile(g, device(), {.memory_budget = budget});
    EXPECT_LE(f.workspace_bytes(), budget);
    verify(f.program());
    EXPECT_GT(innermost(f.program())->steps.size(), innermost(freely.program())->steps.size());
    EXPECT_TRUE(identical(f.run(feeds), freely.run(feeds)));
    EXPECT_THROW((void)compile(g, device(), {.memory_budget = budget / 4}), UserError);
  }
}

// A param that its output replaces is not there any more when the output is.
TEST_P(RuntimeMemoryBudget, UpdatesInPlaceKeepTheirBits) {
  Graph graph = deep_network(8);
  std::vector<ValueId> outputs{graph.outputs()[0]};
  CompileOptions options;
  for (std::size_t i = 1; i < graph.outputs().size(); ++i) {
    const std::string name = fmt::format("w{}", i - 1);
    const Value w = graph.value({graph.find_or_throw(name), 0});
    outputs.push_back((w - graph.value(graph.outputs()[i]) * 0.001).id());
    options.donations.push_back({i, name});
  }
  graph.set_outputs(outputs);
  const Feeds feeds = random_feeds(graph);
  const auto trained = [&](std::int64_t budget) {
    options.memory_budget = budget;
    CompiledGraph f = compile(graph, device(), options);
    for (const auto& [name, value] : feeds) f.set_param(name, value);
    for (int i = 0; i < 3; ++i) (void)f.update({});
    std::vector<Tensor> params;
    for (int i = 0; i < 8; ++i) params.push_back(f.param(fmt::format("w{}", i)));
    return params;
  };
  const std::int64_t budget = budget_of(compile(graph, device(), options), 0.6);
  EXPECT_TRUE(identical(trained(budget), trained(0)));
}

}  // namespace
}  // namespace ricci::testing
