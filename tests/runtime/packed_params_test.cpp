// [weight-prepack] Products of one value with several params are one product while these are kept:
// put together once, and anew when one of them changes; on every device.
#include <array>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/build/reduce.h"
#include "ricci/compiler/rewrite/fuse.h"
#include "ricci/ir/text.h"
#include "ricci/runtime/profile.h"
#include "ricci/runtime/session.h"
#include "ricci/transform/grad.h"

#include "runtime/models.h"
#include "support/every_device.h"

namespace ricci::testing {
namespace {

class RuntimePackedParams : public OnEveryDevice {};
RICCI_ON_EVERY_DEVICE(RuntimePackedParams);

constexpr std::int64_t Width = 12;

// Queries, keys and values of x, the weight of the last one made behind the first product.
Graph projections(std::int64_t rows = 3) {
  Graph g("projections");
  const Value x = g.input("x", f32({rows, Width}));
  const Value q = matmul(x, g.param("q", f32({Width, Width})));
  const Value k = matmul(x, g.param("k", f32({Width, 2 * Width})));
  const Value v = matmul(x, transpose(g.param("v", f32({Width, Width})), {.perm = {1, 0}}));
  g.set_outputs({tanh(q), sum(k, {1}), v * 2.0});
  return g;
}

// How often a run of a program does what a word says.
std::size_t count_steps(const CompiledGraph& f, const Feeds& feeds, std::string_view what) {
  Profile profile;
  (void)f.run(feeds, {.profile = &profile});
  const std::string trace = profile.chrome_trace();
  std::size_t n = 0;
  for (std::size_t at = trace.find(what); at != std::string::npos; at = trace.find(what, at + 1)) {
    ++n;
  }
  return n;
}

void keep(CompiledGraph& f, const Feeds& feeds) {
  for (const char* name : {"q", "k", "v"}) f.set_param(name, feeds.at(name));
}

TEST_P(RuntimePackedParams, KeptParamsMakeOneProduct) {
  const Graph graph = projections();
  const Feeds feeds = random_feeds(graph);
  const Feeds only_x = {{"x", feeds.at("x")}};
  CompiledGraph f = compile(graph, device());
  const std::vector<Tensor> expected = f.run(feeds);
  EXPECT_EQ(count_steps(f, feeds, "\"name\": \"matmul"), 3U);
  keep(f, feeds);
  const std::vector<Tensor> packed = f.run(only_x);
  for (std::size_t i = 0; i < packed.size(); ++i) EXPECT_TRUE(close(packed[i], expected[i]));
  EXPECT_EQ(count_steps(f, only_x, "\"name\": \"matmul"), 1U);
  EXPECT_EQ(count_steps(f, only_x, "\"name\": \"concat"), 0U);  // that was done before
  EXPECT_EQ(count_steps(f, feeds, "\"name\": \"matmul"), 3U);   // params that are given are read
}

TEST_P(RuntimePackedParams, AChangedParamIsPackedAnew) {
  const Graph graph = projections();
  Feeds feeds = random_feeds(graph);
  const Feeds only_x = {{"x", feeds.at("x")}};
  CompiledGraph f = compile(graph, device());
  const CompiledGraph plain = compile(graph, device(), {.pack_params = false});
  keep(f, feeds);
  (void)f.run(only_x);
  for (const char* name : {"k", "v"}) {
    feeds.at(name) = random_tensor(77, feeds.at(name).type());
    f.set_param(name, feeds.at(name));
    const std::vector<Tensor> got = f.run(only_x);
    const std::vector<Tensor> expected = plain.run(feeds);
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(close(got[i], expected[i])) << name;
    EXPECT_TRUE(f.param(name).identical(feeds.at(name)));
  }
  // One that is fed takes the place of the kept one, for this run.
  Feeds other = only_x;
  other.emplace("q", random_tensor(78, feeds.at("q").type()));
  Feeds all = feeds;
  all.at("q") = other.at("q");
  EXPECT_TRUE(identical(f.run(other), plain.run(all)));
}

// When a context was made does not decide what it computes.
TEST_P(RuntimePackedParams, ContextsAreAlikeWheneverTheyWereMade) {
  const Graph graph = projections(1);
  const Feeds feeds = random_feeds(graph);
  CompiledGraph f = compile(graph, device());
  ExecutionContext before = f.make_context();
  keep(f, feeds);
  ExecutionContext after = f.make_context();
  const auto run = [&](ExecutionContext& context) {
    std::vector<Tensor> results;
    std::vector<void*> out;
    for (const Type& type : f.outputs()) results.push_back(Tensor::zeros(type));
    for (Tensor& r : results) out.push_back(r.mutable_data());
    const std::array<const void*, 4> in = {feeds.at("x").data(), nullptr, nullptr, nullptr};
    f.run(context, in, out);
    return results;
  };
  const std::vector<Tensor> early = run(before);
  EXPECT_TRUE(identical(early, run(after)));
  EXPECT_TRUE(identical(early, f.run({{"x", feeds.at("x")}})));
}

TEST_P(RuntimePackedParams, RunsByPosition) {
  const Graph graph = projections(1);
  const Feeds feeds = random_feeds(graph);
  CompiledGraph f = compile(graph, device());
  const std::vector<Tensor> expected = f.run(feeds);
  keep(f, feeds);
  ExecutionContext context = f.make_context();
  Tensor q = Tensor::zeros(expected[0].type());
  Tensor k = Tensor::zeros(expected[1].type());
  Tensor v = Tensor::zeros(expected[2].type());
  const std::array<void*, 3> out = {q.mutable_data(), k.mutable_data(), v.mutable_data()};
  const Tensor x = feeds.at("x");
  const Tensor given_q = feeds.at("q");
  for (const void* fed :
       {static_cast<const void*>(nullptr), static_cast<const void*>(given_q.data())}) {
    const std::array<const void*, 4> in = {x.data(), fed, nullptr, nullptr};
    for (int i = 0; i < 2; ++i) f.run(context, in, out);
    EXPECT_TRUE(close(q, expected[0]));
    EXPECT_TRUE(close(k, expected[1]));
    EXPECT_TRUE(close(v, expected[2]));
  }
  EXPECT_GT(context.bytes(), 0);
}

// Errors speak of the graph that was compiled.
TEST_P(RuntimePackedParams, ErrorsNameWhatUsersGave) {
  const Graph graph = projections();
  const Feeds feeds = random_feeds(graph);
  CompiledGraph f = compile(graph, device());
  keep(f, feeds);
  EXPECT_EQ(f.inputs().size(), 4U);
  try {
    (void)f.run({{"x", feeds.at("x")}, {"packed_params", feeds.at("x")}});
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ErrorCode::Name);
  }
  EXPECT_THROW((void)f.run({}), UserError);
}

// What users join themselves is joined once, too.
TEST_P(RuntimePackedParams, ConcatsOfParamsAreMadeOnce) {
  Graph g("joined");
  const Value x = g.input("x", f32({100, 40}));
  const std::vector<Value> parts = {g.param("a", f32({40, 30})), g.param("b", f32({40, 50}))};
  g.set_outputs({matmul(x, concat(parts, {.axis = 1}))});
  const Feeds feeds = random_feeds(g);
  CompiledGraph f = compile(g, device());
  const std::vector<Tensor> expected = f.run(feeds);
  f.set_param("a", feeds.at("a"));
  f.set_param("b", feeds.at("b"));
  const Feeds only_x = {{"x", feeds.at("x")}};
  EXPECT_TRUE(identical(f.run(only_x), expected));
  EXPECT_EQ(count_steps(f, only_x, "\"name\": \"concat"), 0U);
}

// Params that outputs replace change with every step: they are left as they are.
TEST_P(RuntimePackedParams, TrainingReadsItsParams) {
  Graph g = projections();
  const Value loss =
      sum(g.value(g.outputs()[0])) + sum(g.value(g.outputs()[1])) + sum(g.value(g.outputs()[2]));
  g.set_outputs({loss});
  Graph step = value_and_grad(g, {"q", "k", "v"}).graph;
  std::vector<ValueId> outputs{step.outputs()[0]};
  const std::array names = {"q", "k", "v"};
  CompileOptions options;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Value w = step.value({step.find_or_throw(names[i]), 0});
    outputs.push_back((w - step.value(step.outputs()[i + 1]) * 0.1).id());
    options.donations.push_back({i + 1, names[i]});
  }
  step.set_outputs(outputs);
  const Feeds feeds = random_feeds(step);
  CompiledGraph f = compile(step, device(), options);
  keep(f, feeds);
  const Feeds only_x = {{"x", feeds.at("x")}};
  double before = f.update(only_x)[0].item();
  for (int i = 0; i < 3; ++i) {
    const double now = f.update(only_x)[0].item();
    EXPECT_LT(now, before);
    before = now;
  }
}

// Gradients of the joined graph are those of the params it is joined from.
TEST_P(RuntimePackedParams, GradientsAreThoseOfTheParams) {
  Graph g = projections();
  const Value y = g.value(g.outputs()[0]);
  const Value k = g.value(g.outputs()[1]);
  const Value v = g.value(g.outputs()[2]);
  g.set_outputs({sum(y) + sum(k * k) + sum(v)});
  const Graph joined = fuse_shared_input_matmul(g).graph;
  const std::vector<ValueRef> params = {"x", "q", "k", "v"};
  const Graph expected = value_and_grad(g, params).graph;
  const Graph got = value_and_grad(joined, params).graph;
  const Feeds feeds = random_feeds(g);
  const std::vector<Tensor> a = compile(expected, device()).run(feeds);
  const std::vector<Tensor> b = compile(got, device()).run(feeds);
  // Terms of some tens cancel, and joined products may add them in another order.
  const Tolerance rounding{.relative = 1e-5, .absolute = 1e-4};
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(close(b[i], a[i], rounding)) << i;
}

}  // namespace
}  // namespace ricci::testing
