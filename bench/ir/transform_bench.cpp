// How long transforms take to build their graphs.
#include <benchmark/benchmark.h>

#include "ricci/build/build.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/higher_order.h"
#include "ricci/transform/vmap.h"

namespace ricci {
namespace {

constexpr std::int64_t Width = 256;
constexpr std::int64_t Heads = 4;
constexpr std::int64_t Vocabulary = 512;

// A decoder-only transformer with pre-normalisation and a mean cross-entropy loss.
Graph transformer(int layers) {
  Graph g("transformer");
  const Value ids = g.input("ids", i32({4, 128}));
  const Value labels = g.input("labels", i32({4, 128}));
  int next = 0;
  const auto weight = [&](const Dims& dims) {
    return g.param("p" + std::to_string(next++), f32(dims));
  };
  const auto linear = [&](Value x, std::int64_t in, std::int64_t out) {
    return matmul(x, weight({in, out})) + weight({out});
  };
  const auto norm = [&](Value x) { return layer_norm(x, weight({Width}), weight({Width})); };
  Value x = gather(weight({Vocabulary, Width}), ids) + weight({128, Width});
  for (int i = 0; i < layers; ++i) {
    const Value h = norm(x);
    const Value q = linear(h, Width, Width);
    const Value k = linear(h, Width, Width);
    const Value v = linear(h, Width, Width);
    const Value a = attention(
        q, k, v, {.num_heads = Heads, .head_dim = Width / Heads, .mask_kind = MaskKind::causal()});
    x = x + linear(a, Width, Width);
    x = x + linear(gelu_approx(linear(norm(x), Width, 4 * Width)), 4 * Width, Width);
  }
  const Value logits = linear(norm(x), Width, Vocabulary);
  g.set_outputs({mean(softmax_cross_entropy_with_logits(logits, labels))});
  return g;
}

std::vector<ValueRef> params_of(const Graph& g) {
  std::vector<ValueRef> out;
  for (const NodeId id : g.params()) out.emplace_back(ValueId{id, 0});
  return out;
}

void gradient_of_transformer(benchmark::State& state) {
  const Graph g = transformer(static_cast<int>(state.range(0)));
  const std::vector<ValueRef> wrt = params_of(g);
  std::size_t nodes = 0;
  for (auto _ : state) {
    nodes = grad_with_loss(g, wrt).graph.size();
    benchmark::DoNotOptimize(nodes);
  }
  state.counters["nodes"] = static_cast<double>(nodes);
}
BENCHMARK(gradient_of_transformer)->Arg(1)->Arg(12)->Unit(benchmark::kMillisecond);

void vmap_of_transformer(benchmark::State& state) {
  const Graph g = transformer(12);
  for (auto _ : state) benchmark::DoNotOptimize(vmap(g, {{"ids"}, {"labels"}}, 8).graph.size());
}
BENCHMARK(vmap_of_transformer)->Unit(benchmark::kMillisecond);

// c ← c + 0.01·tanh(c·A + x_t)
Graph recurrence(std::int64_t length) {
  Graph g("recurrence");
  const Value start = g.input("c0", f32({1, 16}));
  const Value a = g.param("a", f32({16, 16}));
  const Value xs = g.input("xs", f32({length, 1, 16}));
  const Value last = scan_with_bcasts_and_xs(
      start, std::array{a}, std::array{xs},
      [](Graph&, std::span<const Value> in) {
        return std::vector{in[0] + tanh(matmul(in[0], in[1]) + in[2]) * 0.01};
      },
      length);
  g.set_outputs({sum(last)});
  return g;
}

void gradient_of_scan(benchmark::State& state) {
  const Graph g = recurrence(state.range(0));
  std::size_t nodes = 0;
  for (auto _ : state) {
    nodes = grad_with_loss(g, {"a", "xs", "c0"}).graph.size();
    benchmark::DoNotOptimize(nodes);
  }
  state.counters["nodes"] = static_cast<double>(nodes);
}
BENCHMARK(gradient_of_scan)->Arg(10)->Arg(100000)->Unit(benchmark::kMicrosecond);

void hvp_of_scan(benchmark::State& state) {
  const Graph g = recurrence(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(hvp(g, {"a"}).graph.size());
}
BENCHMARK(hvp_of_scan)->Arg(10)->Arg(100000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace ricci
