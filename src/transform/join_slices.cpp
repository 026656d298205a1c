#include "transform/join_slices.h"

#include <algorithm>

#include "ricci/build/build.h"

namespace ricci {
namespace {

// A slice with zeros around it.
struct Padded {
  Value slice;
  op::Pad around;
};

bool is_zero(const Node& node) {
  const auto* constant = node.op.as<op::Constant>();
  if (constant == nullptr) return false;
  return constant->value.identical(Tensor::zeros(constant->value.type()));
}

// Negative amounts cut; of symbolic ones it is not known.
bool none_cut(const Dims& amounts) {
  return std::ranges::all_of(amounts, [](const Dim& d) { return d.try_value().value_or(-1) >= 0; });
}

std::optional<Padded> as_padded(Value v) {
  Graph& graph = v.graph();
  const Node& node = graph.node(v.id().node);
  const auto* pad = node.op.as<op::Pad>();
  if (pad == nullptr || !is_zero(graph.node(node.operands[1].node))) return std::nullopt;
  if (!none_cut(pad->low) || !none_cut(pad->high)) return std::nullopt;
  return Padded{graph.value(node.operands[0]), *pad};
}

bool all_zero(const Dims& dims) {
  return std::ranges::all_of(dims, [](const Dim& d) { return d.is(0); });
}

// The axis along which `second` begins where `first` ends, and all others agree.
std::optional<std::size_t> axis_between(const Padded& first, const Padded& second) {
  std::optional<std::size_t> axis;
  for (std::size_t i = 0; i < first.slice.rank(); ++i) {
    const bool same = first.around.low[i] == second.around.low[i] &&
                      first.around.high[i] == second.around.high[i];
    if (same) continue;
    if (axis) return std::nullopt;
    axis = i;
  }
  if (!axis) return std::nullopt;
  const Dim end = first.around.low[*axis] + first.slice.dims()[*axis];
  return end == second.around.low[*axis] ? axis : std::nullopt;
}

Value join(const Padded& first, const Padded& second, std::size_t axis) {
  const Value both = concat({first.slice, second.slice}, {.axis = static_cast<std::int64_t>(axis)});
  op::Pad around = first.around;
  around.high[axis] = second.around.high[axis];
  if (all_zero(around.low) && all_zero(around.high)) return both;
  return pad(both, scalar_like(both, 0), around);
}

}  // namespace

std::optional<Value> joined_slices(Value a, Value b) {
  const auto one = as_padded(a);
  const auto other = as_padded(b);
  if (!one || !other) return std::nullopt;
  if (const auto axis = axis_between(*one, *other)) return join(*one, *other, *axis);
  if (const auto axis = axis_between(*other, *one)) return join(*other, *one, *axis);
  return std::nullopt;
}

}  // namespace ricci
