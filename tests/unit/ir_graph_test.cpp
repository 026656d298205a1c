#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/graph.h"
#include "ricci/ir/rebuild.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"

#include "support/compare.h"

namespace ricci::ir_graph_test {
namespace {

Graph small() {
  Graph g("small");
  const Value x = g.input("x", f32({2, 3}));
  const Value w = g.param("w", f32({3, 4}));
  g.set_outputs({tanh(matmul(x, w)) * 2.0});
  return g;
}

template <class F>
Diagnostic diagnostic_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.diagnostic();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

TEST(Graph, BuildersInferTypesAndRememberTheirPlace) {
  const Graph g = small();
  EXPECT_EQ(g.type(g.outputs()[0]).to_string(), "f32[2, 4]");
  for (const Node& n : g.nodes()) {
    EXPECT_NE(n.provenance->where.file.find("ir_graph_test"), std::string::npos) << n.op.mnemonic();
    EXPECT_GT(n.provenance->where.line, 0U);
  }
}

TEST(Graph, EqualityAndHashSeeStructureAndNothingElse) {  // [TR-02]
  Graph a = small();
  Graph b = small();
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.hash(), b.hash());
  b.set_value_name(b.outputs()[0], "other_name");
  EXPECT_EQ(a, b);
  b.set_outputs({b.value({0, 0})});
  EXPECT_FALSE(a == b);
  EXPECT_NE(a.hash(), b.hash());
}

TEST(Graph, ASplatEqualsTheDenseConstantWithTheSameValues) {
  Graph a("c");
  a.set_outputs({a.constant(Tensor::splat(f32({3}), 2.0))});
  Graph b("c");
  b.set_outputs({b.constant(Tensor::of<float>({3}, {2, 2, 2}))});
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.hash(), b.hash());
}

TEST(Graph, CopiesShareConstants) {
  Graph a("c");
  const Value c = a.constant(Tensor::of<float>({3}, {1, 2, 3}));
  a.set_outputs({c});
  const Graph b = a;  // NOLINT: the copy is the point
  EXPECT_EQ(a.node(0).op.attributes(), b.node(0).op.attributes());
}

TEST(Graph, ErrorsNameOperandsTypesAndPlaces) {
  Graph g("g");
  const Value x = g.input("x", f32({2, 3})).named("x");
  const Diagnostic d = diagnostic_of([&] { matmul(x, x); });
  EXPECT_EQ(d.full_code(), "shape.matmul_c2");
  EXPECT_NE(d.message.find("3"), std::string::npos);
  EXPECT_NE(d.where.file.find("ir_graph_test"), std::string::npos);
  ASSERT_EQ(d.notes.size(), 2U);
  EXPECT_NE(d.notes[0].find("a of 'matmul' is %x : f32[2, 3], defined at"), std::string::npos);
  EXPECT_FALSE(d.help.empty());
}

TEST(Graph, NamesAreUniqueAndSuggested) {
  Graph g("g");
  g.input("weights", f32());
  EXPECT_EQ(diagnostic_of([&] { g.param("weights", f32()); }).full_code(), "name.duplicate");
  EXPECT_EQ(g.unique_name("weights"), "weights_2");
  EXPECT_EQ(diagnostic_of([&] { (void)g.find_or_throw("weihgts"); }).help,
            "did you mean 'weights'?");
}

TEST(Graph, ValuesOfAnotherGraphAreRefused) {
  Graph a("a");
  Graph b("b");
  const Value x = a.input("x", f32());
  const Value y = b.input("y", f32());
  EXPECT_EQ(diagnostic_of([&] { add(x, y); }).full_code(), "name.other_graph");
  EXPECT_EQ(diagnostic_of([&] { b.set_outputs({x}); }).code, ErrorCode::Name);
  EXPECT_EQ(diagnostic_of([&] { tanh(Value()); }).code, ErrorCode::Name);
}

TEST(Graph, OperatorsPromoteAndNamedBuildersDoNot) {
  Graph g("g");
  const Value f = g.input("f", f32({2}));
  const Value i = g.input("i", i64({2}));
  EXPECT_EQ((f + i).dtype(), DType::F64);
  EXPECT_EQ((i * 3).dtype(), DType::I64);
  EXPECT_EQ(diagnostic_of([&] { i * 0.5; }).code, ErrorCode::DType);
  EXPECT_EQ(diagnostic_of([&] { add(f, i); }).full_code(), "dtype.binary_c1");
}

TEST(Graph, LabelsNestAndDoNotEnterEquality) {
  Graph g("g");
  const Value x = g.input("x", f32({2}));
  {
    const ProvenanceScope encoder(g, {.label = "encoder"});
    const ProvenanceScope layer(g, {.label = "layer0"});
    g.set_outputs({tanh(x)});
  }
  EXPECT_EQ(g.nodes().back().provenance->label, "encoder/layer0");
}

TEST(Graph, BindingReplacesSymbolsInTypesAttributesAndBodies) {
  Graph g("g");
  const Dim n = Dim::symbol("n");
  const Value x = g.input("x", f32({n, 2}));
  const Value flat = reshape(x, {.new_shape = {n * 2}});
  const Value total = scan(std::array{flat}, {.length = n},
                           [](Graph&, auto in) { return std::vector<Value>{in[0] * 0.5}; })[0];
  g.set_outputs({total});
  EXPECT_EQ(g.symbols(), std::set<std::string>{"n"});
  const Graph bound = g.bind({{"n", 3}});
  EXPECT_TRUE(bound.symbols().empty());
  EXPECT_EQ(bound.type(bound.outputs()[0]).to_string(), "f32[6]");
  EXPECT_EQ(bound.size(), g.size());
  verify(bound);
}

TEST(Graph, SymbolsAreBoundFromFeeds) {
  Graph g("g");
  const Dim n = Dim::symbol("n");
  const Value x = g.input("x", f32({n}));
  const Value y = g.input("y", f32({n}));
  g.set_outputs({x + y});
  const Tensor three = Tensor::of<float>({3}, {1, 2, 3});
  const Tensor two = Tensor::of<float>({2}, {1, 2});
  EXPECT_EQ(interpret(g, {{"x", three}, {"y", three}})[0].numbers<double>(),
            (std::vector<double>{2, 4, 6}));
  EXPECT_EQ(diagnostic_of([&] { (void)interpret(g, {{"x", three}, {"y", two}}); }).code,
            ErrorCode::Shape);
}

TEST(Graph, InlineSubgraphBindsInputsInOrder) {
  Graph body("body");
  const Value a = body.input("a", f32({2}));
  const Value b = body.input("b", f32({2}));
  body.set_outputs({a - b});
  Graph g("g");
  const Value x = g.input("x", f32({2}));
  const Value y = g.input("y", f32({2}));
  g.set_outputs(inline_subgraph(body, std::array{y, x}, g));
  const auto out =
      interpret(g, {{"x", Tensor::of<float>({2}, {1, 1})}, {"y", Tensor::of<float>({2}, {5, 7})}});
  EXPECT_EQ(out[0].numbers<double>(), (std::vector<double>{4, 6}));
  verify(g);
}

TEST(Graph, RebuilderMapsValuesAndComposes) {
  const Graph g = small();
  Rebuilder r(g);
  for (NodeId id = 0; id < g.size(); ++id) r.copy(id);
  const IdMap map = r.id_map();
  const Graph again = r.finish();
  EXPECT_EQ(again, g);
  EXPECT_EQ(map.then(IdMap::identity(again))({1, 0}), (ValueId{1, 0}));
  EXPECT_FALSE(map({99, 0}).has_value());
}

TEST(Verify, CollectsAllFaults) {
  Graph g = small();
  Node bad = g.nodes().back();
  bad.types[0] = f32({9});
  bad.operands[0] = {77, 0};
  g.append(bad);
  Node wrong_type = g.node(2);
  wrong_type.types[0] = f32({1, 1});
  g.append(wrong_type);
  const std::vector<Diagnostic> faults = find_faults(g);
  ASSERT_EQ(faults.size(), 2U);
  EXPECT_EQ(faults[0].detail, "verify_order");
  EXPECT_EQ(faults[1].detail, "verify_type");
  EXPECT_THROW(verify(g), UserError);
}

TEST(Verify, SeesIntoBodies) {
  Graph body("body");
  const Value c = body.input("c", f32({2}));
  body.set_outputs({c});
  Node broken = body.node(0);
  body.append({.op = Op(op::Unary{UnaryKind::Tanh}),
               .operands = {{0, 0}},
               .types = {f32({3})},
               .wanted = {true},
               .names = {""},
               .bodies = {},
               .provenance = {}});
  Graph g("g");
  const Value x = g.input("x", f32({2}));
  g.add_node(Op(op::Scan{.length = 2}), std::array{x},
             {{"body", std::make_shared<const Graph>(body)}});
  const auto faults = find_faults(g);
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].detail, "verify_type");
  EXPECT_NE(faults[0].notes.back().find("inside body 'body'"), std::string::npos);
}

TEST(Verify, ArityAndBodiesAreChecked) {
  Graph g("g");
  const Value x = g.input("x", f32({2, 2}));
  g.append({.op = Op(op::Matmul{}),
            .operands = {x.id()},
            .types = {f32({2, 2})},
            .wanted = {true},
            .names = {""}});
  g.append({.op = Op(op::If{}), .operands = {x.id()}, .types = {}, .wanted = {}, .names = {}});
  const auto faults = find_faults(g);
  ASSERT_EQ(faults.size(), 2U);
  EXPECT_EQ(faults[0].detail, "matmul_arity");
  EXPECT_EQ(faults[1].detail, "if_bodies");
}

TEST(Graph, BodiesAreChecked) {
  Graph g("g");
  const Value p = g.input("p", boolean());
  const auto body = make_body(
      "then", {}, [](Graph& b, auto) { return std::vector<Value>{b.constant(Tensor())}; },
      default_registry());
  const auto add_if = [&](std::vector<Body> bodies) {
    g.add_node(Op(op::If{}), std::array{p}, bodies);
  };
  EXPECT_EQ(diagnostic_of([&] { add_if({{"then", body}}); }).full_code(), "attr.if_bodies");
  EXPECT_EQ(diagnostic_of([&] { add_if({{"then", body}, {"else", nullptr}}); }).full_code(),
            "attr.if_bodies");
  EXPECT_EQ(
      diagnostic_of([&] { add_if({{"then", body}, {"then", body}, {"else", body}}); }).full_code(),
      "attr.if_bodies");
  EXPECT_EQ(
      diagnostic_of([&] { add_if({{"then", body}, {"else", body}, {"other", body}}); }).full_code(),
      "attr.if_bodies");
}

TEST(Graph, NestingHasALimitThatTextSharesToo) {
  const auto wrap = [](Graph inner) {
    Graph outer("body");
    const Value x = outer.input("x", f32({2}));
    outer.set_outputs(outer.add_node(Op(op::Scan{.length = 1}), std::array{x},
                                     {{"body", std::make_shared<const Graph>(std::move(inner))}}));
    return outer;
  };
  Graph g("body");
  g.set_outputs({g.input("x", f32({2}))});
  for (int i = 0; i < 64; ++i) g = wrap(std::move(g));
  EXPECT_EQ(parse_graph(print(g)), g);
  EXPECT_EQ(diagnostic_of([&] { (void)wrap(g); }).full_code(), "attr.scan_bodies");
}

TEST(Graph, RandomNodesInBodiesDrawFromOtherStreams) {
  Graph g("g");
  const Value a = rng_uniform(g, {.shape = Dims{2}});
  const Value b =
      scan(std::array{a}, {.length = Dim(1)}, [](Graph& body, std::span<const Value> in) {
        return std::vector<Value>{in[0] + rng_uniform(body, {.shape = Dims{2}})};
      })[0];
  const Value c = rng_uniform(g, {.shape = Dims{2}});
  g.set_outputs({a, b, c});
  const std::string text = print(g);
  for (const char* key : {"key = 1", "key = 2", "key = 3"}) {
    EXPECT_NE(text.find(key), std::string::npos) << text;
  }
}

TEST(Graph, ValuesOfAMovedGraphAreTheNewOnes) {
  Graph a("a");
  const Value x = a.input("x", f32());
  Graph b = std::move(a);
  b.set_outputs({x});
  EXPECT_EQ(b.outputs().size(), 1U);
  EXPECT_NE(diagnostic_of([&] { a.set_outputs({x}); }).message.find("belongs to the graph 'a'"),
            std::string::npos);
}

TEST(Verify, AnUnwantedResultMayNotBeRead) {
  Graph g("g");
  const Value q = g.input("q", f32({3, 4}));
  const auto results =
      g.add_node(Op(op::Attention{.num_heads = 1, .head_dim = 4}), std::array{q, q, q});
  EXPECT_EQ(diagnostic_of([&] { g.set_outputs({results[1]}); }).full_code(), "name.unwanted");
  EXPECT_EQ(diagnostic_of([&] { neg(results[1]); }).full_code(), "name.unwanted");
  g.set_outputs(std::vector<ValueId>{results[1].id()});
  EXPECT_EQ(find_faults(g).at(0).detail, "verify_unwanted");
  g.set_wanted(results[1].id(), true);
  EXPECT_TRUE(find_faults(g).empty());
}

TEST(Interpreter, FeedsAreChecked) {
  const Graph g = small();
  const Tensor x = Tensor::zeros(f32({2, 3}));
  EXPECT_EQ(diagnostic_of([&] { (void)interpret(g, {{"x", x}}); }).full_code(), "name.feed");
  EXPECT_EQ(diagnostic_of([&] { (void)interpret(g, {{"x", x}, {"w", x}}); }).full_code(),
            "shape.feed");
  EXPECT_EQ(diagnostic_of([&] {
              (void)interpret(g, {{"x", Tensor::zeros(f64({2, 3}))}, {"w", x}});
            }).full_code(),
            "dtype.feed");
  EXPECT_EQ(diagnostic_of([&] { (void)interpret(g, {{"nope", x}}); }).code, ErrorCode::Name);
}

TEST(Interpreter, OneElementFeedsAScalar) {
  Graph g("g");
  g.set_outputs({g.input("x", f32()) * 2.0});
  EXPECT_EQ(interpret(g, {{"x", Tensor::of<float>({1}, {4})}})[0].item(), 8);
}

TEST(Interpreter, ObserverSeesEveryNode) {
  const Graph g = small();
  std::vector<std::string> seen;
  InterpretOptions options;
  options.observer = [&](const Graph& graph, NodeId id, std::span<const Tensor>) {
    seen.emplace_back(graph.node(id).op.mnemonic());
  };
  (void)interpret(g, {{"x", Tensor::zeros(f32({2, 3}))}, {"w", Tensor::zeros(f32({3, 4}))}},
                  options);
  EXPECT_EQ(seen, (std::vector<std::string>{"matmul", "tanh", "constant", "mul"}));
}

}  // namespace
}  // namespace ricci::ir_graph_test
