// Shape ops as views, or as copies into parts of their result.
#include "rule/tables/lower_rules.h"

namespace ricci::rule {
namespace {

using loop::Layout;
using ViewRule = std::optional<Layout> (*)(const Node&, const LowerContext&, const Layout&);

Lowering view(ViewRule rule) { return {.form = Lowering::Form::View, .view = rule}; }

std::size_t index_of(const Axis& axis) { return static_cast<std::size_t>(axis.value); }

}  // namespace

Lowering lower(const op::Reshape&, const LowerContext&) {
  return view([](const Node&, const LowerContext& c, const Layout& x) {
    return loop::reshaped(x, c.operands[0], c.result);
  });
}

Lowering lower(const op::Transpose&, const LowerContext&) {
  return view([](const Node& node, const LowerContext&, const Layout& x) -> std::optional<Layout> {
    Layout out{x.offset, {}};
    for (const auto& axis : node.op.as<op::Transpose>()->perm) {
      out.strides.push_back(x.strides[index_of(axis)]);
    }
    return out;
  });
}

Lowering lower(const op::Expand&, const LowerContext&) {
  return view([](const Node&, const LowerContext& c, const Layout& x) {
    return std::optional(loop::broadcast(x, c.operands[0], c.result));
  });
}

Lowering lower(const op::Narrow&, const LowerContext&) {
  return view([](const Node& node, const LowerContext&, const Layout& x) -> std::optional<Layout> {
    const auto& op = *node.op.as<op::Narrow>();
    Layout out = x;
    out.offset += op.start.value() * x.strides[index_of(op.axis)];
    return out;
  });
}

Lowering lower(const op::TakeEvery&, const LowerContext&) {
  return view(
      [](const Node& node, const LowerContext& c, const Layout& x) -> std::optional<Layout> {
        const auto& op = *node.op.as<op::TakeEvery>();
        const std::size_t axis = index_of(op.axis);
        Layout out = x;
        // The stride of an axis with one index or none is never used, and may be too large to
        // multiply.
        if (c.result[axis] > 1) out.strides[axis] *= op.stride;
        return out;
      });
}

Lowering lower(const op::Reverse&, const LowerContext&) {
  return view(
      [](const Node& node, const LowerContext& c, const Layout& x) -> std::optional<Layout> {
        Layout out = x;
        for (const Axis& axis : node.op.as<op::Reverse>()->axes) {
          const std::size_t a = index_of(axis);
          if (c.result[a] == 0) continue;
          out.offset += (c.result[a] - 1) * x.strides[a];
          out.strides[a] = -x.strides[a];
        }
        return out;
      });
}

Lowering lower(const op::Concat& op, const LowerContext& c) {
  Lowering l{.form = Lowering::Form::Pieces};
  const Layout whole = loop::contiguous(c.result);
  const std::size_t axis = index_of(op.axis);
  std::int64_t start = 0;
  for (const StaticDims& piece : c.operands) {
    l.pieces.push_back({start * whole.strides[axis], whole.strides});
    start += piece[axis];
  }
  return l;
}

Lowering lower(const op::Pad& op, const LowerContext& c) {
  Lowering l =
      view([](const Node& node, const LowerContext&, const Layout& x) -> std::optional<Layout> {
        const auto& pad = *node.op.as<op::Pad>();
        Layout out = x;
        for (std::size_t a = 0; a < pad.low.size(); ++a) {
          out.offset -= pad.low[a].value() * x.strides[a];
        }
        return out;
      });
  for (std::size_t a = 0; a < op.low.size(); ++a) {
    if (op.low[a].value() <= 0 && op.high[a].value() <= 0) continue;
    Layout place{-op.low[a].value(), std::vector<std::int64_t>(op.low.size(), 0)};
    place.strides[a] = 1;
    l.bounds.push_back({std::move(place), c.operands[0][a]});
  }
  return l;
}

}  // namespace ricci::rule
