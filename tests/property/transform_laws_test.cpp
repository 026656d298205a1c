// Laws of derivatives and batching, on random programs: shrunk to a small one where they fail.
#include <algorithm>
#include <cmath>
#include <complex>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/ir/verify.h"
#include "ricci/op/table.h"
#include "ricci/rule/vjp.h"
#include "ricci/transform/check.h"
#include "ricci/transform/checkpoint.h"
#include "ricci/transform/error.h"
#include "ricci/transform/higher_order.h"
#include "ricci/transform/vmap.h"

#include "property/for_programs.h"
#include "property/generator.h"
#include "support/compare.h"

namespace ricci::testing {
namespace {

const GeneratorOptions Differentiable{
    .nodes = 8, .dtypes = {DType::F64}, .differentiable_only = true, .tame = true};

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

// The inputs and params that can be moved.
std::vector<std::string> movable(const Program& p) {
  std::vector<std::string> out;
  for (const auto& [name, value] : p.feeds) {
    const auto leaf = p.graph.find(name);
    if (!leaf || value.dtype() != DType::F64 || value.numel() == 0) continue;
    if (!is_constant_operand(p.graph, *leaf)) out.push_back(name);
  }
  return out;
}

// Narrower floats inside round more than the laws allow for.
bool all_wide(const Graph& graph) {
  return std::ranges::all_of(graph.nodes(), [](const Node& node) {
    return std::ranges::all_of(
        node.types, [](const Type& t) { return !is_float(t.dtype) || t.dtype == DType::F64; });
  });
}

// Programs whose values stay of moderate size say something about derivatives.
bool says_something(const Program& p) {
  if (movable(p).empty() || !all_wide(p.graph)) return false;
  const auto outputs = outputs_of(p.graph, p.feeds);
  return outputs && moderate(*outputs);
}

std::string check_adjoint(const Program& p) {
  if (!says_something(p)) return {};
  const DerivativeProbe d = probe_derivatives(p.graph, movable(p), p.feeds, 5);
  if (!d.finite()) {
    std::vector<Tensor> given;
    for (const auto& [name, value] : p.feeds) given.push_back(value);
    return moderate(given) ? "a derivative of finite values is not finite" : "";
  }
  if (d.scale > 1e8) return {};
  if (d.adjoint_gap() <= 1e-8) return {};
  return fmt::format("⟨u, Jt⟩ = {} but ⟨Jᵀu, t⟩ = {}", d.forward, d.reverse);
}

// All float outputs summed up.
Graph loss_of(const Graph& graph) {
  Graph g = graph;
  Value total;
  for (const Value v : g.output_values()) {
    if (v.dtype() != DType::F64) continue;
    const Value part = sum(sin(v));
    total = total.valid() ? total + part : part;
  }
  if (!total.valid()) return graph;
  g.set_outputs({total});
  return g;
}

double dot(const Tensor& a, const Tensor& b) {
  const auto x = a.numbers<double>();
  const auto y = b.numbers<double>();
  double out = 0;
  for (std::size_t i = 0; i < x.size(); ++i) out += x[i] * y[i];
  return out;
}

// ⟨v, H u⟩ = ⟨u, H v⟩
std::string check_hessian(const Program& p) {
  if (!says_something(p)) return {};
  const Graph loss = loss_of(p.graph);
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

// One run over a batch gives what a run per example gives.
std::string check_vmap(const Program& p) {
  const std::vector<std::string> names = movable(p);
  if (!says_something(p)) return {};
  constexpr std::int64_t Batch = 2;
  std::vector<BatchedInput> batched(names.begin(), names.end());
  const Transformed over = vmap(p.graph, batched, Batch);
  verify(over.graph);
  std::vector<Feeds> examples(Batch, p.feeds);
  Feeds feeds = p.feeds;
  for (const std::string& name : names) {
    const Tensor& t = p.feeds.at(name);
    auto numbers = t.numbers<double>();
    std::vector<double> both = numbers;
    for (double& v : numbers) v *= 0.75;
    both.insert(both.end(), numbers.begin(), numbers.end());
    examples[1][name] = Tensor::from_numbers<double>(t.type(), numbers);
    Type type = t.type();
    type.dims.insert(type.dims.begin(), Dim(Batch));
    feeds[name] = Tensor::from_numbers<double>(type, both);
  }
  const auto all = outputs_of(over.graph, feeds);
  for (std::int64_t e = 0; e < Batch; ++e) {
    const auto alone = outputs_of(p.graph, examples[static_cast<std::size_t>(e)]);
    if (!alone || !all) return {};
    if (!moderate(*alone)) return {};
    for (std::size_t i = 0; i < alone->size(); ++i) {
      const Tensor row = (*all)[i].narrowed(0, e, 1).reshaped((*alone)[i].dims());
      if (!close(row, (*alone)[i], {1e-9, 1e-9})) {
        return fmt::format("output {} of example {} differs", i, e);
      }
    }
  }
  return {};
}

// A gradient takes such an op apart, and its parts round differently; inside a checkpoint the
// forward pass keeps it whole.
bool is_taken_apart(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const Node& node) {
    if (descriptor(node.op.kind()).vjp == RuleSource::Expansion) return true;
    return std::ranges::any_of(node.bodies, [](const Body& b) { return is_taken_apart(*b.graph); });
  });
}

// Computing inner values again changes no bit, of the values or of the gradients.
std::string check_checkpoint(const Program& p) {
  if (!says_something(p)) return {};
  const std::vector<std::string> names = movable(p);
  const std::vector<ValueRef> wrt(names.begin(), names.end());
  const Graph loss = loss_of(p.graph);
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

// A loop without a bound has no reverse mode, and says so.
Check where_defined(const Check& check) {
  return [check](const Program& p) -> std::string {
    try {
      return check(p);
    } catch (const AutodiffError& e) {
      if (e.code() != ErrorCode::UnboundedLoop) throw;
      return {};
    }
  };
}

TEST(PropertyTransforms, ForwardAndReverseModeAreTransposes) {
  for_programs(program_count(300), Differentiable, where_defined(check_adjoint));
}

TEST(PropertyTransforms, HessiansAreSymmetric) {
  for_programs(program_count(150), Differentiable, where_defined(check_hessian));
}

TEST(PropertyTransforms, VmapIsALoop) {
  for_programs(program_count(200), Differentiable, check_vmap);
}

TEST(PropertyTransforms, CheckpointsChangeNothing) {
  for_programs(program_count(100), Differentiable, where_defined(check_checkpoint));
}

}  // namespace
}  // namespace ricci::testing
