// [pass-verify-release] What enters a compiler is a well-formed graph, or is refused.
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/model/pipeline.h"
#include "ricci/runtime/compiled_graph.h"
#include "ricci/runtime/session.h"

namespace ricci::testing {
namespace {

// An exponential that claims to be longer than its operand.
Graph malformed() {
  Graph g("malformed");
  const Value x = g.input("x", f32({2}));
  Node node = g.node(exp(x).id().node);
  node.types[0] = f32({3});
  const NodeId id = g.append(std::move(node));
  g.set_outputs(std::vector<ValueId>{{id, 0}});
  return g;
}

TEST(RuntimeCompile, VerifiesTheGraphItIsGiven) {
  EXPECT_THROW((void)compile(malformed()), UserError);
}

TEST(RuntimeCompile, ASessionVerifiesTheGraphItIsGiven) {
  Session session;
  EXPECT_THROW((void)session.compile(malformed()), UserError);
}

TEST(RuntimeCompile, APipelineVerifiesTheGraphItIsGiven) {
  EXPECT_THROW((void)CompilePipeline().compile_graph(malformed()), UserError);
}

}  // namespace
}  // namespace ricci::testing
