#include "property/laws.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ricci/build/build.h"
#include "ricci/compiler/rule/vjp.h"
#include "ricci/ir/verify.h"
#include "ricci/op/table.h"
#include "ricci/transform/check.h"
#include "ricci/transform/checkpoint.h"
#include "ricci/transform/higher_order.h"
#include "ricci/transform/jet.h"
#include "ricci/transform/jvp.h"
#include "ricci/transform/vmap.h"

#include "property/for_programs.h"
#include "support/compare.h"

namespace ricci::testing {
namespace {

bool moderate(const std::vector<Tensor>& tensors) {
  return std::ranges::all_of(tensors, [](const Tensor& t) {
    if (!is_float(t.dtype())) return true;
    return std::ranges::all_of(t.numbers<double>(),
                               [](double v) { return std::isfinite(v) && std::fabs(v) < 1e4; });
  });
}

// Is a leaf read where only particular values fit: as an index, say?
bool is_constant_operand(const Graph& graph, NodeId leaf) {
  for (const Node& node : graph.nodes()) {
    for (std::size_t k = 0; k < node.operands.size(); ++k) {
      if (node.operands[k] != ValueId{leaf, 0}) continue;
      const Type& type = graph.type(node.operands[k]);
      if (!carries_derivative(graph.registry(), node, k, type)) return true;
    }
  }
  return false;
}

// Narrower floats inside round more than the laws allow for.
bool all_wide(const Graph& graph) {
  return std::ranges::all_of(graph.nodes(), [](const Node& node) {
    return std::ranges::all_of(
        node.types, [](const Type& t) { return !is_float(t.dtype) || t.dtype == DType::F64; });
  });
}

double dot(const Tensor& a, const Tensor& b) {
  const auto x = a.numbers<double>();
  const auto y = b.numbers<double>();
  double out = 0;
  for (std::size_t i = 0; i < x.size(); ++i) out += x[i] * y[i];
  return out;
}

// A gradient takes such an op apart, and its parts round differently; inside a checkpoint the
// forward pass keeps it whole.
bool is_taken_apart(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const Node& node) {
    if (descriptor(node.op.kind()).vjp == RuleSource::Expansion) return true;
    return std::ranges::any_of(node.bodies, [](const Body& b) { return is_taken_apart(*b.graph); });
  });
}

constexpr std::size_t Batch = 2;

// The value of each example of a batch.
std::vector<Tensor> examples_of(const Tensor& t) {
  std::vector<double> numbers = t.numbers<double>();
  for (double& v : numbers) v *= 0.75;
  return {t, Tensor::from_numbers<double>(t.type(), numbers)};
}

Tensor stacked(const std::vector<Tensor>& rows) {
  std::vector<double> numbers;
  for (const Tensor& row : rows) {
    const auto more = row.numbers<double>();
    numbers.insert(numbers.end(), more.begin(), more.end());
  }
  Type type = rows[0].type();
  type.dims.insert(type.dims.begin(), Dim(static_cast<std::int64_t>(rows.size())));
  return Tensor::from_numbers<double>(type, numbers);
}

}  // namespace

namespace {

// Does an op stand where it has no finite derivative itself, as a root of nothing has? Nothing then
// bounds what a cotangent of zero becomes before it, as of elements that a narrow leaves out.
bool meets_singular_point(const Program& p) {
  for (NodeId id = 0; id < p.graph.size(); ++id) {
    const Node& node = p.graph.node(id);
    if (node.is_leaf() || !node.bodies.empty() || node.operands.empty()) continue;
    Graph before = p.graph;
    std::vector<Value> read;
    for (const ValueId v : node.operands) read.push_back(before.value(v));
    before.set_outputs(std::span<const Value>(read));
    const auto values = outputs_of(before, p.feeds);
    if (!values) continue;
    Program alone{.graph = Graph("alone"), .feeds = {}};
    std::vector<ValueId> operands;
    for (std::size_t k = 0; k < values->size(); ++k) {
      const std::string name = fmt::format("x{}", k);
      operands.push_back(alone.graph.input(name, (*values)[k].type()).id());
      alone.feeds[name] = (*values)[k];
    }
    const NodeId copy =
        alone.graph.add({.op = node.op, .operands = operands, .wanted = node.wanted});
    std::vector<Value> results;
    for (std::uint32_t r = 0; r < node.types.size(); ++r) {
      if (node.wanted[r]) results.push_back(alone.graph.value({copy, r}));
    }
    alone.graph.set_outputs(std::span<const Value>(results));
    const std::vector<std::string> names = movable(alone);
    if (!names.empty() && !probe_derivatives(alone.graph, names, alone.feeds, 5).finite())
      return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> movable(const Program& p, const DTypeSet& dtypes) {
  std::vector<std::string> out;
  for (const auto& [name, value] : p.feeds) {
    const auto leaf = p.graph.find(name);
    if (!leaf || !dtypes.has(value.dtype()) || value.numel() == 0) continue;
    if (!is_constant_operand(p.graph, *leaf)) out.push_back(name);
  }
  return out;
}

bool says_something(const Program& p) {
  if (movable(p).empty() || !all_wide(p.graph)) return false;
  const auto outputs = outputs_of(p.graph, p.feeds);
  return outputs && moderate(*outputs);
}

Program loss_of(const Program& p) {
  Program out = p;
  Value total;
  for (const Value v : out.graph.output_values()) {
    if (v.dtype() != DType::F64) continue;
    const Value part = sum(sin(v));
    total = total.valid() ? total + part : part;
  }
  if (total.valid()) out.graph.set_outputs({total});
  return out;
}

std::string check_adjoint(const Program& p) {
  if (!says_something(p)) return {};
  const DerivativeProbe d = probe_derivatives(p.graph, movable(p), p.feeds, 5);
  if (!d.finite()) {
    std::vector<Tensor> given;
    for (const auto& [name, value] : p.feeds) given.push_back(value);
    if (!moderate(given) || meets_singular_point(p)) return {};
    return "a derivative of finite values is not finite";
  }
  if (d.scale > 1e8) return {};
  if (d.adjoint_gap() <= 1e-8) return {};
  return fmt::format("⟨u, Jt⟩ = {} but ⟨Jᵀu, t⟩ = {}", d.forward, d.reverse);
}

std::string check_hessian(const Program& p) {
  if (!says_something(p)) return {};
  const Graph loss = loss_of(p).graph;
  if (loss.outputs().size() != 1 || loss.type(loss.outputs()[0]) != f64()) return {};
  const std::vector<std::string> names = movable(p);
  const std::vector<ValueRef> wrt(names.begin(), names.end());
  const Transformed products =
      hvp(loss, wrt, {.external_seed = false, .grad = GradOptions::training()});
  verify(products.graph);
  std::array<std::vector<Tensor>, 2> directions;
  std::array<std::vector<Tensor>, 2> images;
  for (std::size_t side = 0; side < 2; ++side) {
    Feeds feeds = p.feeds;
    for (std::size_t k = 0; k < names.size(); ++k) {
      const Tensor t = random_tensor(97 * side + k, p.feeds.at(names[k]).type(), -1, 1);
      feeds[products.names.at("tangent_" + names[k])] = t;
      directions[side].push_back(t);
    }
    const auto all = interpret(products.graph, feeds);
    images[side].assign(all.end() - static_cast<std::ptrdiff_t>(names.size()), all.end());
  }
  double one = 0;
  double other = 0;
  double scale = 0;
  for (std::size_t k = 0; k < names.size(); ++k) {
    one += dot(directions[1][k], images[0][k]);
    other += dot(directions[0][k], images[1][k]);
    scale += std::fabs(dot(directions[1][k], images[0][k]));
  }
  if (!std::isfinite(one) || !std::isfinite(other) || scale > 1e8) return {};
  if (std::fabs(one - other) <= 1e-7 * (scale + 1)) return {};
  return fmt::format("⟨v, Hu⟩ = {} but ⟨u, Hv⟩ = {}", one, other);
}

std::string check_jet(const Program& p) {
  if (!says_something(p)) return {};
  constexpr int Order = 3;
  const std::vector<std::string> names = movable(p);
  const std::vector<ValueRef> wrt(names.begin(), names.end());
  // Along a line the tangent does not move: each jvp takes the values alone.
  Graph nested = p.graph;
  Feeds feeds = p.feeds;
  for (int k = 0; k < Order; ++k) {
    const Transformed next = jvp(nested, wrt);
    verify(next.graph);
    nested = next.graph;
    for (std::size_t i = 0; i < names.size(); ++i) {
      feeds[next.names.at("tangent_" + names[i])] =
          random_tensor(31 + i, p.feeds.at(names[i]).type(), -1, 1);
    }
  }
  const Transformed curve = jet(p.graph, wrt, Order, {.line = true});
  verify(curve.graph);
  Feeds line = p.feeds;
  for (std::size_t i = 0; i < names.size(); ++i) {
    line[curve.names.at("d1_" + names[i])] =
        random_tensor(31 + i, p.feeds.at(names[i]).type(), -1, 1);
  }
  const auto by_nesting = interpret(nested, feeds);
  const auto by_series = interpret(curve.graph, line);
  const std::size_t n = p.graph.outputs().size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k <= static_cast<std::size_t>(Order); ++k) {
      // Outputs of nested tangents: one doubling a level, the last half the derivative.
      const Tensor& deep = by_nesting[((std::size_t{1} << k) - 1) * n + i];
      if (!moderate({deep})) continue;
      if (!close(by_series[k * n + i], deep, {1e-7, 1e-7})) {
        return fmt::format("derivative {} of output {}: {} by series, {} nested", k, i,
                           by_series[k * n + i].to_string(), deep.to_string());
      }
    }
  }
  return {};
}

std::string check_vmap(const Program& p) {
  if (!says_something(p)) return {};
  const std::vector<std::string> names = movable(p);
  const Program over = batch_of(p);
  verify(over.graph);
  std::vector<Feeds> examples(Batch, p.feeds);
  for (const std::string& name : names) {
    const std::vector<Tensor> values = examples_of(p.feeds.at(name));
    for (std::size_t e = 0; e < Batch; ++e) examples[e][name] = values[e];
  }
  const auto all = outputs_of(over.graph, over.feeds);
  for (std::size_t e = 0; e < Batch; ++e) {
    const auto alone = outputs_of(p.graph, examples[e]);
    if (!alone || !all) return {};
    if (!moderate(*alone)) return {};
    for (std::size_t i = 0; i < alone->size(); ++i) {
      const Tensor row =
          (*all)[i].narrowed(0, static_cast<std::int64_t>(e), 1).reshaped((*alone)[i].dims());
      if (!close(row, (*alone)[i], {1e-9, 1e-9})) {
        return fmt::format("output {} of example {} differs", i, e);
      }
    }
  }
  return {};
}

std::string check_checkpoint(const Program& p) {
  if (!says_something(p)) return {};
  const std::vector<std::string> names = movable(p);
  const std::vector<ValueRef> wrt(names.begin(), names.end());
  const Graph loss = loss_of(p).graph;
  if (loss.outputs().size() != 1 || loss.type(loss.outputs()[0]) != f64()) return {};
  const Graph wrapped = checkpoint(loss).graph;
  verify(wrapped);
  const auto plain = interpret(value_and_grad(loss, wrt, GradOptions::training()).graph, p.feeds);
  const auto again =
      interpret(value_and_grad(wrapped, wrt, GradOptions::training()).graph, p.feeds);
  if (!is_taken_apart(loss)) return difference(again, plain);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    if (!close(again[i], plain[i], {1e-9, 1e-9})) return fmt::format("output {} differs", i);
  }
  return {};
}

Program forward_of(const Program& p, const DTypeSet& dtypes) {
  const std::vector<std::string> names = movable(p, dtypes);
  Transformed t = jvp(p.graph, {names.begin(), names.end()});
  Program out{std::move(t.graph), p.feeds};
  for (std::size_t i = 0; i < names.size(); ++i) {
    out.feeds[t.names.at("tangent_" + names[i])] =
        random_tensor(11 + i, p.feeds.at(names[i]).type(), -1, 1);
  }
  return out;
}

Program reverse_of(const Program& p, const DTypeSet& dtypes) {
  const std::vector<std::string> names = movable(p, dtypes);
  Transformed t = vjp(p.graph, {names.begin(), names.end()}, GradOptions::training());
  Program out{std::move(t.graph), p.feeds};
  for (const auto& [convention, name] : t.names) {
    const Type type = out.graph.type({*out.graph.find(name), 0});
    out.feeds[name] = random_tensor(17 + out.feeds.size(), type, -1, 1);
  }
  return out;
}

Program batch_of(const Program& p, const DTypeSet& dtypes) {
  const std::vector<std::string> names = movable(p, dtypes);
  Program out{vmap(p.graph, {names.begin(), names.end()}, Batch).graph, p.feeds};
  for (const std::string& name : names) out.feeds[name] = stacked(examples_of(p.feeds.at(name)));
  return out;
}

Program transformed(Program p, std::string_view letters, const DTypeSet& dtypes) {
  for (const char c : letters) {
    if (movable(p, dtypes).empty()) return p;
    switch (c) {
      case 'f': p = forward_of(p, dtypes); break;
      case 'r': p = reverse_of(p, dtypes); break;
      default: p = batch_of(p, dtypes); break;
    }
  }
  return p;
}

}  // namespace ricci::testing
