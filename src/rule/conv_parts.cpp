#include "rule/conv_parts.h"

#include <array>

#include "ricci/build/elementwise.h"
#include "ricci/op/conv.h"

#include "rule/derivative_parts.h"

namespace ricci::rule {
namespace {

// [.., n, ..] complex as [.., 2n, ..] real, the parts of a number side by side. On an axis of
// channels both stay in their group.
Value parts_along(Value v, std::size_t axis) {
  Dims apart = v.dims();
  apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(axis) + 1, Dim(1));
  const std::vector<Value> both{reshape_to(real(v), apart), reshape_to(imag(v), apart)};
  Dims merged = v.dims();
  merged[axis] = merged[axis] * Dim(2);
  return reshape_to(concat(both, {.axis = static_cast<std::int64_t>(axis) + 1}), merged);
}

// The way back: one of the two along an axis.
Value part_beside(Value v, std::size_t axis, std::int64_t which) {
  Dims apart = v.dims();
  apart[axis] = *Dim::divide(apart[axis], 2);
  Dims one = apart;
  apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(axis) + 1, Dim(2));
  return reshape_to(narrow(reshape_to(v, apart),
                           {.axis = static_cast<std::int64_t>(axis) + 1, .start = which, .len = 1}),
                    one);
}

// (a + ia')(b + ib') of the four products of parts: those of the first factor lie along one axis of
// the result, those of the second along another.
Value joined_parts(Value products, std::size_t first, std::size_t second) {
  const auto product = [&](std::int64_t a, std::int64_t b) {
    return part_beside(part_beside(products, first, a), second, b);
  };
  return make_complex(product(0, 0) - product(1, 1), product(0, 1) + product(1, 0));
}

template <class Op>
std::optional<Value> if_is(const Node& node, std::span<const Value> operands,
                           std::array<std::size_t, 2> from, std::array<std::size_t, 2> to) {
  const auto* op = node.op.as<Op>();
  if (op == nullptr) return std::nullopt;
  const std::array<Value, 2> parts{parts_along(operands[0], from[0]),
                                   parts_along(operands[1], from[1])};
  return joined_parts(operands[0].graph().add_node(ricci::Op(*op), parts)[0], to[0], to[1]);
}

}  // namespace

bool is_by_parts(const Graph& graph, const Node& node) {
  const bool is_window = node.op.is<op::Conv>() || node.op.is<op::Conv2dBackwardInput>() ||
                         node.op.is<op::Conv2dBackwardWeight>() || node.op.is<op::Pool>();
  return is_window && is_complex(graph.type(node.operands[0]).dtype);
}

std::optional<std::vector<Value>> windows_by_parts(const Node& node,
                                                   std::span<const Value> operands) {
  constexpr std::size_t Images = 0;    // of x and y
  constexpr std::size_t Channels = 1;  // of x and y, and those of its input in a weight
  constexpr std::size_t Outputs = 0;   // channels of the output in a weight
  if (!is_complex(node.types[0].dtype)) return std::nullopt;
  if (const auto* op = node.op.as<op::Pool>()) {
    const Value both = pool(parts_along(operands[0], Images), *op);
    return std::vector{make_complex(part_beside(both, Images, 0), part_beside(both, Images, 1))};
  }
  // Axes of the operands, and where these are in the result.
  std::optional<Value> out = if_is<op::Conv>(node, operands, {Images, Outputs}, {Images, Channels});
  if (!out) {
    out = if_is<op::Conv2dBackwardInput>(node, operands, {Images, Channels}, {Images, Channels});
  }
  if (!out) {
    out =
        if_is<op::Conv2dBackwardWeight>(node, operands, {Channels, Channels}, {Channels, Outputs});
  }
  if (!out) return std::nullopt;
  return std::vector{*out};
}

}  // namespace ricci::rule
