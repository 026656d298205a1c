// Derivatives of any order: nested modes for the first two, Taylor mode from the third on.
#include <algorithm>

#include <fmt/format.h>

#include "ricci/build/build.h"
#include "ricci/op/control.h"
#include "ricci/op/custom.h"
#include "ricci/transform/error.h"
#include "ricci/transform/higher_order.h"
#include "ricci/transform/jvp.h"

#include "support/float_environment.h"
#include "transform/autodiff_errors.h"
#include "transform/curve_speed.h"
#include "transform/leaves.h"
#include "transform/polarize.h"
#include "transform/taylor.h"
#include "transform/tidy.h"

namespace ricci {
namespace {

void require_order(int order) {
  if (order >= 0) return;
  throw UserError(ErrorCode::Attr, fmt::format("there is no derivative of order {}", order));
}

void require_one_output(const Graph& graph) {
  if (graph.outputs().size() == 1) return;
  throw UserError(ErrorCode::Shape,
                  fmt::format("'{}' has {} outputs, but one is differentiated", graph.name(),
                              graph.outputs().size()),
                  "leave out the others with Graph::set_outputs");
}

void require_single_element(const Graph& graph, ValueId v, std::string_view what) {
  const Type& type = graph.type(v);
  if (element_count(type).is(1)) return;
  throw UserError(
      ErrorCode::Shape,
      fmt::format("{} must have a single element, but is {}", what, type.to_string()),
      "use hessian or jacfwd for all derivatives, directional_nth_grad for one direction");
}

template <class F>
bool any_node(const Graph& graph, const F& holds) {
  return std::ranges::any_of(graph.nodes(), [&](const Node& node) {
    return holds(node) || std::ranges::any_of(node.bodies, [&](const Body& body) {
             return any_node(*body.graph, holds);
           });
  });
}

bool is_registered(const Node& node) { return node.op.is<op::Custom>(); }

// May reverse mode give something else than forward mode? A complex derivative is another thing in
// each, and an op or function with a reverse rule of its own need have no forward rule.
bool prefers_reverse(const Node& node) {
  return is_registered(node) || (node.op.is<op::CustomFn>() && node.body("vjp") != nullptr) ||
         std::ranges::any_of(node.types, [](const Type& t) { return is_complex(t.dtype); });
}

Transformed nested_grad(const Graph& forward, const std::string& name, int order) {
  Transformed all{forward, IdMap::identity(forward), {}};
  for (int level = 0; level < order; ++level) {
    Transformed next = value_and_grad(all.graph, {name}, GradOptions::training());
    next.graph.set_outputs(std::vector<ValueId>{next.graph.outputs().back()});
    next = tidied(std::move(next));
    all = {std::move(next.graph), all.map.then(next.map), {}};
  }
  return all;
}

// From the last coefficient of the output on the line x + s.
Transformed taylor_grad(const Graph& forward, ValueId wrt, std::size_t order) {
  const Type& by = forward.type(wrt);
  const CurveSpeed speed(order, by.dtype);
  Taylor taylor(forward, order);
  taylor.copy_leaves();
  taylor.set_series(wrt, {filled(taylor.graph(), by, speed.value())});
  with_autodiff_errors([&] { taylor.sweep(); });
  const Series series = taylor.series(forward.outputs()[0]);
  const Value derivative =
      series.size() == order
          ? cast_to(reshape_to(speed.derivative(series.back(), order), by.dims), by.dtype)
          : filled(taylor.graph(), by, 0);
  return tidied(taylor.finish({derivative}));
}

// From this many directions on a batched Taylor sweep has fewer nodes than nested forward mode, or
// soon has. At 5 and 7 levels: tanh 112 and 166 against 76 and 414, softmax 136 and 204 against 236
// and 1320, layer_norm 300 and 480 against 1743 and over 10⁴.
constexpr int FirstPolarized = 5;

Transformed nested_directional(const Graph& forward, const std::string& name, int levels) {
  Transformed all{forward, IdMap::identity(forward), {}};
  for (int level = 1; level <= levels; ++level) {
    const Transformed next = jvp(all.graph, {name});
    // The tangent's input under its public name.
    SharedLeaves leaves(all.graph, fmt::format("{}_dir{}", forward.name(), level));
    const Type type = forward.type({forward.find_or_throw(name), 0});
    const std::string conventional = fmt::format("dir_{}", level);
    const Value direction = leaves.add_input(conventional, type);
    const std::string chosen = direction.graph().node(direction.id().node).op.as<op::Input>()->name;
    const std::vector<Value> outputs =
        leaves.include(next.graph, {{next.names.at("tangent_" + name), direction}});
    Transformed step{leaves.finish({outputs[1]}), {}, {}};
    step.map = map_leaves(all.graph, step.graph);
    step = tidied(std::move(step));
    all.map = all.map.then(step.map);
    all.graph = std::move(step.graph);
    all.names[conventional] = chosen;
  }
  return all;
}

}  // namespace

Transformed nth_order_grad(const Graph& forward, std::string_view wrt, int order) {
  const DefaultFloatEnvironment floats;
  require_order(order);
  const std::string name = leaf_name(forward, ValueRef(std::string(wrt)));
  const ValueId v{forward.find_or_throw(name), 0};
  const Type& by = forward.type(v);
  if (!is_differentiable(by.dtype)) {
    throw AutodiffError(ErrorCode::NoGradient,
                        fmt::format("'{}' is {}, which has no derivative", name, by.to_string()),
                        "differentiate by a floating value");
  }
  if (order == 0) return {forward, IdMap::identity(forward), {}};
  require_one_output(forward);
  require_single_element(forward, forward.outputs()[0], "the output");
  if (order >= 2) require_single_element(forward, v, "'" + name + "'");
  Transformed out = order < 3 || any_node(forward, prefers_reverse)
                        ? nested_grad(forward, name, order)
                        : taylor_grad(forward, v, static_cast<std::size_t>(order));
  out.graph.set_name(fmt::format("{}_d{}", forward.name(), order));
  out.graph.set_output_name(
      0, fmt::format("derivative of order {} of {} by {}", order, forward.output_names()[0], name));
  return out;
}

Transformed directional_nth_grad(const Graph& forward, std::string_view wrt, int levels) {
  const DefaultFloatEnvironment floats;
  require_order(levels);
  const std::string name = leaf_name(forward, ValueRef(std::string(wrt)));
  require_one_output(forward);
  const Type& by = forward.type({forward.find_or_throw(name), 0});
  // A registered op need have no batching rule.
  if (levels < FirstPolarized || !is_float(by.dtype) || any_node(forward, is_registered)) {
    return nested_directional(forward, name, levels);
  }
  return polarized(forward, name, static_cast<std::size_t>(levels));
}

}  // namespace ricci
