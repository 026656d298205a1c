#include "workloads/training.h"

#include <cmath>

#include "ricci/build/build.h"
#include "ricci/build/gaussian_splat.h"
#include "ricci/compiler/rewrite/cleanup.h"
#include "ricci/compiler/rewrite/precision.h"
#include "ricci/model/optimizer.h"
#include "ricci/op/leaf.h"
#include "ricci/transform/grad.h"

namespace ricci::bench {
namespace {

std::vector<std::string> param_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const NodeId id : graph.params()) names.push_back(graph.node(id).op.as<op::Param>()->name);
  return names;
}

// A dense layer whose outputs keep the size of its inputs.
Value linear(Draft& draft, const std::string& name, Value x, std::int64_t in, std::int64_t out) {
  const double scale = 1 / std::sqrt(static_cast<double>(in));
  const Value w = draft.param(name + ".w", f32({in, out}), FeedRule::normal(scale));
  const Value b = draft.param(name + ".b", f32({out}), FeedRule::normal(0.01));
  return matmul(x, w) + b;
}

// A loss with its gradients and an AdamW update of every param; `given` takes what is told about
// the step's inputs and outputs.
Graph trained(const Graph& loss, Workload& given) {
  const std::vector<std::string> params = param_names(loss);
  const std::vector<ValueRef> wrt(params.begin(), params.end());
  Graph g = value_and_grad(loss, wrt).graph;
  const std::vector<Value> loss_and_gradients = g.output_values();

  const AdamW settings;
  const Value count = g.input("step", f32({})) + 1.0;
  const OptimizerStep step =
      next_step(settings, count, filled(g, f32({}), learning_rate(settings)));
  given.feeds.emplace("step", FeedRule::constant(3));
  std::vector<Value> outputs = {loss_and_gradients[0], count};
  given.outputs = {"loss", "step"};
  given.donated = {{1, "step"}};
  const auto give = [&](Value next, const std::string& input) {
    given.donated.push_back({outputs.size(), input});
    outputs.push_back(next);
    given.outputs.push_back(input);
  };
  for (std::size_t i = 0; i < params.size(); ++i) {
    const Value p = g.value({g.find_or_throw(params[i]), 0});
    const std::string first = "m." + params[i];
    const std::string second = "v." + params[i];
    const OptimizerUpdate before = {p, {g.param(first, p.type()), g.param(second, p.type())}};
    // State as after some steps, so that no element is zero or about to underflow.
    given.feeds.emplace(first, FeedRule::normal(1e-4));
    given.feeds.emplace(second, FeedRule::uniform(1e-6, 2e-6));
    const OptimizerUpdate next = updated(settings, before, loss_and_gradients[i + 1], step);
    give(next.param, params[i]);
    give(next.state[0], first);
    give(next.state[1], second);
  }
  g.set_outputs(outputs);
  return dead_code_elimination(g).graph;
}

Workload train(std::string name, Draft draft) {
  Workload w{.name = std::move(name),
             .graph = Graph(draft.graph.name()),
             .outputs = {},
             .donated = {},
             .feeds = std::move(draft.feeds),
             .settings = {}};
  w.graph = trained(draft.graph, w);
  // The policy is the loss's: gradients are of what it made, and the optimiser is left alone.
  w.trained_in = [loss = std::move(draft.graph)](const PrecisionPolicy& policy) {
    Workload told;
    return trained(auto_mixed_precision(loss, policy).graph, told);
  };
  return w;
}

struct MlpSizes {
  std::int64_t batch = 128;
  std::vector<std::int64_t> widths = {784, 512, 512, 10};
};

MlpSizes mlp_sizes(Scale scale) {
  return scale != Scale::Small ? MlpSizes{} : MlpSizes{.batch = 6, .widths = {12, 8, 8, 5}};
}

struct GptSizes {
  std::int64_t layers = 4;
  std::int64_t heads = 4;
  std::int64_t width = 256;
  std::int64_t vocabulary = 512;
  std::int64_t batch = 4;
  std::int64_t length = 128;
};

GptSizes gpt_sizes(Scale scale) {
  if (scale == Scale::Gpu) {
    return {
        .layers = 12, .heads = 12, .width = 768, .vocabulary = 50304, .batch = 16, .length = 1024};
  }
  if (scale != Scale::Small) return {};
  return {.layers = 2, .heads = 2, .width = 8, .vocabulary = 11, .batch = 2, .length = 6};
}

Value norm(Draft& draft, const std::string& name, Value x, std::int64_t width) {
  const Value gamma = draft.param(name + ".gamma", f32({width}), FeedRule::normal(0.1, 1));
  const Value beta = draft.param(name + ".beta", f32({width}), FeedRule::normal(0.1));
  return layer_norm(x, gamma, beta);
}

Value gpt_block(Draft& draft, const std::string& name, Value x, const GptSizes& s) {
  const Value qkv =
      linear(draft, name + ".qkv", norm(draft, name + ".norm1", x, s.width), s.width, 3 * s.width);
  const auto part = [&](std::int64_t i) {
    return narrow(qkv, {.axis = 2, .start = i * s.width, .len = s.width});
  };
  const Value mixed = attention(
      part(0), part(1), part(2),
      {.num_heads = s.heads, .head_dim = s.width / s.heads, .mask_kind = MaskKind::causal()});
  x = x + linear(draft, name + ".proj", mixed, s.width, s.width);
  const Value up =
      linear(draft, name + ".up", norm(draft, name + ".norm2", x, s.width), s.width, 4 * s.width);
  return x + linear(draft, name + ".down", gelu_approx(up), 4 * s.width, s.width);
}

struct CnnSizes {
  std::int64_t batch = 32;
  std::int64_t image = 32;
  std::vector<std::int64_t> channels = {3, 32, 64, 128};
  std::int64_t classes = 10;
};

CnnSizes cnn_sizes(Scale scale) {
  if (scale == Scale::Gpu) return {.batch = 256};
  if (scale != Scale::Small) return {};
  return {.batch = 2, .image = 8, .channels = {3, 4, 5, 6}, .classes = 4};
}

}  // namespace

Draft mlp_loss(Scale scale) {
  const MlpSizes s = mlp_sizes(scale);
  Draft draft("mlp");
  Value h = draft.input("x", f32({s.batch, s.widths.front()}), FeedRule::normal(1));
  const Value labels = draft.input("labels", i32({s.batch}), FeedRule::integer(s.widths.back()));
  for (std::size_t i = 1; i < s.widths.size(); ++i) {
    h = linear(draft, "layer" + std::to_string(i), h, s.widths[i - 1], s.widths[i]);
    if (i + 1 < s.widths.size()) h = relu(h);
  }
  draft.graph.set_outputs({mean(softmax_cross_entropy_with_logits(h, labels))});
  return draft;
}

Workload mlp_train(Scale scale) { return train("mlp_train", mlp_loss(scale)); }

namespace {

Workload gpt_of(const GptSizes& s) {
  Draft draft("gpt");
  const Value ids = draft.input("ids", i32({s.batch, s.length}), FeedRule::integer(s.vocabulary));
  const Value labels =
      draft.input("labels", i32({s.batch, s.length}), FeedRule::integer(s.vocabulary));
  const Value tokens = draft.param("tokens", f32({s.vocabulary, s.width}), FeedRule::normal(0.1));
  const Value positions = draft.param("positions", f32({s.length, s.width}), FeedRule::normal(0.1));
  Value x = gather(tokens, ids) + positions;
  for (std::int64_t i = 0; i < s.layers; ++i) {
    x = gpt_block(draft, "block" + std::to_string(i), x, s);
  }
  const Value logits =
      linear(draft, "head", norm(draft, "norm", x, s.width), s.width, s.vocabulary);
  draft.graph.set_outputs({mean(softmax_cross_entropy_with_logits(logits, labels))});
  Workload w = train("gpt_train", std::move(draft));
  w.settings = {{"layers", s.layers}, {"heads", s.heads}};
  return w;
}

}  // namespace

Workload gpt_train(Scale scale) { return gpt_of(gpt_sizes(scale)); }

Workload gpt2_train(std::int64_t layers) {
  return gpt_of({.layers = layers,
                 .heads = 12,
                 .width = 768,
                 .vocabulary = 50257,
                 .batch = 1,
                 .length = 1024});
}

Workload cnn_train(Scale scale) {
  const CnnSizes s = cnn_sizes(scale);
  Draft draft("cnn");
  Value h =
      draft.input("x", f32({s.batch, s.channels.front(), s.image, s.image}), FeedRule::normal(1));
  const Value labels = draft.input("labels", i32({s.batch}), FeedRule::integer(s.classes));
  std::int64_t size = s.image;
  for (std::size_t i = 1; i < s.channels.size(); ++i) {
    const std::string name = "conv" + std::to_string(i);
    const std::int64_t in = s.channels[i - 1];
    const std::int64_t out = s.channels[i];
    const double scaling = 1 / std::sqrt(9.0 * static_cast<double>(in));
    const Value w = draft.param(name + ".w", f32({out, in, 3, 3}), FeedRule::normal(scaling));
    const Value b = draft.param(name + ".b", f32({out}), FeedRule::normal(0.01));
    h = relu(conv(h, w, {.padding = {1, 1}}) + reshape_to(b, {out, 1, 1}));
    h = pool(h, {.kind = ReduceKind::Max, .kernel_size = {2, 2}, .stride = {2, 2}});
    size /= 2;
  }
  const std::int64_t features = s.channels.back() * size * size;
  const Value logits =
      linear(draft, "dense", reshape_to(h, {s.batch, features}), features, s.classes);
  draft.graph.set_outputs({mean(softmax_cross_entropy_with_logits(logits, labels))});
  return train("cnn_train", std::move(draft));
}

Workload splat_step(Scale scale) {
  const bool full = scale != Scale::Small;
  const std::int64_t count = full ? 10'000 : 12;
  const std::int64_t side = full ? 256 : 20;
  const std::int64_t coefficients = 4;
  const GaussianSplatRenderParams params = {.width = side,
                                            .height = side,
                                            .radius_scale = 1,
                                            .max_splat_steps = 0,
                                            .transmittance_threshold = 1e-4,
                                            .max_list_entries = full ? 500'000 : 0,
                                            .opacity_space = OpacitySpace::Logit};
  Draft draft("splats");
  const Value target = draft.input("target", f32({side * side * 4}), FeedRule::uniform(0, 1));
  const double size = full ? -3.5 : -1.5;
  const GaussianSplatInputs scene = {
      .positions = draft.param("positions", f32({3 * count}), FeedRule::uniform(-1, 1)),
      .scales = draft.param("scales", f32({3 * count}), FeedRule::normal(0.4, size)),
      .rotations = draft.param("rotations", f32({4 * count}), FeedRule::normal(1)),
      .opacities = draft.param("opacities", f32({count}), FeedRule::normal(1)),
      .colors = filled(draft.graph, f32({3 * count}), 0),
      .sh_coeffs = draft.param("sh", f32({3 * count * coefficients}), FeedRule::normal(0.3)),
      .meta = gaussian_splat_render_meta(
          draft.graph,
          {.position = {0.3, 0.2, -4}, .field_of_view = 45, .background = {0.1, 0.2, 0.3}},
          params)};
  const Value image = gaussian_splat_render(scene, params);
  draft.graph.set_outputs({mean(square(image - target))});
  Workload workload = train("splat_step", std::move(draft));
  workload.settings = {{"width", side}, {"height", side}, {"tile", params.tile_size}};
  return workload;
}

}  // namespace ricci::bench
