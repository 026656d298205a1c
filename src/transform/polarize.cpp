#include "transform/polarize.h"

#include <optional>

#include <fmt/format.h>

#include "ricci/build/build.h"
#include "ricci/transform/vmap.h"

#include "transform/autodiff_errors.h"
#include "transform/leaves.h"
#include "transform/taylor.h"
#include "transform/tidy.h"

namespace ricci {
namespace {

// The n-th coefficient of the output on a line along the input `direction`; nothing when it is
// zero.
std::optional<Graph> last_coefficient(const Graph& forward, ValueId wrt, std::size_t order,
                                      std::string& direction) {
  Taylor taylor(forward, order);
  taylor.copy_leaves();
  direction = taylor.graph().unique_name("direction");
  taylor.set_series(wrt, {taylor.graph().input(direction, forward.type(wrt))});
  with_autodiff_errors([&] { taylor.sweep(); });
  const Series series = taylor.series(forward.outputs()[0]);
  if (series.size() < order) return {};
  return tidied(taylor.finish({series.back()})).graph;
}

// +1 or -1 for each line, shaped to go with values of a rank: bit `i` of the line's number.
Value signs(Graph& graph, const Dim& lines, std::size_t i, const Type& like) {
  Dims dims(like.rank() + 1, Dim(1));
  dims[0] = lines;
  const Value number = iota(graph, {.shape = std::move(dims), .axis = 0, .dtype = DType::I64});
  const Value bit = bitwise_and(shift_right(number, static_cast<double>(i)), 1.0);
  return 1.0 - 2.0 * cast_to(bit, like.dtype);
}

// A direction with the sum of its magnitudes, and scaled to a sum of 1.
struct Scaled {
  Value size;
  Value direction;

  explicit Scaled(Value v)
      : size(sum(abs(v))),
        direction(v / where(eq(size, scalar_like(size, 0)), scalar_like(size, 1), size)) {}
};

}  // namespace

Transformed polarized(const Graph& forward, const std::string& wrt, std::size_t levels) {
  const ValueId v{forward.find_or_throw(wrt), 0};
  const Type type = forward.type(v);
  const Type result = forward.type(forward.outputs()[0]);
  SharedLeaves leaves(forward, fmt::format("{}_dir{}", forward.name(), levels));
  Graph& graph = leaves.graph();
  Transformed out;
  std::vector<Value> directions;
  for (std::size_t i = 1; i <= levels; ++i) {
    const std::string conventional = fmt::format("dir_{}", i);
    directions.push_back(leaves.add_input(conventional, type));
    out.names[conventional] = graph.node(directions.back().id().node).op.as<op::Input>()->name;
  }
  std::string line_name;
  const std::optional<Graph> along = last_coefficient(forward, v, levels, line_name);
  Value derivative = filled(graph, result, 0);
  if (along) {
    const Dim lines(std::int64_t{1} << (levels - 1));
    Value line;
    Value sign;
    Value size;
    for (std::size_t i = levels; i-- > 0;) {
      const Scaled d(directions[i]);
      size = size.valid() ? size * d.size : d.size;
      if (i + 1 == levels) {
        line = d.direction;  // its sign is 1
        continue;
      }
      line = line + signs(graph, lines, i, type) * d.direction;
      const Value bit = signs(graph, lines, i, result);
      sign = sign.valid() ? sign * bit : bit;
    }
    const Transformed batched = vmap(*along, {{line_name}}, lines);
    const Value all = leaves.include(batched.graph, {{line_name, line}})[0];
    derivative =
        sum(sign * all, {0}) * cast_to(size / static_cast<double>(lines.value()), result.dtype);
  }
  out.graph = leaves.finish({derivative});
  out.map = map_leaves(forward, out.graph);
  Transformed tidy = tidied({std::move(out.graph), std::move(out.map), {}});
  tidy.names = std::move(out.names);
  return tidy;
}

}  // namespace ricci
