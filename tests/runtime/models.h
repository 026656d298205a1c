// Small graphs the runtime tests share.
#pragma once

#include <algorithm>
#include <span>

#include "ricci/build/build.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/graph.h"

#include "support/compare.h"

namespace ricci::testing {

/// y = tanh(x·w + b), and the sum of y².
inline Graph dense_graph(std::int64_t batch = 4, std::int64_t in = 6, std::int64_t out = 5) {
  Graph g("dense");
  const Value x = g.input("x", f32({batch, in}));
  const Value w = g.param("w", f32({in, out}));
  const Value b = g.param("b", f32({out}));
  const Value y = tanh(matmul(x, w) + b);
  g.set_outputs({y, reduce(square(y), {.op = ReduceKind::Sum, .axes = {0, 1}})});
  return g;
}

/// Values for every input and param of known size.
inline Feeds random_feeds(const Graph& graph, std::uint64_t seed = 1) {
  Feeds feeds;
  const auto feed = [&](const std::string& name, const Type& type) {
    feeds.emplace(name, random_tensor(seed++, type, -1, 1));
  };
  for (const Node& node : graph.nodes()) {
    if (const auto* in = node.op.as<op::Input>()) feed(in->name, in->type);
    if (const auto* p = node.op.as<op::Param>()) feed(p->name, p->type);
  }
  return feeds;
}

/// A counter c and a sum s with s ← s + c·x, c ← c + 1: both replace their params.
inline Graph counting_graph() {
  Graph g("counting");
  const Value x = g.input("x", f32({3}));
  const Value c = g.param("c", f32({}));
  const Value s = g.param("s", f32({3}));
  const Value total = s + c * x;
  g.set_outputs({c + 1.0, reduce(total, {.op = ReduceKind::Sum, .axes = {0}}), total});
  return g;
}

/// w ← w - g/8 for arrays of many sizes, each where it lies: output k replaces w<k>.
inline Graph updates_graph() {
  Graph g("updates");
  std::vector<Value> outputs;
  const auto add = [&](const Type& type) {
    const std::string k = std::to_string(outputs.size());
    const Value w = g.param("w" + k, type);
    outputs.push_back(w - g.input("g" + k, type) * 0.125);
  };
  for (const std::int64_t size : {1, 7, 1000, 4099, 1000}) add(f32({size}));
  add(f32({3, 5}));
  add(Type(DType::BF16, {33}));
  add(Type(DType::BF16, {64, 2}));
  g.set_outputs(outputs);
  return g;
}

/// Large enough for several tiles: a matrix product, rows, columns, a sum of everything.
inline Graph wide_graph() {
  Graph g("wide");
  const Value x = g.input("x", f32({256, 128}));
  const Value w = g.param("w", f32({128, 128}));
  const Value h = softmax(tanh(matmul(x, w)), {.axis = 1});
  const Value columns = reduce(h * x, {.op = ReduceKind::Sum, .axes = {0}});
  g.set_outputs({h, columns, reduce(exp(h), {.op = ReduceKind::Sum, .axes = {0, 1}})});
  return g;
}

/// Bit for bit.
inline bool identical(std::span<const Tensor> a, std::span<const Tensor> b) {
  return std::ranges::equal(a, b, [](const Tensor& x, const Tensor& y) { return x.identical(y); });
}

}  // namespace ricci::testing
