#include "workloads/sequences.h"

#include "ricci/build/build.h"
#include "ricci/build/reduce.h"
#include "ricci/build/select.h"

#include "workloads/gradients.h"

namespace ricci::bench {
namespace {

Draft causal_attention(Scale scale, std::int64_t batch, std::int64_t length) {
  const bool full = scale != Scale::Small;
  const std::int64_t heads = full ? 8 : 2;
  const std::int64_t head_size = full ? 64 : 4;
  const Type type = f32({batch, heads, full ? length : 9, head_size});
  Draft draft("attention");
  const Value q = draft.input("q", type, FeedRule::normal(1));
  const Value k = draft.input("k", type, FeedRule::normal(1));
  const Value v = draft.input("v", type, FeedRule::normal(1));
  draft.graph.set_outputs({attention(q, k, v,
                                     {.num_heads = heads,
                                      .head_dim = head_size,
                                      .mask_kind = MaskKind::causal(),
                                      .layout = AttentionLayout::Bhsd})});
  return draft;
}

Workload running_sums(std::string name, Scale scale, std::int64_t axis) {
  const bool full = scale != Scale::Small;
  Draft draft(name);
  const Type type = f32({full ? 4096 : 7, full ? 2048 : 11});
  draft.graph.set_outputs({cumsum(draft.input("x", type, FeedRule::normal(1)), {.axis = axis})});
  return finished(std::move(name), std::move(draft), {"y"});
}

}  // namespace

Workload selective_scan_grad(Scale scale) {
  const bool full = scale != Scale::Small;
  const std::int64_t length = full ? 256 : 7;
  const std::int64_t channels = full ? 256 : 5;
  const std::int64_t states = full ? 16 : 3;
  Draft draft("selective_scan");
  const Type rows = f32({2, length, channels});
  const Value x = draft.input("x", rows, FeedRule::normal(1));
  const Value delta = draft.input("delta", rows, FeedRule::uniform(0.001, 0.1));
  const Value a = draft.param("a", f32({channels, states}), FeedRule::uniform(-16, -1));
  const Value b = draft.input("b", f32({2, length, states}), FeedRule::normal(1));
  const Value c = draft.input("c", f32({2, length, states}), FeedRule::normal(1));
  draft.graph.set_outputs({selective_scan(x, delta, a, b, c, {.state_size = states})});
  return gradients("selective_scan_grad", std::move(draft), {"x", "delta", "a", "b", "c"});
}

Workload gated_delta_grad(Scale scale) {
  const bool full = scale != Scale::Small;
  const std::int64_t length = full ? 256 : 7;
  const std::int64_t heads = full ? 4 : 2;
  const std::int64_t width = full ? 64 : 3;
  Draft draft("gated_delta");
  const Type rows = f32({1, length, heads, width});
  const Type gates = f32({1, length, heads});
  const Value q = draft.input("q", rows, FeedRule::normal(0.125));
  const Value k = draft.input("k", rows, FeedRule::normal(0.125));
  const Value v = draft.input("v", rows, FeedRule::normal(1));
  const Value g = draft.input("g", gates, FeedRule::uniform(-0.5, 0));
  const Value beta = draft.input("beta", gates, FeedRule::uniform(0, 1));
  draft.graph.set_outputs({gated_delta_net(q, k, v, g, beta, {.state_size = width})});
  return gradients("gated_delta_grad", std::move(draft), {"q", "k", "v", "g", "beta"});
}

Workload attention_grad(Scale scale) {
  return gradients("attention_grad", causal_attention(scale, 2, 512), {"q", "k", "v"});
}

Workload attention_2048(Scale scale) {
  return finished("attention_2048", causal_attention(scale, 1, 2048), {"y"});
}

Workload attention_2048_grad(Scale scale) {
  return gradients("attention_2048_grad", causal_attention(scale, 1, 2048), {"q", "k", "v"});
}

Workload sort_million(Scale scale) {
  Draft draft("sort");
  const Type type = f32({scale != Scale::Small ? 1000000 : 1000});
  const auto [values, indices] = sort(draft.input("x", type, FeedRule::normal(1)));
  draft.graph.set_outputs({values, indices});
  return finished("sort", std::move(draft), {"values", "indices"});
}

Workload top_k_50(Scale scale) {
  const bool full = scale != Scale::Small;
  Draft draft("top_k");
  const Type type = f32({full ? 256 : 3, full ? 32000 : 400});
  const std::int64_t k = full ? 50 : 5;
  const auto [values, indices] = top_k(draft.input("x", type, FeedRule::normal(1)), {.k = k});
  draft.graph.set_outputs({values, indices});
  Workload w = finished("top_k", std::move(draft), {"values", "indices"});
  w.settings = {{"k", k}};
  return w;
}

Workload cumsum_rows(Scale scale) { return running_sums("cumsum_rows", scale, 1); }
Workload cumsum_columns(Scale scale) { return running_sums("cumsum_columns", scale, 0); }

Workload rng_normal_4m(Scale scale) {
  const std::int64_t count = scale != Scale::Small ? 4000000 : 100;
  Draft draft("rng_normal");
  draft.graph.set_outputs({rng_normal(draft.graph, {.shape = Dims{count}})});
  Workload w = finished("rng_normal", std::move(draft), {"random"});
  w.settings = {{"count", count}};
  return w;
}

}  // namespace ricci::bench
