// A hook for the tests of the tests: changes what rules give, one rule at a time, to see whether
// the suite notices. Nothing in the library sets it.
#pragma once

#include <functional>

#include "ricci/compiler/rule/vjp.h"

namespace ricci::rule {

struct Perturbations {
  std::function<void(const VjpContext&, Cotangents&)> vjp;
  std::function<void(const Node&, std::vector<Value>& tangents)> jvp;
};
/// Not safe to change while another thread differentiates.
[[nodiscard]] Perturbations& perturbations();

}  // namespace ricci::rule
