// What arrays cost beside the arithmetic: expressions outside of any `jit`, and calls of small
// jitted functions beside the compiled graph they end in. `eager_torch.py` is the twin in PyTorch.
#include <array>

#include <benchmark/benchmark.h>

#include "ricci/array.h"
#include "ricci/runtime/compiled_graph.h"

namespace ricci {
namespace {

// Twenty ops, as somebody writes them down.
Array expression(const Array& x, const Array& y, const Array& w, const Array& b) {
  Array h = tanh(matmul(x, w) + b);           // 3
  h = h * sigmoid(h) + y * 0.5;               // 7
  h = exp(-abs(h)) + sqrt(h * h + 1.0);       // 13
  const Array m = h - mean(h);                // 15
  return sum(m * m) / 3.0 + max(h) - min(m);  // 20 and one
}

void eager(benchmark::State& state) {
  const std::int64_t n = state.range(0);
  const Array x = normal(Key(1), {n, n}).eval();
  const Array y = normal(Key(2), {n, n}).eval();
  const Array w = normal(Key(3), {n, n}).eval();
  const Array b = normal(Key(4), {n}).eval();
  for (auto _ : state) benchmark::DoNotOptimize(expression(x, y, w, b).item());
}
BENCHMARK(eager)->Arg(4)->Arg(16)->Arg(64);

struct Small {
  Array x = normal(Key(1), {8}).eval();
  Array y = normal(Key(2), {8}).eval();
};
Array add_mul(const Array& x, const Array& y) { return x * y + x; }

void compiled_graph(benchmark::State& state) {
  const Small s;
  const CompiledGraph f = compile(trace(add_mul, s.x, s.y));
  ExecutionContext context = f.make_context();
  std::array<float, 8> out{};
  const std::array<const void*, 2> in = {s.x.tensor().data(), s.y.tensor().data()};
  const std::array<void*, 1> results = {out.data()};
  for (auto _ : state) f.run(context, in, results);
}
BENCHMARK(compiled_graph);

void jitted(benchmark::State& state) {
  const Small s;
  const auto f = jit(add_mul);
  for (auto _ : state) benchmark::DoNotOptimize(f(s.x, s.y));
}
BENCHMARK(jitted);

struct Layer {
  Array w, b;
};
struct Net {
  Layer a, b, c;
};

Net small_net() {
  const auto layer = [](std::uint64_t k) {
    return Layer{normal(Key(k), {4, 4}).eval(), zeros({4}).eval()};
  };
  return {layer(1), layer(2), layer(3)};
}
Array forward(const Net& n, const Array& v) {
  return tanh(matmul(tanh(matmul(v, n.a.w) + n.a.b), n.b.w) + n.b.b);
}

void compiled_graph_struct(benchmark::State& state) {
  const Net net = small_net();
  const Array x = normal(Key(9), {4}).eval();
  const CompiledGraph f = compile(trace(forward, net, x));
  ExecutionContext context = f.make_context();
  std::vector<const void*> in;
  for (const Array& p : leaves(net)) in.push_back(p.tensor().data());
  in.push_back(x.tensor().data());
  std::array<float, 4> out{};
  const std::array<void*, 1> results = {out.data()};
  for (auto _ : state) f.run(context, in, results);
}
BENCHMARK(compiled_graph_struct);

void jitted_struct(benchmark::State& state) {
  const Net net = small_net();
  const Array x = normal(Key(9), {4}).eval();
  const auto f = jit(forward);
  for (auto _ : state) benchmark::DoNotOptimize(f(net, x));
}
BENCHMARK(jitted_struct);

// A training step of a small network, handed from call to call.
struct Step {
  Net net{{normal(Key(1), {4, 4}).eval(), zeros({4}).eval()},
          {normal(Key(2), {4, 4}).eval(), zeros({4}).eval()},
          {normal(Key(3), {4, 4}).eval(), zeros({4}).eval()}};
  Array x = normal(Key(9), {4}).eval();
};
Net next(const Net& net, const Array& x) {
  const auto loss = [&x](const Net& n) {
    return sum(tanh(matmul(tanh(matmul(x, n.a.w) + n.a.b), n.b.w) + n.b.b));
  };
  return tree_map([](const Array& p, const Array& d) { return p - 0.01 * d; }, net,
                  grad(loss)(net));
}

void compiled_graph_step(benchmark::State& state) {
  const Step s;
  const CompiledGraph f = compile(trace(next, s.net, s.x));
  ExecutionContext context = f.make_context();
  std::vector<const void*> in;
  for (const Array& p : leaves(s.net)) in.push_back(p.tensor().data());
  in.push_back(s.x.tensor().data());
  std::vector<std::array<float, 16>> room(6);
  std::vector<void*> out;
  for (auto& r : room) out.push_back(r.data());
  for (auto _ : state) f.run(context, in, out);
}
BENCHMARK(compiled_graph_step);

void jitted_step(benchmark::State& state) {
  Step s;
  const auto step = jit(next);
  for (auto _ : state) s.net = step(s.net, s.x);
}
BENCHMARK(jitted_step);

void jitted_step_in_place(benchmark::State& state) {
  Step s;
  const auto step = jit(next, {.donate = {0}});
  for (auto _ : state) s.net = step(std::move(s.net), s.x);
}
BENCHMARK(jitted_step_in_place);

}  // namespace
}  // namespace ricci

BENCHMARK_MAIN();
