#include "model/curvature.h"

#include <algorithm>

#include "ricci/ir/inline_into.h"
#include "ricci/op/ops.h"

namespace ricci {
namespace {

Value random_signs(Graph& graph, const Type& type, Value count) {
  const DType drawn = type.dtype == DType::F64 ? DType::F64 : DType::F32;
  const Value u = rng_uniform(count, {.shape = type.dims, .dtype = drawn});
  const Value one = filled(graph, {type.dtype, {}}, 1);
  return broadcast_to(where(lt(u, 0.5), -one, one), type.dims);
}

}  // namespace

std::vector<Value> hessian_diagonals(Graph& graph, const Transformed& products,
                                     const std::vector<std::string>& params, Value flag,
                                     Value count) {
  const auto here = [&](const std::string& name) {
    return graph.value({graph.find_or_throw(name), 0});
  };
  std::vector<std::string> tangents;
  for (const std::string& name : params) tangents.push_back(products.names.at("tangent_" + name));
  std::vector<std::string> inputs;
  std::vector<std::string> leaves;
  for (const NodeId id : products.graph.inputs()) {
    const std::string& name = products.graph.node(id).op.as<op::Input>()->name;
    if (std::ranges::count(tangents, name) == 0) inputs.push_back(name);
  }
  for (const NodeId id : products.graph.params()) {
    leaves.push_back(products.graph.node(id).op.as<op::Param>()->name);
  }
  std::vector<Value> operands = {count};
  for (const std::string& name : inputs) operands.push_back(here(name));
  for (const std::string& name : leaves) operands.push_back(here(name));
  const auto estimate = [&](Graph& body, std::span<const Value> in) {
    NamedValues given;
    NamedValues captured;
    for (std::size_t i = 0; i < inputs.size(); ++i) given.emplace(inputs[i], in[1 + i]);
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      captured.emplace(leaves[i], in[1 + inputs.size() + i]);
    }
    std::vector<Value> signs;
    for (std::size_t i = 0; i < params.size(); ++i) {
      signs.push_back(random_signs(body, here(params[i]).type(), in[0]));
      given.emplace(tangents[i], signs.back());
    }
    const std::vector<Value> made = inline_into(body, products.graph, given, captured);
    std::vector<Value> out;
    for (std::size_t i = 0; i < params.size(); ++i) {
      out.push_back(made[made.size() - params.size() + i] * signs[i]);
    }
    return out;
  };
  const auto nothing = [&](Graph& body, std::span<const Value>) {
    std::vector<Value> out;
    for (const std::string& name : params) out.push_back(filled(body, here(name).type(), 0));
    return out;
  };
  return cond(flag, operands, estimate, nothing);
}

}  // namespace ricci
