// What programs for devices promise: nothing is left out, views cost nothing, regions grow as far
// as they may, memory is planned once for all, and loops do no more than their steps need.
#include <array>
#include <functional>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/build/reduce.h"
#include "ricci/compiler/schedule/program.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"
#include "ricci/model/module.h"
#include "ricci/runtime/compiled_graph.h"
#include "ricci/runtime/device.h"

#include "schedule/memory_plan.h"
#include "support/compare.h"
#include "support/every_device.h"

namespace ricci::testing::program_promises_test {
namespace {

std::size_t launches(const Program& program) {
  std::size_t n = 0;
  for (const Step& step : program.steps) {
    if (const auto* k = std::get_if<KernelStep>(&step.what)) n += k->launches.size();
  }
  return n;
}

Feeds feeds_of(const Graph& graph) {
  Feeds feeds;
  std::uint64_t seed = 1;
  for (const NodeId id : graph.leaves()) {
    feeds.emplace(*graph.node(id).leaf_name(), random_tensor(seed++, graph.node(id).types[0]));
  }
  return feeds;
}

void expect_agreement(const Graph& graph) {
  const Feeds feeds = feeds_of(graph);
  const std::vector<Tensor> expected = interpret(graph, feeds);
  for (const std::string& device : usable_devices()) {
    const std::vector<Tensor> actual = compile(graph, Device::named(device)).run(feeds);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(close(actual[i], expected[i], {.relative = 1e-4, .absolute = 1e-4}))
          << graph.name() << " on " << device << ", output " << i;
    }
  }
}

TEST(BackendPromises, ViewsAreReadWhereTheyAre) {  // [lir-views]
  Graph g("views");
  const Value x = g.input("x", f32({6, 8, 4}));
  const Value rows = narrow(x, {.axis = 0, .start = 1, .len = 4});
  const Value turned = transpose(rows, {.perm = {2, 0, 1}});
  const Value wide = expand(g.input("y", f32({4, 1, 8})), {.target_shape = {4, 4, 8}});
  g.set_outputs({exp(turned) + wide});
  const Program program = make_program(g);
  EXPECT_EQ(launches(program), 1U) << to_string(program);
  EXPECT_EQ(program.arena_bytes, 0) << to_string(program);
  expect_agreement(g);
}

TEST(BackendPromises, WhatDiesIsOverwritten) {  // [lir-views]
  Graph g("chain");
  const Value x = g.input("x", f32({256, 256}));
  const Value w = g.param("w", f32({256, 256}));
  Value h = x;
  for (int i = 0; i < 6; ++i) h = tanh(matmul(h, w) * 0.05) + x;
  g.set_outputs({h});
  const Program program = make_program(g);
  // The product being made and the one it is made from.
  EXPECT_LE(program.arena_bytes, 2 * 256 * 256 * 4) << to_string(program);
  for (const BufferId in : program.inputs) {
    EXPECT_EQ(program.buffers[static_cast<std::size_t>(in)].role, Buffer::Role::Input);
  }
  expect_agreement(g);
}

TEST(BackendPromises, RegionsHaveSeveralOutputsAndReductions) {  // [region-growing]
  Graph g("region");
  const Value x = g.input("x", f32({40, 96}));
  const Value y = tanh(x) * g.input("bias", f32({96}));
  const Value p = softmax(y, {.axis = 1});
  g.set_outputs({y, p, sum(p, {Axis{1}})});
  const Program program = make_program(g);
  EXPECT_EQ(launches(program), 1U) << to_string(program);
  expect_agreement(g);
}

// exp(x) is cheap enough to be read by both kernels that surround the product, and a region that
// held both sides of it would wait for itself.
TEST(BackendPromises, RegionsDoNotCloseCircles) {  // [region-growing]
  Graph g("circle");
  const Value x = g.input("x", f32({32, 32}));
  const Value a = exp(x);
  const Value m = matmul(a, g.param("w", f32({32, 32})));
  g.set_outputs({a + m, softmax(m * a, {.axis = 0})});
  expect_agreement(g);
}

TEST(BackendPromises, OnlyWhatFitsIsPutTogether) {  // [fusion-guards]
  Graph g("guards");
  const Value x = g.input("x", f32({4, 3}));
  const Value thin = matmul(x, g.param("w1", f32({3, 1})));  // [4, 1] + [5] is [4, 5]
  const Value wide = thin + g.param("b5", f32({5}));
  const Value product = matmul(x, g.param("w5", f32({3, 5})));
  const Value scalar = product + g.param("b1", f32({1}));
  const Value columns = product + g.param("b4", f32({4, 1}));
  const Value first_axis = layer_norm(product + wide, g.param("gamma", f32({4})),
                                      g.param("beta", f32({4})), {.axis = 0});
  g.set_outputs({relu(wide), relu(scalar), product, columns, first_axis});
  expect_agreement(g);
}

// Nodes that are gone before the layer give its expansion other ids than it had.
TEST(BackendPromises, LoweringsReadTheNewGraph) {  // [lower-remap]
  Graph g("remap");
  const Value x = g.input("x", f32({3, 8}));
  for (int i = 0; i < 5; ++i) (void)exp(x * static_cast<double>(i));
  const Value n = layer_norm(x, g.param("gamma", f32({8})), g.param("beta", f32({8})));
  for (int i = 0; i < 5; ++i) (void)tanh(n);
  const Value q = reshape(n, {.new_shape = {1, 1, 3, 8}});
  g.set_outputs(
      {attention(q, q, q, {.num_heads = 1, .head_dim = 8, .layout = AttentionLayout::Bhsd})});
  const Graph prepared = prepare_for_device(g);
  verify(prepared);
  EXPECT_TRUE(
      close(interpret(prepared, feeds_of(g))[0], interpret(g, feeds_of(g))[0], {1e-5, 1e-5}));
  expect_agreement(g);
}

TEST(BackendPromises, SizesMustBeKnown) {  // [planner-dynamic]
  Graph g("symbolic");
  const Value x = g.input("x", f32({Dim::symbol("n"), 4}));
  g.set_outputs({exp(x)});
  try {
    (void)make_program(g);
    FAIL() << "planned";
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ErrorCode::NeedsStaticDim);
  }
}

Graph large_loop(std::int64_t length) {
  Graph g("loop");
  const Value h = g.input("h", f32({64, 64}));
  const Value w = g.param("w", f32({64, 64}));
  const Value xs = g.input("xs", f32({length, 64, 64}));
  const auto results = scan(std::array{h}, {.bcasts = {w}, .xs = {xs}, .length = Dim(length)},
                            [](Graph&, std::span<const Value> in) {
                              const Value scale =
                                  exp(mean(in[1], {Axis{0}}));  // the same in every step
                              const Value next = tanh(matmul(in[0], in[1]) * scale) + in[2];
                              return std::vector<Value>{next, softmax(next, {.axis = 1})};
                            });
  g.set_outputs({results[0], results[1]});
  return g;
}

const ControlStep* control_of(const Program& program) {
  for (const Step& step : program.steps) {
    if (const auto* c = std::get_if<ControlStep>(&step.what)) return c;
  }
  return nullptr;
}

TEST(BackendPromises, BodiesArePlannedWithTheirParents) {  // [planner-dynamic]
  const Program program = make_program(large_loop(20));
  const ControlStep* control = control_of(program);
  ASSERT_NE(control, nullptr);
  ASSERT_GE(control->workspace, 0);
  const Buffer& workspace = program.buffers[static_cast<std::size_t>(control->workspace)];
  EXPECT_EQ(workspace.role, Buffer::Role::Temporary);
  for (const auto& [role, body] : control->bodies) {
    EXPECT_GT(body->arena_bytes, 0);
    EXPECT_LE(body->arena_bytes, workspace.bytes());
  }
}

// A step is the product and what is attached to it: nothing is copied in or out, whatever the
// length, and what is the same in every step is computed before the first.
TEST(BackendPromises, LoopsDoWhatTheirStepsNeed) {  // [scan-exec]
  const Program few = make_program(large_loop(3));
  const Program many = make_program(large_loop(300));
  const ControlStep* control = control_of(many);
  ASSERT_NE(control, nullptr);
  ASSERT_NE(control_of(few), nullptr);
  const Program& body = *control->bodies[0].second;
  EXPECT_EQ(body.steps.size(), control_of(few)->bodies[0].second->steps.size());
  std::size_t kernels = 0;
  for (const Step& step : body.steps) {
    if (std::holds_alternative<CallStep>(step.what)) continue;
    kernels += std::get<KernelStep>(step.what).launches.size();
    EXPECT_EQ(step.label.find("copy"), std::string::npos) << step.label;
    EXPECT_EQ(step.label.find("exp("), std::string::npos) << step.label;
  }
  EXPECT_EQ(kernels, 1U) << to_string(body);
  EXPECT_EQ(control->carries.size(), 1U);
  EXPECT_NE(control->carries[0][0], control->carries[0][1]);
  expect_agreement(large_loop(4));
}

// What is computed before a loop is reported where it stands.
TEST(BackendPromises, FaultsBeforeLoopsAreThoseOfTheirBodies) {  // [scan-exec]
  const Graph graph = parse_graph(R"(graph @fault {
    %x = input "x" : i32[]
    %a = input "a" : i32[]
    %b = input "b" : i32[]
    %y = scan %x, %a, %b {length = 4, num_bcast = 2} body {
      %c = input "c" : i32[]
      %n = input "n" : i32[]
      %d = input "d" : i32[]
      %q = div %n, %d
      %s = add %c, %q
      return %s
    }
    return %y
  })");
  Feeds feeds;
  for (const char* name : {"x", "a", "b"}) feeds.emplace(name, Tensor::zeros(i32({})));
  const auto place_of = [](const std::function<void()>& run) {
    try {
      run();
    } catch (const UserError& e) {
      return e.diagnostic().where.to_string();
    }
    return std::string("no fault");
  };
  const std::string expected = place_of([&] { (void)interpret(graph, feeds); });
  EXPECT_NE(expected.find(":9:"), std::string::npos) << expected;
  for (const std::string& device : usable_devices()) {
    EXPECT_EQ(place_of([&] { (void)compile(graph, Device::named(device)).run(feeds); }), expected);
  }
}

TEST(BackendPromises, TemporariesArePlacedWell) {  // [planner-quality]
  std::vector<schedule::Lifetime> lives;
  std::uint64_t state = 42;
  const auto next = [&](std::uint64_t below) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (state >> 33U) % below;
  };
  for (std::size_t step = 0; step < 20000; ++step) {
    lives.push_back({static_cast<std::int64_t>(1 + next(100000)), step, step + 1 + next(30)});
  }
  const schedule::MemoryPlan plan = schedule::plan_memory(lives, 64);
  EXPECT_EQ(plan.offsets, schedule::plan_memory(lives, 64).offsets);
  EXPECT_GE(plan.total, plan.most_alive);
  EXPECT_LE(plan.total, plan.most_alive + plan.most_alive / 4);
  for (std::size_t i = 0; i < lives.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % 64, 0);
    for (std::size_t j = i + 1; j < std::min(lives.size(), i + 32); ++j) {
      if (lives[j].first > lives[i].last) continue;
      const bool apart = plan.offsets[i] + lives[i].bytes <= plan.offsets[j] ||
                         plan.offsets[j] + lives[j].bytes <= plan.offsets[i];
      EXPECT_TRUE(apart) << i << " and " << j;
    }
  }
}

// Params and constants are no part of the arena.
TEST(BackendPromises, ArenasHoldTemporariesAlone) {  // [planner-quality]
  Graph g("arena");
  const Value x = g.input("x", f32({8, 128}));
  const Value w = g.param("w", f32({128, 128}));
  const Value c = g.constant(random_tensor(7, f32({128, 128})));
  g.set_outputs({matmul(matmul(x, w), c)});
  const Program program = make_program(g);
  EXPECT_EQ(program.arena_bytes, 8 * 128 * 4) << to_string(program);
}

TEST(BackendPromises, BlocksAreCheckedWhereTheyStand) {  // [hir-validation]
  Graph g("blocks");
  const Value x = g.input("x", f32({2, 3}));
  const Value w = g.param("w", f32({4, 5}));
  try {
    (void)linear(x, w);
    FAIL() << "accepted";
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ErrorCode::Shape);
    EXPECT_NE(std::string(e.what()).find("linear"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("program_promises_test"), std::string::npos) << e.what();
  }
  // Fewer key and value heads than query heads are an attribute of the op: nothing is repeated.
  const Value q = g.input("q", f32({1, 4, 6, 8}));
  const Value kv = g.input("kv", f32({1, 2, 6, 8}));
  g.set_outputs({attention(
      q, kv, kv,
      {.num_heads = 4, .head_dim = 8, .num_kv_heads = 2, .layout = AttentionLayout::Bhsd})});
  expect_agreement(g);
}

}  // namespace
}  // namespace ricci::testing::program_promises_test
