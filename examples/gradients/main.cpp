// Gradients and other transforms, as docs/tutorials/gradients.md tells it: a small network is
// trained, then looked at from several sides.
#include <cmath>
#include <cstdio>

#include "ricci/array.h"
#include "ricci/compiler.h"
#include "ricci/graph.h"
#include "ricci/ricci.h"

using namespace ricci;  // NOLINT: an example reads better without prefixes

namespace {

constexpr int Points = 8;

// Arrays: functions are differentiated as they stand.
struct Curve {
  Array w1 = normal(Key(1), {1, 6}), b1 = zeros({6}), w2 = normal(Key(2), {6, 1}, 0, 0.5);
  Array operator()(const Array& x) const { return matmul(tanh(matmul(x, w1) + b1), w2); }
};

void with_arrays() {
  const Array x = expand_dims(linspace(-1, 1, Points), 1);
  const Array t = sin(3 * x);
  const auto error = [&](const Curve& curve) { return mse(curve(x), t); };
  const auto step = jit([&](const Curve& curve) {
    const auto [value, g] = value_and_grad(error)(curve);
    return std::pair{value, tree_map([](Array p, Array d) { return p - 0.1 * d; }, curve, g)};
  });
  Curve curve;
  Array value;
  for (int i = 0; i <= 400; ++i) std::tie(value, curve) = step(curve);
  std::printf("with arrays: loss %.6f\n", value.item());
  // Per example, and along a direction.
  const Array each =
      vmap([&](Array a) { return grad([&](Array v) { return sum(curve(v)); })(a); })(x);
  const Curve bent = hvp(error)(curve, curve);
  std::printf("slope at the first point %.3f, curvature by b1[0] %.3f\n", each[0].item(),
              bent.b1[0].item());
}

// Fits a curve: t ≈ w2ᵀ tanh(w1 x + b1), by the mean of squared errors.
Graph make_loss() {
  Graph g("loss");
  const Value x = g.input("x", f64({Points, 1}));
  const Value t = g.input("t", f64({Points, 1}));
  const Value w1 = g.param("w1", f64({1, 6}));
  const Value b1 = g.param("b1", f64({6}));
  const Value w2 = g.param("w2", f64({6, 1}));
  const Value y = matmul(tanh(matmul(x, w1) + b1), w2).named("y");
  g.set_outputs({{"loss", mean(square(y - t))}, {"y", y}});
  return g;
}

Feeds make_feeds() {
  std::vector<double> x;
  std::vector<double> t;
  for (int i = 0; i < Points; ++i) {
    x.push_back(-1 + 2.0 * i / (Points - 1));
    t.push_back(std::sin(3 * x.back()));
  }
  return {{"x", Tensor::of<double>({Points, 1}, x)},
          {"t", Tensor::of<double>({Points, 1}, t)},
          {"w1", Tensor::of<double>({1, 6}, {0.9, -0.4, 1.3, 0.2, -1.1, 0.6})},
          {"b1", Tensor::of<double>({6}, {0.1, -0.3, 0.2, 0.5, -0.2, 0.0})},
          {"w2", Tensor::of<double>({6, 1}, {0.3, -0.2, 0.5, 0.1, -0.6, 0.4})}};
}

Tensor descend(const Tensor& value, const Tensor& gradient, double rate) {
  std::vector<double> at = value.numbers<double>();
  const std::vector<double> along = gradient.numbers<double>();
  for (std::size_t i = 0; i < at.size(); ++i) at[i] -= rate * along[i];
  return Tensor::of<double>(value.dims(), at);
}

void train(const Graph& loss, Feeds& feeds) {
  const std::vector<std::string> weights = {"w1", "b1", "w2"};
  const Transformed g = value_and_grad(loss, {"w1", "b1", "w2"});
  for (int step = 0; step <= 400; ++step) {
    const Outputs out = interpret(g.graph, feeds);  // loss, y, dw1, db1, dw2
    if (step % 100 == 0) std::printf("step %3d  loss %.6f\n", step, out["loss"].item());
    for (const std::string& w : weights) {
      feeds[w] = descend(feeds[w], out["gradient of " + w], 0.1);
    }
  }
}

// How the loss moves when b1 moves by ones.
void move_along(const Graph& loss, Feeds feeds) {
  const Transformed j = jvp(loss, {"b1"});
  feeds[j.names.at("tangent_b1")] = Tensor::splat(f64({6}), 1.0);
  const std::vector<Tensor> out = interpret(j.graph, feeds);  // loss, y, t_loss, t_y
  std::printf("d loss along b1 = %.6f\n", out[2].item());
}

void curve_along(const Graph& loss, Feeds feeds) {
  const Transformed h = hvp(loss, {"b1"});
  feeds[h.names.at("tangent_b1")] = Tensor::splat(f64({6}), 1.0);
  const std::vector<Tensor> out = interpret(h.graph, feeds);  // loss, y, db1, t_loss, t_y, H·v
  std::printf("H·v by b1 = %s\n", out[5].to_string().c_str());
}

// One gradient per example instead of their sum: a gradient, then a batch of it.
void per_example() {
  Graph g("error");
  const Value x = g.input("x", f64({3}));
  const Value t = g.input("t", f64());
  const Value w = g.param("w", f64({3}));
  g.set_outputs({square(sum(x * w) - t)});

  const Transformed one = grad(g, {"w"});
  const Transformed many = vmap(one.graph, {"x", "t"}, 2);
  const std::vector<Tensor> out =
      interpret(many.graph, {{"x", Tensor::of<double>({2, 3}, {1, 0, 2, 0, 1, 1})},
                             {"t", Tensor::of<double>({2}, {1, 0})},
                             {"w", Tensor::of<double>({3}, {0.5, 0.5, 0.5})}});
  std::printf("dw of each example = %s\n", out[0].to_string().c_str());
}

// The identity, whose gradient is kept within [-1, 1].
Value clip_gradient(Value x) {
  return custom_fn(std::array{x},
                   [](Graph&, std::span<const Value> in) { return std::vector{in[0]}; },
                   {.vjp = [](Graph&, const VjpInputs& in) {
                     return std::vector{min(max(in.d_outputs[0], -1.0), 1.0)};
                   }});
}

void own_gradient() {
  Graph g("steep");
  const Value x = g.input("x", f64({2}));
  g.set_outputs({sum(clip_gradient(x) * g.constant(Tensor::of<double>({2}, {100, 0.5})))});
  const Transformed v = value_and_grad(g, {"x"});
  const std::vector<Tensor> out = interpret(v.graph, {{"x", Tensor::splat(f64({2}), 2.0)}});
  std::printf("clipped gradient = %s\n", out[1].to_string().c_str());
}

// An op registered at run time, x³, with a rule for each transform.
class Cube final : public CustomOp {
 public:
  [[nodiscard]] std::string name() const override { return "cube"; }
  [[nodiscard]] std::optional<std::size_t> num_inputs() const override { return 1; }
  [[nodiscard]] std::vector<Type> infer(std::span<const Type> operands,
                                        const Bytes&) const override {
    return {operands[0]};
  }
  void eval(const Bytes&, EvalContext& c) const override {
    RealNd x = c.real(0);
    for (double& v : x.data) v = v * v * v;
    c.give(0, x);
  }
  // dx = 3x²·dy
  [[nodiscard]] std::vector<Value> vjp(const Bytes&, const VjpContext& c) const override {
    return {3.0 * square(c[0]) * c.cotangent()};
  }
  [[nodiscard]] std::vector<Value> jvp(const Bytes&, JvpContext& c) const override {
    return {3.0 * square(c[0]) * c.tangent(0)};
  }
  // Element by element, so that the op takes a batch as it is.
  [[nodiscard]] std::vector<BatchedValue> vmap(const Bytes&, const VmapContext& c) const override {
    return {custom_op("cube", {}, std::array{c[0]})[0]};
  }
};

void registered_op() {
  global_registry().add(std::make_shared<const Cube>());
  Graph g("cubes");
  const Value x = g.input("x", f64({2}));
  g.set_outputs({sum(custom_op("cube", {}, std::array{x})[0])});
  const DerivativeReport report =
      check_derivatives(g, {"x"}, {{"x", Tensor::of<double>({2}, {1, -2})}}, {.order = 2});
  std::printf("%s", report.to_string().c_str());
}

}  // namespace

int main() {
  with_arrays();
  const Graph loss = make_loss();
  Feeds feeds = make_feeds();
  train(loss, feeds);
  move_along(loss, feeds);
  curve_along(loss, feeds);
  per_example();
  own_gradient();
  registered_op();

  // Nothing is silently constant.
  try {
    Graph cut("cut");
    const Value x = cut.input("x", f64({2}));
    cut.set_outputs({sum(exp(stop_gradient(x)))});
    (void)grad(cut, {"x"});
  } catch (const UserError& e) {
    std::printf("\n%s\n", e.what());
  }
}
