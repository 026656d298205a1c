#include "model.h"

#include <cmath>
#include <random>
#include <string>

namespace gpt {
namespace {

using namespace ricci;  // NOLINT: models read better without prefixes

// Params are made where they are used and named after their place in the model.
Value linear(const std::string& name, Value x, std::int64_t in, std::int64_t out) {
  Graph& g = x.graph();
  return matmul(x, g.param(name + ".w", f32({in, out}))) + g.param(name + ".b", f32({out}));
}

Value norm(const std::string& name, Value x, std::int64_t width) {
  Graph& g = x.graph();
  return layer_norm(x, g.param(name + ".gamma", f32({width})),
                    g.param(name + ".beta", f32({width})));
}

// Every position looks at those before it, with several heads.
Value self_attention(const std::string& name, Value x, const Sizes& s) {
  const Value qkv = linear(name + ".qkv", x, s.width, 3 * s.width);
  const auto part = [&](std::int64_t i) {
    return narrow(qkv, {.axis = 2, .start = i * s.width, .len = s.width});
  };
  const Value mixed = attention(
      part(0), part(1), part(2),
      {.num_heads = s.heads, .head_dim = s.width / s.heads, .mask_kind = MaskKind::causal()});
  return linear(name + ".out", mixed, s.width, s.width);
}

Value feed_forward(const std::string& name, Value x, const Sizes& s) {
  const Value hidden = gelu_approx(linear(name + ".up", x, s.width, 4 * s.width));
  return linear(name + ".down", hidden, 4 * s.width, s.width);
}

Value block(const std::string& name, Value x, const Sizes& s) {
  x = x + self_attention(name + ".attention", norm(name + ".norm1", x, s.width), s);
  return x + feed_forward(name + ".mlp", norm(name + ".norm2", x, s.width), s);
}

Value logits(Graph& g, const Sizes& s, std::int64_t batch) {
  const Value ids = g.input("ids", i32({batch, s.context}));
  const Value characters = g.param("characters", f32({s.vocabulary, s.width}));
  const Value positions = g.param("positions", f32({s.context, s.width}));
  Value x = gather(characters, ids) + positions;
  for (std::int64_t i = 0; i < s.layers; ++i) x = block("block" + std::to_string(i), x, s);
  return linear("head", norm("norm", x, s.width), s.width, s.vocabulary);
}

}  // namespace

Graph make_model(const Sizes& sizes, std::int64_t batch) {
  Graph g("gpt");
  g.set_outputs({logits(g, sizes, batch)});
  return g;
}

Graph make_loss(const Sizes& sizes, std::int64_t batch) {
  Graph g("gpt_loss");
  const Value predicted = logits(g, sizes, batch);
  const Value labels = g.input("labels", i32({batch, sizes.context}));
  g.set_outputs({mean(softmax_cross_entropy_with_logits(predicted, labels))});
  return g;
}

// Matrices small and random, scales one, shifts zero.
Feeds initial_params(const Sizes& sizes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const Graph model = make_model(sizes, 1);
  Feeds params;
  for (const NodeId id : model.params()) {
    const auto& [name, type] = *model.node(id).op.as<op::Param>();
    if (type.rank() == 1) {
      params[name] = Tensor::splat(type, name.ends_with(".gamma") ? 1.0 : 0.0);
      continue;
    }
    // What is added to the stream is smaller the more layers add to it.
    const bool adds = name.ends_with(".out.w") || name.ends_with(".down.w");
    const double layers = static_cast<double>(sizes.layers);
    std::normal_distribution<double> number(0, adds ? 0.05 / std::sqrt(2 * layers) : 0.05);
    std::vector<double> numbers(static_cast<std::size_t>(Tensor::zeros(type).numel()));
    for (double& x : numbers) x = number(random);
    params[name] = Tensor::from_numbers<double>(type, numbers);
  }
  return params;
}

}  // namespace gpt
