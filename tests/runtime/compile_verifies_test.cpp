// [pass-verify-release] What enters a compiler is a well-formed graph, or is refused: whoever takes
// one looks at it before anything else is done with it.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/compiler/device/backend.h"
#include "ricci/compiler/schedule/program.h"
#include "ricci/model/lbfgs.h"
#include "ricci/model/pipeline.h"
#include "ricci/model/training.h"
#include "ricci/runtime/ahead_of_time.h"
#include "ricci/runtime/compiled_graph.h"
#include "ricci/runtime/session.h"

#include "support/every_device.h"

namespace ricci::testing {
namespace {

// The sum of the exponentials of a param, after `breaks` has been at the node of these.
Graph loss(const std::function<void(Node&)>& breaks) {
  Graph g("loss");
  const Value good = exp(g.param("w", f64({2})));
  Node total = g.node(sum(good).id().node);
  Node broken = g.node(good.id().node);
  breaks(broken);
  total.operands[0] = {g.append(std::move(broken)), 0};
  g.set_outputs(std::vector<ValueId>{{g.append(std::move(total)), 0}});
  return g;
}

Graph well_formed() {
  return loss([](Node&) {});
}

using Entry = std::pair<std::string, std::function<void(const Graph&)>>;

std::shared_ptr<const Program> good_program() {
  return std::make_shared<const Program>(
      make_program(well_formed(), {.target = &Device::standard().backend().target()}));
}

// Everything that takes a graph and makes something that runs.
std::vector<Entry> entries() {
  std::vector<Entry> all = {
      {"compile", [](const Graph& g) { (void)compile(g); }},
      {"Session::compile",
       [](const Graph& g) {
         Session session;
         (void)session.compile(g);
       }},
      {"load", [](const Graph& g) { (void)load(g, good_program()); }},
      {"CompilePipeline at MIR", [](const Graph& g) { (void)CompilePipeline().compile_graph(g); }},
      {"CompilePipeline at HIR",
       [](const Graph& g) { (void)CompilePipeline().compile_module(GraphModule::from_hir(g)); }},
      {"CompilePipeline at LIR",
       [](const Graph& g) {
         (void)CompilePipeline().compile_module(GraphModule::from_lir(g, good_program()));
       }},
      {"CompilePipeline::specialize",
       [](const Graph& g) { (void)CompilePipeline().specialize(GraphModule::from_graph(g), {}); }},
      {"compile_training", [](const Graph& g) { (void)compile_training(g, {.params = {"w"}}); }},
      {"minimize",
       [](const Graph& g) {
         (void)minimize(g, {{"w", Tensor::zeros(f64({2}))}}, {}, {.max_iterations = 1});
       }},
  };
  if (has_device("cpu")) {
    all.emplace_back("compile_object", [](const Graph& g) { (void)compile_object(g); });
    all.emplace_back("compile_text", [](const Graph& g) { (void)compile_text(g, "report"); });
  }
  return all;
}

void expect_refused(const Graph& malformed, const std::string& detail) {
  for (const auto& [name, enter] : entries()) {
    SCOPED_TRACE(name);
    EXPECT_NO_THROW(enter(well_formed()));
    try {
      enter(malformed);
      ADD_FAILURE() << "is taken";
    } catch (const UserError& e) {
      EXPECT_EQ(e.diagnostic().detail, detail) << e.what();
    }
  }
}

TEST(RuntimeCompile, EveryEntryRefusesAWrongType) {
  expect_refused(loss([](Node& node) { node.types[0] = f64({3}); }), "verify_type");
}

TEST(RuntimeCompile, EveryEntryRefusesAnOperandThatIsNotThere) {
  expect_refused(loss([](Node& node) { node.operands[0] = {1000, 0}; }), "verify_order");
}

TEST(RuntimeCompile, EveryEntryRefusesAResultThatIsNotComputed) {
  expect_refused(loss([](Node& node) { node.wanted[0] = false; }), "verify_unwanted");
}

}  // namespace
}  // namespace ricci::testing
