// Profiles, traces and the search for the first non-finite value: on every device.
#include "ricci/runtime/profile.h"

#include <array>
#include <limits>

#include <gtest/gtest.h>

#include "ricci/compiler/schedule/program.h"
#include "ricci/runtime/session.h"
#include "ricci/transform/grad.h"

#include "runtime/models.h"
#include "support/every_device.h"

namespace ricci::testing {
namespace {

class RuntimeProfile : public OnEveryDevice {};
class RuntimeFinite : public OnEveryDevice {};
RICCI_ON_EVERY_DEVICE(RuntimeProfile);
RICCI_ON_EVERY_DEVICE(RuntimeFinite);

TEST_P(RuntimeProfile, TellsStepsWithTheirPlaces) {
  Graph g("model");
  const Value x = g.input("x", f32({32, 48}));
  const Value w = g.param("w", f32({48, 16}));
  const int line = __LINE__ + 1;
  const Value h = matmul(x, w);
  g.set_outputs({tanh(h) + 1.0});
  const CompiledGraph f = compile(g, device());
  Profile profile;
  const Feeds feeds = random_feeds(g);
  for (int i = 0; i < 3; ++i) (void)f.run(feeds, {.profile = &profile});
  EXPECT_EQ(profile.runs(), 3);
  const std::vector<ProfileRow> rows = profile.rows();
  ASSERT_EQ(rows.size(), f.program().steps.size());
  double sum = 0;
  bool found = false;
  for (const ProfileRow& r : rows) {
    EXPECT_EQ(r.runs, 3);
    EXPECT_EQ(r.depth, 0);
    sum += r.seconds;
    if (r.kind != "matmul") continue;
    found = true;
    const bool attached = r.label != "matmul";  // elsewhere the kernel may be a step of its own
    EXPECT_TRUE(attached || device().name() != "cpu");
    EXPECT_EQ(r.label, attached ? "matmul, then tanh+add" : "matmul");
    EXPECT_EQ(r.flops, 2 * 32 * 48 * 16 + (attached ? 2 * 32 * 16 : 0));
    EXPECT_EQ(r.bytes, 4 * (32 * 48 + 48 * 16 + 32 * 16));
    EXPECT_EQ(r.where.line, static_cast<std::uint32_t>(line));
  }
  EXPECT_TRUE(found);
  EXPECT_NEAR(sum, profile.seconds(), 1e-9);
  const std::string table = profile.to_string();
  EXPECT_NE(table.find("profile_test.cpp:" + std::to_string(line)), std::string::npos) << table;
  EXPECT_NE(table.find("GFLOP/s"), std::string::npos);
}

TEST_P(RuntimeProfile, LooksIntoLoopsAndCapsTheTrace) {
  Graph g("loop");
  const Value c = g.input("c", f32({4}));
  const Value xs = g.input("xs", f32({20, 4}));
  const auto body = [](Graph&, std::span<const Value> v) -> std::vector<Value> {
    const Value next = tanh(v[0] + v[1]);
    return {next, next * 2.0};
  };
  const std::vector<Value> r = scan(std::array{c}, {.xs = {xs}}, body);
  g.set_outputs({r[0], r[1]});
  const CompiledGraph f = compile(g, device());
  Profile profile(10);
  (void)f.run(random_feeds(g), {.profile = &profile});
  std::int64_t inner = 0;
  for (const ProfileRow& row : profile.rows()) {
    if (row.depth == 1) inner += row.runs;
  }
  const std::string trace = profile.chrome_trace();
  EXPECT_NE(trace.find("\"traceEvents\""), std::string::npos);
  if (inner > 0) {  // otherwise the loop is one kernel
    EXPECT_GE(inner, 20);
    EXPECT_EQ(trace.find("\"events_left_out\": 0"), std::string::npos);
  }
  std::size_t events = 0;
  for (std::size_t at = trace.find("\"ph\": \"X\""); at != std::string::npos;
       at = trace.find("\"ph\": \"X\"", at + 1)) {
    ++events;
  }
  EXPECT_LE(events, 10U);
  EXPECT_GE(events, 1U);
}

std::string fault_of(const CompiledGraph& f, const Feeds& feeds) {
  try {
    (void)f.run(feeds, {.check_finite = true});
  } catch (const UserError& e) {
    EXPECT_EQ(e.diagnostic().full_code(), "refused.not_finite") << e.what();
    return e.what();
  }
  return {};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_P(RuntimeFinite, NamesTheOpAndItsLine) {
  Graph g("logs");
  const Value x = g.input("x", f32({4}));
  const Value half = x * 0.5;
  const int line = __LINE__ + 1;
  const Value l = log(half);
  g.set_outputs({exp(l) + 1.0, reduce(l, {.op = ReduceKind::Sum, .axes = {0}})});
  const CompiledGraph f = compile(g, device());
  EXPECT_EQ(fault_of(f, {{"x", Tensor::of<float>({4}, {1, 2, 3, 4})}}), "");
  const std::string zero = fault_of(f, {{"x", Tensor::of<float>({4}, {1, 2, 0, 4})}});
  EXPECT_TRUE(contains(zero, "log makes an infinity (element 2")) << zero;
  EXPECT_TRUE(contains(zero, "profile_test.cpp:" + std::to_string(line))) << zero;
  const std::string negative = fault_of(f, {{"x", Tensor::of<float>({4}, {1, -2, 0, 4})}});
  EXPECT_TRUE(contains(negative, "log makes a NaN")) << negative;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::string fed = fault_of(f, {{"x", Tensor::of<float>({4}, {1, nan, 0, 4})}});
  EXPECT_TRUE(contains(fed, "'x' holds a NaN")) << fed;
}

TEST_P(RuntimeFinite, InfinitiesThatAreMeantPass) {
  Graph g("mask");
  const Value x = g.input("x", f32({4}));
  const Value masked =
      where(gt(x, scalar_like(x, 0)), x, scalar_like(x, -std::numeric_limits<double>::infinity()));
  g.set_outputs({softmax(masked, {.axis = 0})});
  const CompiledGraph f = compile(g, device());
  EXPECT_EQ(fault_of(f, {{"x", Tensor::of<float>({4}, {1, -2, 3, 4})}}), "");
}

TEST_P(RuntimeFinite, LooksInsideLoopsAndAtGradients) {
  Graph g("loop");
  const Value c = g.input("c", f32({2}));
  int line = 0;
  const auto body = [&](Graph&, std::span<const Value> v) -> std::vector<Value> {
    line = __LINE__ + 1;
    return {sqrt(v[0] + v[1])};
  };
  const std::vector<Value> r = scan(std::array{c}, {.xs = {g.input("xs", f32({5, 2}))}}, body);
  g.set_outputs({r[0]});
  const Tensor start = Tensor::of<float>({2}, {1, 1});
  const Tensor fall = Tensor::of<float>({5, 2}, {0, 0, 0, 0, 0, -5, 0, 0, 0, 0});
  const std::string text = fault_of(compile(g, device()), {{"c", start}, {"xs", fall}});
  EXPECT_TRUE(contains(text, "sqrt makes a NaN (element 1")) << text;
  EXPECT_TRUE(contains(text, "profile_test.cpp:" + std::to_string(line))) << text;
  EXPECT_TRUE(contains(text, "inside scan")) << text;

  // The value is finite, its gradient is not.
  Graph h("steep");
  const Value x = h.input("x", f32({3}));
  h.set_outputs({reduce(log(x), {.op = ReduceKind::Sum, .axes = {0}})});
  const CompiledGraph gradient = compile(value_and_grad(h, {"x"}).graph, device());
  const std::string steep = fault_of(gradient, {{"x", Tensor::of<float>({3}, {1, 1e-39F, 4})}});
  EXPECT_TRUE(contains(steep, "makes an infinity")) << steep;
  EXPECT_TRUE(contains(steep, "profile_test.cpp")) << steep;
}

TEST_P(RuntimeFinite, NothingIsUpdatedWhenAFaultIsFound) {
  Graph g("update");
  const Value p = g.param("p", f32({2}));
  g.set_outputs({p - log(g.input("x", f32({2})))});
  CompiledGraph f = compile(g, device(), {.donations = {{0, "p"}}});
  f.set_param("p", Tensor::of<float>({2}, {5, 6}));
  EXPECT_THROW((void)f.update({{"x", Tensor::of<float>({2}, {1, -1})}}, {.check_finite = true}),
               UserError);
  EXPECT_EQ(f.param("p").elements<float>(), (std::vector<float>{5, 6}));
  (void)f.update({{"x", Tensor::of<float>({2}, {1, 1})}}, {.check_finite = true});
  EXPECT_EQ(f.param("p").elements<float>(), (std::vector<float>{5, 6}));
}

}  // namespace
}  // namespace ricci::testing
