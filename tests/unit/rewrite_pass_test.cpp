// The pass interface: pipelines, their reports and maps, and what happens when a pass misbehaves.
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/compiler/rewrite/cleanup.h"
#include "ricci/compiler/rewrite/pass.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"

namespace ricci::rewrite_pass_test {
namespace {

Graph with_dead_node() {
  Graph g("g");
  const Value x = g.input("x", f32({3}));
  (void)g.input("unused", f32({3}));
  (void)g.param("weight", f32({3}));
  const Value dead = exp(x);
  (void)(dead + x);
  g.set_outputs({tanh(x).named("y")});
  return g;
}

TEST(Passes, DeadCodeKeepsTheSignature) {  // [dce-io]
  const PassResult r = dead_code_elimination(with_dead_node());
  EXPECT_TRUE(r.changed);
  EXPECT_EQ(r.graph.size(), 4U);
  EXPECT_TRUE(r.graph.find("unused"));
  EXPECT_TRUE(r.graph.find("weight"));
  EXPECT_FALSE(dead_code_elimination(r.graph).changed);
}

TEST(Passes, MapsSayWhereValuesWent) {  // [pass-id-map]
  const Graph g = with_dead_node();
  const PassResult r = dead_code_elimination(g);
  EXPECT_FALSE(r.map({3, 0}));
  const ValueId y = g.outputs()[0];
  EXPECT_EQ(r.map(y), r.graph.outputs()[0]);
  EXPECT_EQ(value_names(r.graph)[r.map(y)->node][0], "y");
}

TEST(Passes, NamesAreLookedUpWithSuggestions) {
  ASSERT_NE(find_pass("dead_code_elimination"), nullptr);
  EXPECT_EQ(find_pass("no_such_pass"), nullptr);
  EXPECT_EQ(parse_pipeline("dead_code_elimination, dead_code_elimination").size(), 2U);
  try {
    (void)parse_pipeline("dead_code_eliminatoin");
    FAIL() << "accepted";
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ErrorCode::Name);
    EXPECT_EQ(e.diagnostic().help, "did you mean 'dead_code_elimination'?");
  }
}

TEST(Passes, EveryPassIsNamedAndExplained) {
  for (const Pass& pass : all_passes()) {
    EXPECT_FALSE(pass.help.empty()) << pass.name;
    EXPECT_EQ(find_pass(pass.name), &pass);
    EXPECT_FALSE(pass.run(pass.run(with_dead_node()).graph).changed) << pass.name;
  }
}

TEST(PassManager, ReportsAndComposes) {
  const Graph g = with_dead_node();
  std::vector<std::string> seen;
  PassManager manager(
      parse_pipeline("dead_code_elimination,dead_code_elimination"),
      {.after = [&](const Pass& pass, const PassResult&) { seen.push_back(pass.name); }});
  const PipelineResult r = manager.run(g);
  EXPECT_TRUE(r.changed);
  EXPECT_EQ(seen.size(), 2U);
  ASSERT_EQ(r.reports.size(), 2U);
  EXPECT_EQ(r.reports[0].nodes_before, 6U);
  EXPECT_EQ(r.reports[0].nodes_after, 4U);
  EXPECT_FALSE(r.reports[1].changed);
  EXPECT_GE(r.reports[0].seconds, 0);
  EXPECT_EQ(r.map(g.outputs()[0]), r.graph.outputs()[0]);
}

TEST(PassManager, NamesThePassThatBreaksAGraph) {
  const Pass vandal{"vandal", "returns a value that does not exist", [](const Graph& graph) {
                      PassResult r = unchanged(graph);
                      r.graph.set_outputs(std::vector<ValueId>{{999, 0}});
                      return r;
                    }};
  try {
    (void)PassManager({vandal}).run(with_dead_node());
    FAIL() << "accepted";
  } catch (const InternalError& e) {
    EXPECT_NE(std::string(e.what()).find("the pass 'vandal' broke the graph 'g'"),
              std::string::npos)
        << e.what();
  }
  EXPECT_NO_THROW((void)PassManager({vandal}, {.verify_each = false}).run(with_dead_node()));
}

}  // namespace
}  // namespace ricci::rewrite_pass_test
