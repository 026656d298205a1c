#include "ricci/transform/jet.h"

#include <fmt/format.h>

#include "ricci/build/build.h"
#include "ricci/compiler/rule/body_transforms.h"

#include "support/float_environment.h"
#include "transform/autodiff_errors.h"
#include "transform/codes.h"
#include "transform/curve_speed.h"
#include "transform/leaves.h"
#include "transform/names.h"
#include "transform/taylor.h"
#include "transform/tidy.h"

namespace ricci {
namespace {

// The dtype with the least room among those that move.
DType narrowest(const Graph& graph, const std::vector<std::string>& leaves) {
  DType out = DType::F64;
  for (const std::string& leaf : leaves) {
    const DType d = graph.type({graph.find_or_throw(leaf), 0}).dtype;
    if (size_of(d) < size_of(out)) out = d;
  }
  return out;
}

}  // namespace

Transformed jet(const Graph& graph, const std::vector<ValueRef>& wrt, int order,
                const JetOptions& options) {
  const DefaultFloatEnvironment floats;
  if (order < 0) {
    throw UserError(ErrorCode::Attr, fmt::format("there is no derivative of order {}", order));
  }
  const auto orders = static_cast<std::size_t>(order);
  const std::vector<std::string> leaves = leaf_names(graph, wrt);
  const CurveSpeed speed(orders, narrowest(graph, leaves));
  Taylor taylor(graph, orders);
  taylor.copy_leaves();
  std::map<std::string, std::string, std::less<>> names;
  for (const std::string& leaf : leaves) {
    const ValueId v{graph.find_or_throw(leaf), 0};
    require_tangent(leaf, graph, v);
    Series series;
    for (std::size_t k = 1; k <= (options.line ? std::min<std::size_t>(orders, 1) : orders); ++k) {
      const std::string name = fmt::format("d{}_{}", k, leaf);
      if (names.contains(name)) {
        throw UserError(ErrorCode::Name, fmt::format("'{}' is listed twice", leaf));
      }
      const std::string chosen = taylor.graph().unique_name(name);
      names[name] = chosen;
      series.push_back(
          speed.coefficient(taylor.graph().input(chosen, type_of_tangent(graph, v)), k));
    }
    taylor.set_series(v, std::move(series));
  }
  with_autodiff_errors([&] { taylor.sweep(); });
  std::vector<Value> outputs;
  std::vector<Series> series;
  for (const ValueId v : graph.outputs()) {
    outputs.push_back(taylor.value(v));
    series.push_back(taylor.series(v));
  }
  for (std::size_t k = 1; k <= orders; ++k) {
    for (std::size_t i = 0; i < series.size(); ++i) {
      const bool present = k <= series[i].size() && series[i][k - 1].valid();
      outputs.push_back(
          present ? speed.derivative(series[i][k - 1], k)
                  : filled(taylor.graph(), type_of_tangent(graph, graph.outputs()[i]), 0));
    }
  }
  Transformed t = taylor.finish(outputs);
  t.graph.set_name(fmt::format("{}_jet{}", graph.name(), order));
  t.names = std::move(names);
  t = tidied(std::move(t));
  OutputNames called;
  called.keep(graph);
  for (std::size_t k = 1; k <= orders; ++k) {
    called.add_each(fmt::format("derivative of order {} of", k), graph);
  }
  called.give_to(t.graph);
  return t;
}

}  // namespace ricci
