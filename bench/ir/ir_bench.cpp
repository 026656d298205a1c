// How fast graphs are read, checked, printed and rewritten: 10,000 nodes of a model's mix of ops.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "ricci/build/build.h"
#include "ricci/compiler/rewrite/pass.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"

namespace ricci {
namespace {

constexpr std::size_t Nodes = 10000;

// Layers of a small perceptron with a residual, written so that every pass finds work.
Graph make_graph() {
  Graph g("network");
  Value x = g.input("x", f32({8, 16}));
  for (std::size_t layer = 0; g.size() < Nodes; ++layer) {
    const Value w = g.param(fmt::format("w{}", layer), f32({16, 16}));
    const Value b = g.param(fmt::format("b{}", layer), f32({16}));
    const Value h = matmul(x, transpose(transpose(w, {{1, 0}}), {{1, 0}}));
    const Value bias = broadcast_to(b, {8, 16});
    const Value again = broadcast_to(b, {8, 16});
    const Value a = tanh(h + bias) * 1.0;
    const Value unused = exp(again + h);
    (void)unused;
    const Value scale =
        g.constant(Tensor::splat(f32(), 2.0)) * g.constant(Tensor::splat(f32(), 0.5));
    x = x + a * broadcast_to(scale, {8, 16});
  }
  g.set_outputs({x});
  return g;
}

const Graph& graph() {
  static const Graph g = make_graph();
  return g;
}

void per_node(benchmark::State& state) {
  state.counters["nodes/s"] = benchmark::Counter(static_cast<double>(graph().size()),
                                                 benchmark::Counter::kIsIterationInvariantRate);
}

void build(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(make_graph());
  per_node(state);
}
BENCHMARK(build)->Unit(benchmark::kMillisecond);

void print_text(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(print(graph()));
  per_node(state);
}
BENCHMARK(print_text)->Unit(benchmark::kMillisecond);

void parse_text(benchmark::State& state) {
  const std::string text = print(graph());
  for (auto _ : state) benchmark::DoNotOptimize(parse_graph(text));
  per_node(state);
}
BENCHMARK(parse_text)->Unit(benchmark::kMillisecond);

void verify_graph(benchmark::State& state) {
  for (auto _ : state) verify(graph());
  per_node(state);
}
BENCHMARK(verify_graph)->Unit(benchmark::kMillisecond);

void parse_and_verify(benchmark::State& state) {
  const std::string text = print(graph());
  for (auto _ : state) verify(parse_graph(text));
  per_node(state);
}
BENCHMARK(parse_and_verify)->Unit(benchmark::kMillisecond);

// One benchmark per pass, named after it.
const bool registered = [] {
  for (const Pass& pass : all_passes()) {
    benchmark::RegisterBenchmark(pass.name.c_str(), [&pass](benchmark::State& state) {
      for (auto _ : state) {
        benchmark::DoNotOptimize(pass.run(graph()));
      }
      per_node(state);
    })->Unit(benchmark::kMillisecond);
  }
  return true;
}();

}  // namespace
}  // namespace ricci
