// Bodies for the case tables of control flow.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ricci/build/build.h"

namespace ricci::testing {

using Inputs = std::span<const Value>;
using Values = std::vector<Value>;

inline Body body(std::string role, const std::vector<Type>& inputs, const BodyFunction& build) {
  return {role, make_body(role, inputs, build, default_registry())};
}

/// A special input of a derivative body.
struct Special {
  op::InputRole::Kind kind;
  std::int64_t index;
  Type type;
};
inline Special d_output(std::int64_t i, Type type) {
  return {op::InputRole::Kind::DOutput, i, std::move(type)};
}
inline Special primal_output(std::int64_t i, Type type) {
  return {op::InputRole::Kind::PrimalOutput, i, std::move(type)};
}
inline Special tangent(std::int64_t i, Type type) {
  return {op::InputRole::Kind::Tangent, i, std::move(type)};
}
inline Special residual(std::int64_t i, Type type) {
  return {op::InputRole::Kind::Residual, i, std::move(type)};
}

/// A derivative body: ordinary inputs, then special ones, handed to `build` in that order.
inline Body rule_body(std::string role, const std::vector<Type>& ordinary,
                      const std::vector<Special>& special, const BodyFunction& build) {
  Graph g(role);
  Values in;
  for (const Type& t : ordinary) in.push_back(g.input("in" + std::to_string(in.size()), t));
  for (const Special& s : special) {
    const op::InputRole r{s.kind, s.index};
    const std::string name = g.unique_name(op::conventional_name(r));
    in.push_back(g.input(name, s.type, r));
  }
  g.set_outputs(build(g, in));
  return {std::move(role), std::make_shared<const Graph>(std::move(g))};
}

}  // namespace ricci::testing
