#include "rule/control/influence.h"

#include "ricci/op/control.h"

#include "op/loop_layout.h"

namespace ricci::rule {
namespace {

void add(std::vector<bool>& to, const std::vector<bool>& more) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = to[i] || more[i];
}

// What reaches a loop's outputs in any number of steps: output k is the next value of input k for
// the first `carries` of them. A loop that may make no step hands its carries through.
Influence over_steps(Influence step, std::size_t carries, bool may_be_empty) {
  const Influence once = step;
  for (bool grew = true; grew;) {
    grew = false;
    for (std::vector<bool>& row : step) {
      const std::vector<bool> before = row;
      for (std::size_t k = 0; k < carries; ++k) {
        if (before[k]) add(row, once[k]);
      }
      grew = grew || row != before;
    }
  }
  for (std::size_t k = 0; k < carries && may_be_empty; ++k) step[k][k] = true;
  return step;
}

Influence of_if(const Node& node, const std::function<Influence(const Graph&)>& of_body) {
  Influence out = of_body(*node.body("then"));
  const Influence other = of_body(*node.body("else"));
  for (std::size_t k = 0; k < out.size(); ++k) add(out[k], other[k]);
  out.insert(out.begin(), std::vector<bool>(node.types.size(), false));  // the predicate
  return out;
}

// Final values, the number of trips, and the tapes of the carries.
Influence of_while(const Node& node, const std::function<Influence(const Graph&)>& of_body) {
  const std::size_t carries = node.operands.size();
  Influence out = over_steps(of_body(*node.body("body")), carries, true);
  for (std::vector<bool>& row : out) {
    const std::vector<bool> finals = row;
    row.resize(node.types.size(), false);
    for (std::size_t r = carries + 1; r < row.size(); ++r) row[r] = finals[r - carries - 1];
  }
  return out;
}

}  // namespace

Influence influence_of(const Node& node, const std::function<Influence(const Graph&)>& of_body) {
  if (node.op.is<op::If>()) return of_if(node, of_body);
  if (node.op.is<op::While>()) return of_while(node, of_body);
  if (node.op.is<op::Checkpoint>()) return of_body(*node.body("body"));
  if (const auto* scan = node.op.as<op::Scan>()) {
    const bool may_be_empty = !scan->length.is_static() || scan->length.is(0);
    return over_steps(of_body(*node.body("body")), ScanLayout(*scan).carries, may_be_empty);
  }
  return Influence(node.operands.size(), std::vector<bool>(node.types.size(), true));
}

}  // namespace ricci::rule
