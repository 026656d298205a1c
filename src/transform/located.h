// Errors of rules, with the place of the node they are about.
#pragma once

#include <utility>

#include "ricci/ir/graph.h"
#include "ricci/transform/error.h"

namespace ricci {

/// Runs `f` on behalf of a node. A UserError that does not say where it happened learns it here.
template <class F>
auto at_node(const Node& node, F&& f) {
  const auto placed = [&](const UserError& e) {
    std::vector<Diagnostic> ds = e.diagnostics();
    Diagnostic& d = ds.front();
    if (d.detail.empty()) d.detail = node.op.mnemonic();
    if (!d.where.known() && node.provenance) d.where = node.provenance->where;
    return ds;
  };
  try {
    return std::forward<F>(f)();
  } catch (const AutodiffError& e) {
    throw AutodiffError(placed(e));
  } catch (const UserError& e) {
    throw UserError(placed(e));
  }
}

}  // namespace ricci
