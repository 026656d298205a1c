#include "ops/transformed_case.h"

#include <algorithm>
#include <complex>

#include <fmt/format.h>

#include "ricci/compiler/rule/vjp.h"
#include "ricci/ir/verify.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/jvp.h"
#include "ricci/transform/vmap.h"

#include "support/compare.h"
#include "transform/codes.h"

namespace ricci::testing {
namespace {

// Other values an input may take.
Tensor another(const Case& c, const CaseProgram& p, const std::string& name, std::uint64_t seed) {
  const Tensor& t = p.feeds.at(name);
  for (std::size_t k = 0; k < c.in.size(); ++k) {
    if (name != fmt::format("x{}", k)) continue;
    const In& in = c.in[k];
    if (in.values.empty()) return random_values(in, t.type(), seed + 31 * k);
    if (!is_float(t.dtype()) || p.is_fixed(name)) return t;
    auto numbers = t.numbers<double>();
    for (double& v : numbers) v *= 1 + 1e-3 * static_cast<double>(seed);
    return Tensor::from_numbers<double>(t.type(), numbers);
  }
  return random_tensor(seed, t.type(), -1, 1);
}

Tensor stack(const std::vector<Tensor>& rows) {
  Type type = rows[0].type();
  type.dims.insert(type.dims.begin(), Dim(rows.size()));
  if (is_int(type.dtype) || type.dtype == DType::Bool) {
    std::vector<std::int64_t> ints;
    for (const Tensor& r : rows) {
      const auto numbers = r.numbers<std::int64_t>();
      ints.insert(ints.end(), numbers.begin(), numbers.end());
    }
    return Tensor::from_numbers<std::int64_t>(type, ints);
  }
  std::vector<std::complex<double>> all;
  for (const Tensor& r : rows) {
    const auto numbers = r.numbers<std::complex<double>>();
    all.insert(all.end(), numbers.begin(), numbers.end());
  }
  return Tensor::from_numbers<std::complex<double>>(type, all);
}

// The transformed program, with random values for the inputs the transform added.
CaseProgram with_new_inputs(const CaseProgram& p, Transformed t, std::uint64_t seed) {
  verify(t.graph);
  CaseProgram out{std::move(t.graph), p.feeds, p.fixed};
  for (const auto& [conventional, chosen] : t.names) {
    const Type& type = out.graph.node(out.graph.find_or_throw(chosen)).types[0];
    out.feeds.emplace(chosen, random_tensor(seed++, type, -1, 1));
  }
  return out;
}

}  // namespace

bool CaseProgram::is_fixed(const std::string& name) const {
  return std::ranges::find(fixed, name) != fixed.end();
}

Names CaseProgram::inputs() const {
  Names out;
  for (const NodeId id : graph.inputs()) out.push_back(graph.node(id).op.as<op::Input>()->name);
  return out;
}

Names CaseProgram::differentiable() const {
  Names out;
  for (const NodeId id : graph.inputs()) {
    const auto& in = *graph.node(id).op.as<op::Input>();
    if (has_derivative(graph, {id, 0}) && !is_fixed(in.name)) out.push_back(in.name);
  }
  return out;
}

CaseProgram program_of(const Case& c, DType dtype) {
  BuiltCase b = build_case(c, dtype);
  CaseProgram out{std::move(b.graph), {b.feeds.begin(), b.feeds.end()}};
  for (const Node& node : out.graph.nodes()) {
    for (std::size_t k = 0; k < node.operands.size(); ++k) {
      const auto* in = out.graph.node(node.operands[k].node).op.as<op::Input>();
      if (in == nullptr || !is_differentiable(in->type.dtype)) continue;
      if (!carries_derivative(out.graph.registry(), node, k, in->type)) {
        out.fixed.push_back(in->name);
      }
    }
  }
  return out;
}

CaseProgram gradient_of(const CaseProgram& p, std::uint64_t seed) {
  const Names names = p.differentiable();
  CaseProgram out =
      with_new_inputs(p, vjp(p.graph, {names.begin(), names.end()}, GradOptions::training()), seed);
  // The forward outputs are checked already.
  const std::size_t forward = p.graph.outputs().size();
  std::vector<ValueId> outputs(out.graph.outputs().begin() + static_cast<std::ptrdiff_t>(forward),
                               out.graph.outputs().end());
  out.graph.set_outputs(std::move(outputs));
  return out;
}

CaseProgram tangent_of(const CaseProgram& p, std::uint64_t seed) {
  const Names names = p.differentiable();
  return with_new_inputs(p, jvp(p.graph, {names.begin(), names.end()}), seed);
}

std::pair<CaseProgram, std::vector<Feeds>> batch_of(const Case& c, const CaseProgram& p,
                                                    const Names& batched, std::int64_t batch) {
  std::vector<Feeds> examples(static_cast<std::size_t>(batch), p.feeds);
  std::vector<BatchedInput> inputs;
  for (const std::string& name : batched) {
    inputs.emplace_back(name);
    for (std::size_t e = 1; e < examples.size(); ++e) examples[e][name] = another(c, p, name, e);
  }
  Transformed t = vmap(p.graph, inputs, batch);
  verify(t.graph);
  CaseProgram out{std::move(t.graph), p.feeds, p.fixed};
  for (const std::string& name : batched) {
    std::vector<Tensor> rows;
    for (const Feeds& f : examples) rows.push_back(f.at(name));
    out.feeds[name] = stack(rows);
  }
  return {std::move(out), std::move(examples)};
}

}  // namespace ricci::testing
