// Custom functions, roles of inputs in text, and the registry of custom ops.
#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/compiler/rule/eval.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"

#include "support/compare.h"

namespace ricci::testing::control_custom_test {
namespace {

using Inputs = std::span<const Value>;
using Values = std::vector<Value>;
using Kind = op::InputRole::Kind;

void expect_round_trip(const Graph& g) {
  verify(g);
  const std::string text = print(g);
  const Graph again = parse_graph(text, {.registry = &g.registry()});
  EXPECT_TRUE(again == g) << text;
  EXPECT_EQ(print(again), text);
}

template <class F>
std::string code_of(F&& f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.diagnostic().full_code();
  }
  return "accepted";
}

TEST(CustomFn, BuiltFromFunctions) {
  Graph g("fn");
  const Value x = g.input("x", f32({2}));
  const Value k = g.input("k", i32());
  const Value y =
      custom_fn(std::array{x, k},
                [](Graph&, Inputs in) {
                  const Value scale = cast_to(in[1], DType::F32);
                  return Values{in[0] * scale, scale};
                },
                {.vjp =
                     [](Graph&, const VjpInputs& in) {
                       EXPECT_EQ(in.primals.size(), 2U);
                       return Values{in.d_outputs[0] * in.residuals[0]};
                     },
                 .jvp =
                     [](Graph&, const JvpInputs& in) {
                       EXPECT_FALSE(in.tangents[1].valid());
                       return Values{in.tangents[0] * cast_to(in.primals[1], DType::F32)};
                     },
                 .num_residuals = 1});
  g.set_outputs({y});
  expect_round_trip(g);
  const auto out =
      interpret(g, {{"x", Tensor::of<float>({2}, {1, 2})}, {"k", Tensor::splat(i32(), 3)}});
  EXPECT_TRUE(same(out[0], Tensor::of<float>({2}, {3, 6})));
}

TEST(CustomFn, BuiltFromReadyGraphs) {
  const auto ready = [](op::InputRole d_role) {
    Graph fwd("square");
    const Value a = fwd.input("a", f32({2}));
    fwd.set_outputs({a * a});
    Graph vjp("square_vjp");
    vjp.input("a", f32({2}));
    vjp.input("y", f32({2}), {Kind::PrimalOutput, 0});
    const Value d = vjp.input("d_output", f32({2}), d_role);
    vjp.set_outputs({sin(d)});
    Graph g("fn");
    const Value x = g.input("x", f32({2}));
    g.set_outputs({custom_fn(std::array{x}, std::move(fwd), std::move(vjp))});
    return g;
  };
  expect_round_trip(ready({Kind::DOutput, 0}));
  // [body-hygiene] A name alone is not a role.
  EXPECT_EQ(code_of([&] { (void)ready({}); }), "shape.custom_fn_c4");
}

TEST(CustomFn, SeveralOutputs) {
  Graph g("multi");
  const Value x = g.input("x", f32({Dim::symbol("n"), 2}));
  const auto both = [](Graph&, Inputs in) {
    return Values{in[0] * 2.0, gt(in[0], scalar_like(in[0], 0)), sum(in[0], {1})};
  };
  const MultiOutputHandle handle = custom_fn_multi(std::array{x}, both);
  EXPECT_EQ(handle.n_outputs(), 3U);
  g.set_outputs({handle.output(g, 0), handle.output(g, 1), handle.output(g, 2)});
  expect_round_trip(g);
  const auto out = interpret(g, {{"x", Tensor::of<float>({1, 2}, {3, -4})}});
  EXPECT_TRUE(same(out[0], Tensor::of<float>({1, 2}, {6, -8})));
  EXPECT_TRUE(same(out[1], Tensor::of<bool>({1, 2}, {true, false})));
  EXPECT_TRUE(same(out[2], Tensor::of<float>({1}, {-1})));
  EXPECT_THROW((void)handle.output(g, 3), UserError);
  EXPECT_THROW((void)handle.output(Graph("other"), 0), UserError);
  EXPECT_THROW((void)custom_fn(std::array{x}, both), UserError);
}

TEST(InputRoles, NamesImplyThemInDerivativeBodies) {
  const std::string text = R"(graph @g {
  %x = input "x" : f32[2]
  %y, %z = custom_fn %x {num_residuals = 1} fwd {
    %a = input "d_output" : f32[2]
    %b = sin %a
    return %b, %a, %b
  } vjp {
    %a = input "a" : f32[2]
    %y0 = input "primal_output" : f32[2]
    %y1 = input "primal_output_1" : f32[2]
    %d0 = input "d_output" : f32[2]
    %d1 = input "d_output_1" : f32[2]
    %r = input "residual_0" : f32[2]
    return %d0
  } jvp {
    %a = input "tangent" : f32[2]
    %t = input "tangent_0" : f32[2]
    return %t, %t
  }
  return %y, %z
}
)";
  const Graph g = parse_graph(text);
  expect_round_trip(g);
  const Node& node = g.node(1);
  EXPECT_EQ(node.body("fwd")->signature("").input_roles[0], op::InputRole{});
  const auto roles = node.body("vjp")->signature("").input_roles;
  const std::vector<op::InputRole> expected = {{Kind::None, 0},         {Kind::PrimalOutput, 0},
                                               {Kind::PrimalOutput, 1}, {Kind::DOutput, 0},
                                               {Kind::DOutput, 1},      {Kind::Residual, 0}};
  EXPECT_EQ(roles, expected);
  EXPECT_NE(print(g).find("{role = residual(0)}"), std::string::npos);
}

TEST(InputRoles, AnOrdinaryInputMayHaveASpecialName) {
  Graph g("g");
  const Value x = g.input("x", f32());
  Graph vjp("vjp");
  const Value primal = vjp.input("d_output", f32());
  vjp.input("y", f32(), {Kind::PrimalOutput, 0});
  vjp.input("up", f32(), {Kind::DOutput, 0});
  vjp.set_outputs({primal});
  g.set_outputs({custom_fn(std::array{x}, [](Graph&, Inputs in) { return Values{in[0]}; },
                           {.vjp_body = std::make_shared<const Graph>(std::move(vjp))})});
  EXPECT_NE(print(g).find("role = none"), std::string::npos);
  expect_round_trip(g);
}

TEST(InputRoles, ConventionalNames) {
  EXPECT_EQ(op::implied_role("d_output_12"), (op::InputRole{Kind::DOutput, 12}));
  EXPECT_EQ(op::conventional_name({Kind::Tangent, 3}), "tangent_3");
  for (const char* ordinary : {"", "x", "tangent", "residual", "none", "d_output_", "d_output_x",
                               "d_output_-1", "d_output1", "my_d_output"}) {
    EXPECT_EQ(op::implied_role(ordinary), op::InputRole{}) << ordinary;
  }
}

TEST(ControlAliases, PrintAsTheOpTheyBuild) {
  const Graph g = parse_graph(R"(graph @g {
  %x = input "x" : f32[]
  %xs = input "xs" : f32[3]
  %a, %n, %t = while_taped %x {max_iterations = 4} cond {
    %c = input "c" : f32[]
    return %c
  } body {
    %c = input "c" : f32[]
    return %c
  }
  %traj = scan_trajectory %x, %xs {length = 3, num_xs = 1} body {
    %c = input "c" : f32[]
    %v = input "v" : f32[]
    %m = mul %c, %v
    return %m
  }
  %dx = scan_backward_xs %x, %traj, %a, %xs {length = 3, num_xs = 1, xs_idx = 0} body_vjp {
    %c = input "c" : f32[]
    %v = input "v" : f32[]
    %d = input "d_output" : f32[]
    %dc = mul %d, %v
    %dv = mul %d, %c
    return %dc, %dv
  }
  return %t, %traj, %dx
})");
  expect_round_trip(g);
  const std::string text = print(g);
  EXPECT_NE(text.find("%a, %n, %t = while %x"), std::string::npos) << text;
  EXPECT_NE(text.find("save_trajectory = true"), std::string::npos);
  EXPECT_NE(text.find("_, %dx = scan_backward"), std::string::npos);
}

TEST(ControlAliases, ScanBuilderNamesPresetAttributes) {
  const std::string row = R"( body {
    %c = input "c" : f32[]
    %v = input "v" : f32[]
    %m = mul %c, %v
    return %m
  })";
  const std::string backward = R"( body_vjp {
    %c = input "c" : f32[]
    %v = input "v" : f32[]
    %d = input "d_output" : f32[]
    %dc = mul %d, %v
    %dv = mul %d, %c
    return %dc, %dv
  } forward_body {
    %c = input "c" : f32[]
    %v = input "v" : f32[]
    %m = mul %c, %v
    return %m
  })";
  const auto read = [&](const std::string& checkpoints) {
    return parse_graph(R"(graph @g {
  %x = input "x" : f32[]
  %xs = input "xs" : f32[3]
  %k = input "k" : f32[1]
  %a = scan_with_xs %x, %xs {length = 3})" +
                       row + R"(
  %b = scan_with_bcasts_and_xs %x, %x, %xs {length = 3, num_bcast = 1} body {
    %c = input "c" : f32[]
    %w = input "w" : f32[]
    %v = input "v" : f32[]
    %m = mul %c, %v
    return %m
  }
  %c = scan_checkpointed %x, %xs {length = 3, num_xs = 1, num_checkpoints = 1})" +
                       row +
                       "\n  %dc = scan_backward_with_checkpoints %x, %k, %a, %xs {length = "
                       "3, num_xs = 1" +
                       checkpoints + "}" + backward +
                       "\n  %dx = scan_backward_xs_with_checkpoints %x, %k, %a, %xs {length = "
                       "3, num_xs = 1, xs_idx = 0" +
                       checkpoints + "}" + backward + "\n  return %a, %b, %c, %dc, %dx\n}");
  };
  const Graph g = read(", num_checkpoints = 1");
  expect_round_trip(g);
  const std::string text = print(g);
  EXPECT_NE(text.find("%a = scan %x, %xs {length = 3, num_xs = 1}"), std::string::npos) << text;
  EXPECT_NE(text.find("%b = scan %x, %x, %xs {length = 3, num_bcast = 1, num_xs = 1}"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("%dc, _ = scan_backward"), std::string::npos) << text;
  EXPECT_NE(text.find("_, %dx = scan_backward"), std::string::npos) << text;
  EXPECT_EQ(code_of([&] { (void)read(""); }), "attr");
}

TEST(ControlAliases, RefuseAnXsThatHasNoGradient) {
  const auto with = [](const std::string& dtype, const std::string& index) {
    return code_of([&] {
      (void)parse_graph("graph @g {\n  %x = input \"x\" : f32[]\n  %t = input \"t\" : f32[3]\n"
                        "  %k = input \"k\" : " +
                        dtype +
                        "[3]\n  %d = scan_backward_xs %x, %t, %x, %k {length = 3, num_xs = 1, "
                        "xs_idx = " +
                        index +
                        "} body_vjp {\n  %c = input \"c\" : f32[]\n  %v = input \"v\" : " + dtype +
                        "[]\n  %d = input \"d_output\" : f32[]\n  return %d\n  }\n  return %d\n}");
    });
  };
  EXPECT_EQ(with("i32", "0"), "dtype");
  EXPECT_EQ(with("f32", "1"), "attr");
  EXPECT_EQ(with("f32", "-1"), "attr");
  EXPECT_EQ(with("f32", "true"), "attr");
  EXPECT_EQ(with("f32", "0"), "shape.scan_backward_c9");
}

// x ↦ factor·x
class Scale final : public CustomOp {
 public:
  Scale(std::int64_t version, double factor) : version_(version), factor_(factor) {}
  [[nodiscard]] std::string name() const override { return "scale"; }
  [[nodiscard]] std::int64_t version() const override { return version_; }
  [[nodiscard]] std::optional<std::size_t> num_inputs() const override { return 1; }
  [[nodiscard]] std::vector<Type> infer(std::span<const Type> operands,
                                        const Bytes&) const override {
    return {operands[0]};
  }
  void eval(const Bytes&, EvalContext& c) const override {
    RealNd x = c.real(0);
    for (double& v : x.data) v *= factor_;
    c.give(0, x);
  }

 private:
  std::int64_t version_;
  double factor_;
};

double run_scale(const Registry& registry, std::int64_t version) {
  Graph g("g", registry);
  const Value x = g.input("x", f64());
  g.set_outputs(custom_op("scale", {}, std::array{x}, version));
  expect_round_trip(g);
  return interpret(g, {{"x", Tensor::splat(f64(), 1.0)}})[0].item();
}

// [custom-versioned]
TEST(CustomOps, RegistryKeepsVersionsApart) {
  Registry registry;
  registry.add(std::make_shared<Scale>(1, 2));
  registry.add(std::make_shared<Scale>(2, 3));
  EXPECT_EQ(run_scale(registry, 1), 2);
  EXPECT_EQ(run_scale(registry, 2), 3);
  EXPECT_EQ(code_of([&] { registry.add(std::make_shared<Scale>(1, 5)); }), "name");
  registry.add(std::make_shared<Scale>(1, 5), true);
  EXPECT_EQ(run_scale(registry, 1), 5);
  EXPECT_EQ(registry.list().size(), 2U);
  EXPECT_EQ(registry.find("scale", 3), nullptr);
  EXPECT_THROW((void)registry.find_or_throw("scale", 3), UserError);
  EXPECT_EQ(code_of([&] { (void)run_scale(registry, 3); }), "name.custom_c1");
}

TEST(CustomOps, ALocalRegistryIsNotTheDefault) {
  Registry registry;
  registry.add(std::make_shared<Scale>(1, 2));
  const std::string text =
      "graph @g {\n  %x = input \"x\" : f64[]\n  %y = custom \"scale\" %x\n  return %y\n}\n";
  EXPECT_EQ(parse_graph(text, {.registry = &registry}).size(), 2U);
  EXPECT_EQ(code_of([&] { (void)parse_graph(text); }), "name.custom_c1");
  EXPECT_EQ(code_of([&] { (void)run_scale(global_registry(), 1); }), "name.custom_c1");
}

TEST(CustomOps, PackedBuilderAssertsTheType) {
  Registry registry;
  registry.add(std::make_shared<Scale>(1, 2));
  Graph g("g", registry);
  const Value x = g.input("x", f64({3}));
  const Value s = g.input("s", f64());
  EXPECT_EQ(custom_op_packed("scale", {}, std::array{x}, f64({3})).type(), f64({3}));
  EXPECT_EQ(custom_op_packed("scale", {}, std::array{s}, f64({1})).type(), f64());
  EXPECT_EQ(code_of([&] { (void)custom_op_packed("scale", {}, std::array{x}, f64({4})); }),
            "shape");
  EXPECT_EQ(code_of([&] { (void)custom_op("scale", {}, std::array{x, s}); }), "attr.custom_c2");
}

TEST(CustomOps, LookUpsAndRegistrationsMayRunConcurrently) {
  Registry registry;
  registry.add(std::make_shared<Scale>(0, 1));
  std::atomic<int> found = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 200; ++i) {
          if (t == 0) registry.add(std::make_shared<Scale>(i + 1, 1));
          if (t == 1) registry.add(std::make_shared<Scale>(0, i), true);
          found += registry.find("scale", 0) != nullptr && !registry.list().empty() ? 1 : 0;
        }
      });
    }
  }
  EXPECT_EQ(found, 800);
  EXPECT_EQ(registry.list().size(), 201U);
}

}  // namespace
}  // namespace ricci::testing::control_custom_test
