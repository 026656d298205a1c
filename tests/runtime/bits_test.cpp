// Bits do not depend on threads: how work is cut into tiles is decided by shapes alone. Small
// programs have one tile each; those that have many are here by kind.
#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/reduce.h"
#include "ricci/model/training.h"
#include "ricci/runtime/session.h"
#include "ricci/support/hash.h"
#include "ricci/transform/grad.h"

#include "backend/cpu/run/tiling.h"
#include "property/generator.h"
#include "runtime/models.h"

namespace ricci::testing {
namespace {

std::uint64_t hash_of(const std::vector<Tensor>& tensors) {
  Hasher h;
  for (const Tensor& t : tensors) h.add(t.hash());
  return h.value();
}

const std::array<Device, 4>& devices() {
  static const std::array all = {Device::cpu(1), Device::cpu(2), Device::cpu(3), Device::cpu(8)};
  return all;
}

void expect_same_bits(const Graph& graph, const Feeds& feeds, const std::string& what) {
  std::optional<std::uint64_t> first;
  for (const Device& d : devices()) {
    const std::uint64_t h = hash_of(compile(graph, d).run(feeds));
    if (!first) first = h;
    EXPECT_EQ(h, *first) << what << ", " << d.threads() << " threads";
  }
}

// As many random programs as asked for; those that report a fault (an index out of range, a
// singular matrix) do not count.
void expect_same_bits_of_programs(int count, std::uint64_t first, std::uint64_t step,
                                  const GeneratorOptions& options) {
  int programs = 0;
  for (std::uint64_t seed = first; programs < count; seed += step) {
    const Program p = generate(seed, options);
    try {
      expect_same_bits(p.graph, p.feeds, fmt::format("seed {}", seed));
    } catch (const UserError&) {
      continue;
    }
    ++programs;
  }
}

TEST(RuntimeBits, DoNotDependOnThreads) {
  expect_same_bits_of_programs(50, 1, 1, {.nodes = 14, .tame = true});
  expect_same_bits(wide_graph(), random_feeds(wide_graph()), "wide");
}

TEST(RuntimeBits, OfLargeRandomProgramsDoNotDependOnThreads) {
  expect_same_bits_of_programs(30, 7, 8, {.tame = true, .large = true});
}

// A program that runs in many tiles, and what serves the step that does.
struct Tiled {
  std::string_view served_by;
  Graph graph;
};

Tiled element_wise() {
  Graph g("element_wise");
  const Value x = g.input("x", f32({701, 999}));
  const Value row = g.input("row", f32({999}));
  g.set_outputs({tanh(x * row) + exp(x), cast(sin(x), {.to = DType::F16})});
  return {"kernel", std::move(g)};
}

Tiled rows() {
  Graph g("rows");
  const Value x = g.input("x", f32({803, 517}));
  g.set_outputs({softmax(x, {.axis = 1}), log_sum_exp(exp(x), {1}), reduce_max(x * x, {1})});
  return {"kernel", std::move(g)};
}

// Few rows that are read across the order of memory.
Tiled crossed() {
  Graph g("crossed");
  const Value x = g.input("x", f32({50021, 19}));
  g.set_outputs({exp(transpose(x, {.perm = {1, 0}}))});
  return {"kernel", std::move(g)};
}

// Columns are added up in chunks, and these one to the other.
Tiled columns(DType dtype) {
  Graph g(fmt::format("columns_{}", name(dtype)));
  const Value x = g.input("x", {dtype, {4099, 67}});
  const Value y = tanh(x) * exp(x);
  g.set_outputs({sum(y, {0}), mean(y * x, {0}), log_sum_exp(y, {0}), softmax(y, {.axis = 0})});
  return {"kernel", std::move(g)};
}

Tiled everything_and_middle_axis() {
  Graph g("sums");
  const Value x = g.input("x", f32({13, 307, 211}));
  const Value y = sigmoid(x);
  g.set_outputs({sum(y), sum(y, {1}), sum(y, {0, 2}), reduce_prod(y + 0.9, {0, 1})});
  return {"kernel", std::move(g)};
}

Tiled product(DType dtype, bool transpose_a, bool transpose_b) {
  Graph g(fmt::format("product_{}_{}{}", name(dtype), transpose_a, transpose_b));
  constexpr std::int64_t M = 389;
  constexpr std::int64_t K = 401;
  constexpr std::int64_t N = 411;
  Value a = g.input("a", {dtype, transpose_a ? Dims{K, M} : Dims{M, K}});
  Value b = g.input("b", {dtype, transpose_b ? Dims{N, K} : Dims{K, N}});
  if (transpose_a) a = transpose_last(a);
  if (transpose_b) b = transpose_last(b);
  g.set_outputs({tanh(matmul(a, b) + g.input("bias", {dtype, {N}}))});
  return {"matmul", std::move(g)};
}

Tiled batched_product(bool transposed) {
  Graph g(fmt::format("batched_product_{}", transposed));
  const Value a = g.input("a", f32({11, 131, 137}));
  const Value b = g.input("b", transposed ? f32({11, 149, 137}) : f32({11, 137, 149}));
  g.set_outputs({matmul(a, transposed ? transpose_last(b) : b)});
  return {"matmul", std::move(g)};
}

// Few rows stream through the other matrix; a long inner axis is what gradients of weights have.
Tiled narrow_product(std::int64_t m, std::int64_t k, std::int64_t n) {
  Graph g(fmt::format("product_{}x{}x{}", m, k, n));
  g.set_outputs({matmul(g.input("a", f32({m, k})), g.input("b", f32({k, n})))});
  return {"matmul", std::move(g)};
}

Graph with_gradients(const Graph& g, const std::vector<ValueRef>& wrt) {
  return value_and_grad(g, wrt).graph;
}

Tiled convolution(std::int64_t groups) {
  Graph g(fmt::format("convolution_{}", groups));
  const Value x = g.input("x", f32({5, 8, 61, 59}));
  const Value w = g.param("w", f32({16, 8 / groups, 3, 3}));
  const Value y = conv(x, w, {.stride = {2, 1}, .padding = {1, 1}, .groups = groups});
  g.set_outputs({sum(square(y))});
  return {"conv", with_gradients(g, {"x", "w"})};
}

Tiled pooling() {
  Graph g("pooling");
  const Value x = g.input("x", f32({6, 9, 83, 79}));
  g.set_outputs({pool(x, {.kind = ReduceKind::Max, .kernel_size = {3, 3}, .stride = {2, 2}}),
                 pool(x, {.kind = ReduceKind::Mean, .kernel_size = {5, 2}})});
  return {"pool", std::move(g)};
}

Tiled attention_with_gradients(MaskKind mask) {
  Graph g("attention");
  const Type type = f32({3, 203, 4 * 24});
  const Value q = g.input("q", type);
  const Value k = g.input("k", type);
  const Value v = g.input("v", type);
  g.set_outputs({sum(square(
      attention(q, k, v, op::Attention{.num_heads = 4, .head_dim = 24, .mask_kind = mask})))});
  return {"attention", with_gradients(g, {"q", "k", "v"})};
}

// Every trip has tiles of its own.
Tiled loop() {
  Graph g("loop");
  const Value h = g.input("h", f32({257, 190}));
  const Value x = g.input("x", f32({7, 257, 190}));
  const Value w = g.param("w", f32({190, 190}));
  const std::array carries = {h};
  const auto body = [](Graph&, std::span<const Value> in) {
    const Value next = tanh(matmul(in[0], in[1]) * 0.1 + in[2]);
    return std::vector{next, sum(next * in[2], {0})};
  };
  const std::vector<Value> out = scan(carries, {.bcasts = {w}, .xs = {x}}, body);
  g.set_outputs({sum(out[0]) + sum(out[1])});
  return {"control", with_gradients(g, {"h", "w"})};
}

Tiled host_kernels() {
  Graph g("host");
  const Value x = g.input("x", f32({1009, 131}));
  const Value ids = iota(g, {.shape = {1009}});
  const Value picked = rem(ids * 7.0, 1009.0);
  const auto [sorted, order] = sort(x, {.axis = 0});
  g.set_outputs({sorted, order, cumsum(x, {.axis = 0}), cumsum(x, {.axis = 1}), gather(x, picked),
                 scatter_add(x, rem(ids, 13.0), {.out_dim = 13}),
                 rng_normal(g, {.shape = Dims{70000}})});
  return {"native", std::move(g)};
}

std::vector<Tiled> tiled_programs() {
  std::vector<Tiled> all;
  all.push_back(element_wise());
  all.push_back(rows());
  all.push_back(crossed());
  for (const DType d : {DType::F32, DType::F64, DType::BF16}) all.push_back(columns(d));
  all.push_back(everything_and_middle_axis());
  for (const bool a : {false, true}) {
    for (const bool b : {false, true}) all.push_back(product(DType::F32, a, b));
    all.push_back(batched_product(a));
  }
  all.push_back(product(DType::F64, false, true));
  all.push_back(product(DType::F16, true, false));
  all.push_back(narrow_product(3, 1500, 1700));
  all.push_back(narrow_product(70, 9001, 66));
  all.push_back(narrow_product(3001, 33, 129));
  for (const std::int64_t groups : {1, 2, 8}) all.push_back(convolution(groups));
  all.push_back(pooling());
  all.push_back(attention_with_gradients({}));
  all.push_back(attention_with_gradients(MaskKind::causal()));
  all.push_back(loop());
  all.push_back(host_kernels());
  return all;
}

// Is a step served that way, and a kernel of several tiles where kernels are meant?
bool is_served(const CompiledGraph& f, std::string_view how) {
  const ricci::Program& program = f.program();
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    if (f.served_by(s) == how && how != "kernel") return true;
  }
  return how == "kernel" && std::ranges::any_of(program.kernels, [](const loop::Kernel& k) {
           return cpu::tile_count(k) >= 4;
         });
}

TEST(RuntimeBits, OfProgramsOfManyTilesDoNotDependOnThreads) {
  for (const Tiled& tiled : tiled_programs()) {
    const std::string& name = tiled.graph.name();
    EXPECT_TRUE(is_served(compile(tiled.graph), tiled.served_by)) << name;
    expect_same_bits(tiled.graph, random_feeds(tiled.graph), name);
  }
}

TEST(RuntimeBits, OfATrainingRunDoNotDependOnThreads) {
  const GraphModule model = GraphModule::define("model", [](Graph& g) {
    const Value x = g.input("x", f32({64, 96}));
    const Value y = tanh(matmul(x, g.param("w", f32({96, 80}))) + g.param("b", f32({80})));
    return reduce(square(y - 0.5), {.op = ReduceKind::Mean, .axes = {0, 1}});
  });
  std::set<std::uint64_t> hashes;
  for (const int threads : {1, 2, 3, 8, 8}) {
    Session session{Device::cpu(threads)};
    TrainingStep training = compile_training(session, model, {.clip_norm = 0.1});
    training.set_param("w", random_tensor(1, f32({96, 80}), -0.2, 0.2));
    training.set_param("b", Tensor::zeros(f32({80})));
    Hasher h;
    for (std::uint64_t i = 0; i < 8; ++i) {
      h.add(training.step({{"x", random_tensor(100 + i, f32({64, 96}))}}).loss.hash());
    }
    h.add(training.param("w").hash());
    h.add(training.param("b").hash());
    hashes.insert(h.value());
  }
  EXPECT_EQ(hashes.size(), 1U);
}

}  // namespace
}  // namespace ricci::testing
