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

// The border needs a value of its own, which a piece cannot give.
Lowering lower(const op::Pad& op, const LowerContext&) {
  loop::Padding padding;
  for (const Dim& low : op.low) padding.low.push_back(low.value());
  return as_call(std::move(padding));
}

}  // namespace ricci::rule
