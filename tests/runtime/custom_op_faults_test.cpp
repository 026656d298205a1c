// What the code of registered ops does wrong is one clear error, interpreted and compiled alike.
#include <array>
#include <functional>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/compiler/rule/batch.h"
#include "ricci/compiler/rule/eval.h"
#include "ricci/compiler/rule/jvp.h"
#include "ricci/compiler/rule/vjp.h"
#include "ricci/interp/interpreter.h"
#include "ricci/op/custom.h"
#include "ricci/runtime/session.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/jvp.h"
#include "ricci/transform/vmap.h"

#include "support/compare.h"

namespace ricci::testing {
namespace {

// An op whose callbacks are what a test makes them; by default the identity.
class Made final : public CustomOp {
 public:
  using Kernel = std::function<void(EvalContext&)>;

  [[nodiscard]] std::string name() const override { return "made"; }
  [[nodiscard]] std::optional<std::size_t> num_inputs() const override { return inputs(); }
  [[nodiscard]] std::vector<Type> infer(std::span<const Type> operands,
                                        const Bytes&) const override {
    return shape(operands);
  }
  void eval(const Bytes&, EvalContext& c) const override { kernel(c); }
  [[nodiscard]] bool differentiable(std::size_t) const override { return derivative(); }
  [[nodiscard]] std::vector<Value> vjp(const Bytes&, const VjpContext& c) const override {
    return reverse(c);
  }
  [[nodiscard]] std::vector<Value> jvp(const Bytes&, JvpContext& c) const override {
    return forward(c);
  }
  [[nodiscard]] std::vector<BatchedValue> vmap(const Bytes&, const VmapContext& c) const override {
    return batch(c);
  }

  std::function<std::optional<std::size_t>()> inputs = [] { return std::optional<std::size_t>(1); };
  std::function<std::vector<Type>(std::span<const Type>)> shape = [](std::span<const Type> in) {
    return std::vector<Type>{in[0]};
  };
  Kernel kernel = [](EvalContext& c) { c.give(0, c.tensor(0)); };
  std::function<bool()> derivative = [] { return true; };
  std::function<std::vector<Value>(const VjpContext&)> reverse = [](const VjpContext& c) {
    return std::vector<Value>{c.cotangent()};
  };
  std::function<std::vector<Value>(JvpContext&)> forward = [](JvpContext& c) {
    return std::vector<Value>{c.tangent(0)};
  };
  std::function<std::vector<BatchedValue>(const VmapContext&)> batch = [](const VmapContext& c) {
    return c.emit(c.node().op, std::array{c[0]});
  };
};

// A graph over the op; its registry must live as long.
struct Built {
  explicit Built(const Made& op) {
    registry.add(std::make_shared<Made>(op));
    graph.emplace("made", registry);
    const Value x = graph->input("x", f32({2}));
    graph->set_outputs({sum(custom_op("made", {}, std::array{x})[0] * 2.0)});
  }
  Registry registry;
  std::optional<Graph> graph;
};

void expect_fault(ErrorCode code, const std::string& part, const std::function<void()>& f) {
  try {
    f();
    ADD_FAILURE() << "no fault is reported; expected " << part;
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("made"), std::string::npos) << e.what();
  }
}

void expect_kernel_fault(const Made::Kernel& kernel, ErrorCode code, const std::string& part) {
  Made op;
  op.kernel = kernel;
  const Built built(op);
  const Feeds feeds = {{"x", Tensor::zeros(f32({2}))}};
  expect_fault(code, part, [&] { (void)interpret(*built.graph, feeds); });
  const CompiledGraph f = compile(*built.graph);
  expect_fault(code, part, [&] { (void)f.run(feeds); });
}

struct NoException {};

TEST(RuntimeCustomOps, KernelsThatThrow) {
  expect_kernel_fault([](EvalContext&) { throw 42; }, ErrorCode::Refused, "no exception");
  expect_kernel_fault([](EvalContext&) { throw NoException(); }, ErrorCode::Refused,
                      "no exception");
  expect_kernel_fault([](EvalContext&) { throw std::runtime_error("out of ideas"); },
                      ErrorCode::Refused, "out of ideas");
  expect_kernel_fault([](EvalContext&) { throw UserError(ErrorCode::Shape, "made: no"); },
                      ErrorCode::Shape, "made: no");
}

TEST(RuntimeCustomOps, KernelsThatGiveSomethingElse) {
  expect_kernel_fault([](EvalContext&) {}, ErrorCode::Shape, "gives nothing for result 0");
  expect_kernel_fault([](EvalContext& c) { c.give(0, Tensor::zeros(f32({3}))); }, ErrorCode::Shape,
                      "sizes [3] for result 0");
  expect_kernel_fault([](EvalContext& c) { c.give(0, Tensor::zeros(i32({2}))); }, ErrorCode::Shape,
                      "gives i32[2] for result 0");
  expect_kernel_fault([](EvalContext& c) { c.give(0, RealNd({1, 2})); }, ErrorCode::Shape,
                      "sizes [1, 2] for result 0");
  expect_kernel_fault(
      [](EvalContext& c) {
        c.give(0, c.tensor(0));
        c.give(1, c.tensor(0));
      },
      ErrorCode::Shape, "gives a result 1, but there are 1");
}

TEST(RuntimeCustomOps, ShapeRules) {
  const auto build = [](const auto& change) {
    return [change] {
      Made op;
      change(op);
      (void)Built(op);
    };
  };
  using Types = std::span<const Type>;
  const auto shape = [&](std::function<std::vector<Type>(Types)> rule) {
    return build([rule](Made& op) { op.shape = rule; });
  };
  expect_fault(ErrorCode::Refused, "no exception",
               shape([](Types) -> std::vector<Type> { throw 42; }));
  expect_fault(ErrorCode::Refused, "out of ideas",
               shape([](Types) -> std::vector<Type> { throw std::logic_error("out of ideas"); }));
  expect_fault(ErrorCode::Shape, "gives no result",
               shape([](Types) { return std::vector<Type>{}; }));
  expect_fault(ErrorCode::Shape, "negative", shape([](Types) { return std::vector{f32({-2})}; }));
  expect_fault(ErrorCode::Refused, "no exception", build([](Made& op) {
                 op.inputs = []() -> std::optional<std::size_t> { throw 42; };
               }));
}

TEST(RuntimeCustomOps, RulesOfTransforms) {
  const auto on = [](const auto& change, const std::function<void(const Graph&)>& transform) {
    return [change, transform] {
      Made op;
      change(op);
      const Built built(op);
      transform(*built.graph);
    };
  };
  const auto reverse = [](const Graph& g) { (void)grad(g, {"x"}); };
  const auto forward = [](const Graph& g) { (void)jvp(g, {"x"}); };
  const auto over = [](const Graph& g) { (void)vmap(g, {{"x"}}, 3); };
  const auto thrown = [](auto&) -> std::vector<Value> { throw 42; };
  const auto nothing = [](auto&) { return std::vector<Value>{}; };
  const auto two = [](auto& c) { return std::vector<Value>{c[0], c[0]}; };
  const auto wrong = [](auto& c) { return std::vector<Value>{sum(c[0])}; };
  for (const auto& [rule, part, code] :
       std::vector<std::tuple<std::function<std::vector<Value>(const VjpContext&)>, std::string,
                              ErrorCode>>{{thrown, "no exception", ErrorCode::Refused},
                                          {nothing, "0 cotangents", ErrorCode::Shape},
                                          {two, "2 cotangents", ErrorCode::Shape},
                                          {wrong, "f32[]", ErrorCode::Shape}}) {
    expect_fault(code, part, on([&](Made& op) { op.reverse = rule; }, reverse));
  }
  for (const auto& [rule, part, code] : std::vector<
           std::tuple<std::function<std::vector<Value>(JvpContext&)>, std::string, ErrorCode>>{
           {thrown, "no exception", ErrorCode::Refused},
           {nothing, "0 tangents", ErrorCode::Shape},
           {two, "2 tangents", ErrorCode::Shape},
           {wrong, "f32[]", ErrorCode::Shape}}) {
    expect_fault(code, part, on([&](Made& op) { op.forward = rule; }, forward));
  }
  using Batched = std::vector<BatchedValue>;
  for (const auto& [rule, part, code] :
       std::vector<std::tuple<std::function<Batched(const VmapContext&)>, std::string, ErrorCode>>{
           {[](const VmapContext&) -> Batched { throw 42; }, "no exception", ErrorCode::Refused},
           {[](const VmapContext&) { return Batched{}; }, "0 values", ErrorCode::Shape},
           {[](const VmapContext&) { return Batched(1); }, "gives nothing", ErrorCode::Shape},
           {[](const VmapContext&) { return Batched(2); }, "2 values", ErrorCode::Shape}}) {
    expect_fault(code, part, on([&](Made& op) { op.batch = rule; }, over));
  }
  expect_fault(ErrorCode::Refused, "no exception",
               on([](Made& op) { op.derivative = []() -> bool { throw 42; }; }, reverse));
}

// A cotangent made in a graph of its own belongs nowhere.
TEST(RuntimeCustomOps, ValuesOfOtherGraphs) {
  Graph other("other");
  const Value foreign = other.input("y", f32({2}));
  Made op;
  op.reverse = [&](const VjpContext&) { return std::vector<Value>{foreign}; };
  const Built built(op);
  expect_fault(ErrorCode::Shape, "another graph", [&] { (void)grad(*built.graph, {"x"}); });
  Made ahead;
  ahead.forward = [&](JvpContext&) { return std::vector<Value>{foreign}; };
  const Built built_ahead(ahead);
  expect_fault(ErrorCode::Shape, "another graph", [&] { (void)jvp(*built_ahead.graph, {"x"}); });
}

}  // namespace
}  // namespace ricci::testing
