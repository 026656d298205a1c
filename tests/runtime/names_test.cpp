// Results and buffers of compiled graphs by name.
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/runtime/compiled_graph.h"
#include "ricci/runtime/session.h"
#include "ricci/transform/grad.h"

#include "support/compare.h"
#include "support/every_device.h"

namespace ricci::testing {
namespace {

Tensor numbers_of(std::vector<double> values) {
  const auto n = static_cast<std::int64_t>(values.size());
  return Tensor::from_numbers<double>(f64({n}), values);
}

// y = x·w, and a new w
Graph step_graph(const std::string& name_of_y) {
  Graph g("step");
  const Value x = g.input("x", f64({2}));
  const Value w = g.param("c1.w", f64({2}));
  const Value y = x * w;
  g.set_outputs({{"next w", w + 1.0}, {name_of_y, y}});
  return g;
}

class RuntimeNames : public OnEveryDevice {};
RICCI_ON_EVERY_DEVICE(RuntimeNames);

TEST_P(RuntimeNames, LeadToResults) {
  const Graph g = step_graph("y");
  const CompiledGraph f = compile(g, device());
  const Outputs out = f.run({{"x", numbers_of({1, 2})}, {"c1.w", numbers_of({3, 4})}});
  EXPECT_TRUE(close(out["y"], numbers_of({3, 8})));
  EXPECT_TRUE(close(out["next w"], numbers_of({4, 5})));
  EXPECT_EQ(f.output_index("y"), 1U);
  EXPECT_EQ(f.input_index("c1.w"), 1U);
  EXPECT_THROW((void)f.output_index("z"), UserError);
  EXPECT_THROW((void)f.input_index("y"), UserError);
  EXPECT_THROW((void)out["z"], UserError);
  const Tensor of_temporary = f.run({{"x", numbers_of({1, 2})}, {"c1.w", numbers_of({3, 4})}})["y"];
  EXPECT_TRUE(close(of_temporary, numbers_of({3, 8})));
  const CompiledGraph d = compile(value_and_grad(g, {"c1.w"}).graph, device());
  EXPECT_EQ(d.output_names().back(), "gradient of c1.w");
}

TEST_P(RuntimeNames, LeadToBuffers) {
  const CompiledGraph f = compile(step_graph("y"), device());
  ExecutionContext context = f.make_context();
  const double x[2] = {1, 2};
  const double w[2] = {3, 4};
  double y[2] = {};
  double next[2] = {};
  const auto in = f.bind_inputs({{"c1.w", w}, {"x", x}});
  const auto out = f.bind_outputs({{"y", y}, {"next w", next}});
  EXPECT_EQ(in, (std::vector<const void*>{x, w}));
  EXPECT_EQ(out, (std::vector<void*>{next, y}));
  f.run(context, in, out);
  EXPECT_EQ(y[1], 8);
  EXPECT_EQ(next[0], 4);
  EXPECT_THROW((void)f.bind_inputs({{"x", x}, {"x", x}}), UserError);
  EXPECT_THROW((void)f.bind_inputs({{"v", x}}), UserError);
  EXPECT_THROW((void)f.bind_outputs({{"x", y}}), UserError);
}

TEST_P(RuntimeNames, OfUpdatesAreThoseThatAreLeft) {
  CompiledGraph f =
      compile(step_graph("y"), device(), {.donations = {{.output = 0, .input = "c1.w"}}});
  f.set_param("c1.w", numbers_of({3, 4}));
  const Outputs out = f.update({{"x", numbers_of({1, 2})}});
  ASSERT_EQ(out.size(), 1U);
  EXPECT_TRUE(close(out["y"], numbers_of({3, 8})));
  EXPECT_TRUE(close(f.param("c1.w"), numbers_of({4, 5})));
}

// Graphs that differ in nothing but what their outputs are called are not taken for each other.
TEST_P(RuntimeNames, AreKeptApartByASession) {
  Session session(device());
  const CompiledGraph a = session.compile(step_graph("y"));
  const CompiledGraph b = session.compile(step_graph("product"));
  EXPECT_EQ(a.output_index("y"), 1U);
  EXPECT_EQ(b.output_index("product"), 1U);
}

}  // namespace
}  // namespace ricci::testing
