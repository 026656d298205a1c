#include "support/derivative.h"

#include <fmt/format.h>

#include "ricci/interp/interpreter.h"

namespace ricci::testing {
namespace {

double pairing(std::span<const Tensor> a, std::span<const Tensor> b) {
  double total = 0;
  for (std::size_t r = 0; r < a.size(); ++r) {
    const auto x = a[r].numbers<double>();
    const auto y = b[r].numbers<double>();
    for (std::size_t i = 0; i < x.size(); ++i) total += x[i] * y[i];
  }
  return total;
}

}  // namespace

std::vector<Tensor> run_op(const Op& op, std::span<const Tensor> operands,
                           const std::vector<bool>& wanted) {
  Graph g("one_op");
  Feeds feeds;
  std::vector<ValueId> inputs;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const std::string name = fmt::format("x{}", k);
    inputs.push_back(g.input(name, operands[k].type()).id());
    feeds.emplace(name, operands[k]);
  }
  const NodeId id = g.add({.op = op, .operands = inputs, .wanted = wanted});
  std::vector<ValueId> outputs;
  for (std::uint32_t r = 0; r < g.node(id).types.size(); ++r) {
    if (g.node(id).wanted[r]) outputs.push_back({id, r});
  }
  g.set_outputs(std::move(outputs));
  return interpret(g, feeds);
}

Tensor central_difference(const Op& op, std::span<const Tensor> operands,
                          const std::vector<bool>& wanted, std::span<const Tensor> cotangents,
                          std::size_t k) {
  constexpr double Step = 1e-5;
  std::vector<Tensor> moved(operands.begin(), operands.end());
  const std::vector<double> at = operands[k].numbers<double>();
  const auto loss = [&](std::size_t i, double by) {
    std::vector<double> x = at;
    x[i] += by;
    moved[k] = Tensor::from_numbers<double>(operands[k].type(), x);
    return pairing(run_op(op, moved, wanted), cotangents);
  };
  std::vector<double> slope(at.size());
  for (std::size_t i = 0; i < at.size(); ++i) {
    slope[i] = (loss(i, Step) - loss(i, -Step)) / (2 * Step);
  }
  return Tensor::from_numbers<double>(operands[k].type(), slope);
}

}  // namespace ricci::testing
