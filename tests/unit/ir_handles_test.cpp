// Values as handles: they follow a graph that moves, and say so when it is gone.
#include <functional>
#include <optional>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"
#include "ricci/transform/grad.h"

#include "support/compare.h"

namespace ricci::testing::ir_handles_test {
namespace {

Tensor numbers(Dims dims, std::vector<double> values) {
  return Tensor::from_numbers<double>(f64(std::move(dims)), values);
}

std::string message_of(const std::function<void()>& step) {
  try {
    step();
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ErrorCode::Name);
    return e.what();
  }
  return "accepted";
}

struct Net {
  Graph graph;
  Value x;
  Value y;
};

Net made(double factor) {
  Net net{Graph("net"), {}, {}};
  net.x = net.graph.input("x", f64({2}));
  net.y = net.x * factor;
  return net;
}

TEST(GraphHandles, FollowAGraphThatMoves) {  // [FE-7b]
  std::vector<Net> nets;
  for (int i = 1; i <= 20; ++i) nets.push_back(made(i));  // moves what is there already
  for (std::size_t i = 0; i < nets.size(); ++i) {
    EXPECT_EQ(&nets[i].y.graph(), &nets[i].graph);
    nets[i].graph.set_outputs({nets[i].y + nets[i].x});
    const auto out = interpret(nets[i].graph, {{"x", numbers({2}, {1, 2})}});
    const auto n = static_cast<double>(i);
    EXPECT_TRUE(close(out[0], numbers({2}, {n + 2, 2 * n + 4})));
  }
  Graph elsewhere = std::move(nets[0].graph);
  EXPECT_EQ(&nets[0].y.graph(), &elsewhere);
  EXPECT_EQ(nets[0].y.dims(), Dims{2});
  nets[1].graph = std::move(elsewhere);
  EXPECT_EQ(&nets[0].y.graph(), &nets[1].graph);
}

TEST(GraphHandles, SayThatTheirGraphIsGone) {  // [FE-7a]
  std::optional<Net> net = made(2);
  const Value x = net->x;
  const Value y = net->y;
  net.reset();
  for (int i = 0; i < 4; ++i) {
    EXPECT_NE(message_of([&] { (void)x.type(); }).find("is gone"), std::string::npos);
    EXPECT_NE(message_of([&] { (void)(x + y); }).find("is gone"), std::string::npos);
    EXPECT_NE(message_of([&] { (void)y.named("y"); }).find("is gone"), std::string::npos);
    const Net another = made(3);  // in the place of the old one, most likely
    EXPECT_FALSE(another.x == x);
    EXPECT_NE(message_of([&] { (void)(x + another.x); }).find("is gone"), std::string::npos);
  }
  EXPECT_TRUE(x == x);
  EXPECT_FALSE(x == y);
}

TEST(GraphHandles, OfAGraphThatWasAssignedToAreGone) {
  Net a = made(1);
  const Net b = made(2);
  a.graph = b.graph;
  EXPECT_NE(message_of([&] { (void)a.x.type(); }).find("is gone"), std::string::npos);
  EXPECT_EQ(&b.x.graph(), &b.graph);
  EXPECT_NE(message_of([&] { a.graph.set_outputs({b.y}); }).find("perhaps a copy"),
            std::string::npos);
  a.graph = a.graph;  // NOLINT: what is tried
  EXPECT_EQ(a.graph.size(), b.graph.size());
}

TEST(GraphHandles, AreFewHoweverManyGraphsThereWere) {
  const Net first = made(1);
  std::vector<Value> old;
  for (int i = 0; i < 2000; ++i) old.push_back(made(i).y);
  for (const Value& v : old) EXPECT_THROW((void)v.id(), UserError);
  EXPECT_EQ(first.y.rank(), 1U);
}

TEST(GraphHandles, ProvenanceOfAScopeEndsWithItWhereverTheGraphIs) {
  Graph graph("g");
  std::optional<ProvenanceScope> scope;
  scope.emplace(graph, Provenance{.label = "layer", .where = {}, .origin = {}});
  Graph moved = std::move(graph);
  const Value inside = moved.input("a", f64());
  scope.reset();
  const Value outside = moved.input("b", f64());
  EXPECT_EQ(moved.node(inside.id().node).provenance->label, "layer");
  EXPECT_EQ(moved.node(outside.id().node).provenance->label, "");
  std::optional<Graph> dies = Graph("d");
  const ProvenanceScope of_the_dead(*dies, {.label = "x", .where = {}, .origin = {}});
  dies.reset();
}

TEST(GraphHandles, AreReferencesForTransforms) {
  Net net = made(3);
  net.graph.set_outputs({sum(square(net.y))});
  const Value y = net.y;
  const Net moved = std::move(net);
  const auto out = interpret(grad(moved.graph, {y}).graph, {{"x", numbers({2}, {1, 2})}});
  EXPECT_TRUE(close(out[0], numbers({2}, {6, 12})));
  const Graph copy = moved.graph;
  EXPECT_THROW((void)grad(copy, {y}), UserError);
}

// The order of operands' evaluation is the compiler's; that of the source is ours.
TEST(LeafOrder, IsThatOfTheSourceInAnExpression) {  // [FE-10]
  Graph g("linear");
  const Value x = g.input("x", f64({2, 3}));
  const Value y = matmul(x, g.param("w", f64({3, 4}))) + g.param("b", f64({4}));
  const Value z =
      matmul(y, g.param("w2", f64({4, 1}))) * g.param("scale", f64({1})) + g.param("b2", f64({1}));
  g.set_outputs({y, z});
  std::vector<std::string> names;
  for (const NodeId id : g.leaves()) names.push_back(*g.node(id).leaf_name());
  EXPECT_EQ(names, (std::vector<std::string>{"x", "w", "b", "w2", "scale", "b2"}));
  // Handles and names lead where they led.
  EXPECT_EQ(y.dims(), (Dims{2, 4}));
  EXPECT_EQ(g.node(g.find_or_throw("b2")).types[0].dims, (Dims{1}));
  EXPECT_EQ(parse_graph(print(g)), g);
  const Value more = z + y;
  EXPECT_EQ(more.dims(), (Dims{2, 4}));
  EXPECT_EQ(y, g.value(y.id()));
}

TEST(LeafOrder, IsThatOfTheSourceInSumsOfLayers) {
  Graph g("sum");
  const Value x = g.input("x", f64({2, 3}));
  const auto layer = [&](Value a, Value w, Value b) { return matmul(a, w) + b; };
  const Value y = layer(x, g.param("w1", f64({3, 4})), g.param("b1", f64({4}))) +
                  layer(x, g.param("w2", f64({3, 4})), g.param("b2", f64({4})));
  const Value s =
      g.param("s", f64({4})) * layer(y, g.param("w3", f64({4, 4})), g.param("b3", f64({4})));
  g.set_outputs({s});
  std::vector<std::string> names;
  for (const NodeId id : g.params()) names.push_back(*g.node(id).leaf_name());
  EXPECT_EQ(names, (std::vector<std::string>{"w1", "b1", "w2", "b2", "s", "w3", "b3"}));
}

TEST(LeafOrder, OfLoopsAndCallsIsThatOfTheirTurns) {
  Graph g("deep");
  Value h = g.input("x", f64({2, 4}));
  const auto named = [](const char* base, int i) { return base + std::to_string(i); };
  for (int i = 0; i < 3; ++i) {
    h = matmul(h, g.param(named("w", i), f64({4, 4}))) + g.param(named("b", i), f64({4}));
  }
  // Depth first: the outermost is declared first, though it stands below in the source.
  const std::function<Value(Value, int)> nest = [&](Value v, int depth) {
    if (depth == 0) return v * g.param("last", f64({4}));
    const Value scaled = v * g.param(named("n", depth), f64({4}));
    return nest(scaled, depth - 1);
  };
  g.set_outputs({nest(h, 2)});
  std::vector<std::string> names;
  for (const NodeId id : g.params()) names.push_back(*g.node(id).leaf_name());
  EXPECT_EQ(names,
            (std::vector<std::string>{"w0", "b0", "w1", "b1", "w2", "b2", "n2", "n1", "last"}));
}

TEST(OutputNames, AreGivenOrThoseOfTheValues) {  // [FE-1b]
  Graph g("named");
  const Value x = g.input("x", f64({2}));
  const Value h = tanh(x).named("h");
  g.set_outputs({{"prediction", h * 2.0}, {"", h}, {"h_2", x}, {"", x + 1.0}, {"", h}});
  const std::vector<std::string> names = {"prediction", "h", "h_2", "out3", "h_3"};
  EXPECT_EQ(g.output_names(), names);
  const Graph again = parse_graph(print(g));
  EXPECT_EQ(again.output_names(), names);
  EXPECT_EQ(print(again), print(g));
  EXPECT_NE(print(g).find("as \"prediction\", %h, %x as \"h_2\""), std::string::npos) << print(g);
  const Outputs out = interpret(g, {{"x", numbers({2}, {0, 1})}});
  EXPECT_TRUE(close(out["h_2"], numbers({2}, {0, 1})));
  EXPECT_TRUE(out["prediction"].identical(out[0]));
  EXPECT_NE(message_of([&] { (void)out["predicton"]; }).find("did you mean 'prediction'?"),
            std::string::npos);
  EXPECT_NE(message_of([&] { g.set_outputs({{"a", h}, {"a", x}}); }).find("is called 'a' already"),
            std::string::npos);
  g.set_outputs({h});
  EXPECT_EQ(g.output_names(), (std::vector<std::string>{"h"}));
}

TEST(OutputNames, OfTransformedGraphsSayWhatTheyAre) {
  Graph g("loss");
  const Value x = g.input("x", f64({2}));
  const Value w = g.param("c1.w", f64({2}));
  const Value hidden = (x * w).named("hidden");
  g.set_outputs({{"loss", sum(square(hidden))}, {"aux", hidden}});
  EXPECT_EQ(value_and_grad(g, {"c1.w", hidden}).graph.output_names(),
            (std::vector<std::string>{"loss", "aux", "gradient of c1.w", "gradient of %hidden"}));
  EXPECT_EQ(grad(g, {"c1.w", "c1.w"}).graph.output_names(),
            (std::vector<std::string>{"gradient of c1.w", "gradient of c1.w (2)"}));
}

}  // namespace
}  // namespace ricci::testing::ir_handles_test
