// Derivatives and batching of conv and its two gradients. The three are one trilinear form
//   Σ x[n, c, …]·w[o, c', u…]·y[n, o, i…]
// with one of the factors left open: each is the derivative of the others, with the conjugate of
// the factor that stays, and all are batched the same way.
#include <array>
#include <utility>

#include "rule/axis_moves.h"
#include "rule/control/loop_rewriting.h"
#include "rule/derivative_parts.h"
#include "rule/tables/batch_rules.h"
#include "rule/tables/vjp_rules.h"

namespace ricci::rule {
namespace {

HeightWidth kernel_of(Value w) {
  HeightWidth kernel;
  for (std::size_t a = 2; a < w.rank(); ++a) kernel.push_back(w.dims()[a].value());
  return kernel;
}

// The factor that is left open, with the geometry of any of the three ops.
template <class Op>
Value image_product(const Op& op, Value x, Value w) {
  return conv(
      x, w,
      {.stride = op.stride, .padding = op.padding, .dilation = op.dilation, .groups = op.groups});
}
template <class Op>
Value for_image(const Op& op, Value dy, Value w, const Type& x) {
  return conv2d_backward_input(dy, w,
                               {.input_size = {x.dims.begin() + 2, x.dims.end()},
                                .stride = op.stride,
                                .padding = op.padding,
                                .dilation = op.dilation,
                                .groups = op.groups});
}
template <class Op>
Value for_weight(const Op& op, Value x, Value dy, HeightWidth kernel) {
  return conv2d_backward_weight(x, dy,
                                {.kernel_size = std::move(kernel),
                                 .stride = op.stride,
                                 .padding = op.padding,
                                 .dilation = op.dilation,
                                 .groups = op.groups});
}

}  // namespace

Cotangents vjp(const op::Conv& op, const VjpContext& c) {
  Cotangents out = c.none();
  const Value g = c.cotangent();
  if (c.needs(0)) out[0] = for_image(op, g, conj(c[1]), c[0].type());
  if (c.needs(1)) out[1] = for_weight(op, conj(c[0]), g, kernel_of(c[1]));
  return out;
}

Cotangents vjp(const op::Conv2dBackwardInput& op, const VjpContext& c) {
  Cotangents out = c.none();
  const Value g = c.cotangent();
  if (c.needs(0)) out[0] = image_product(op, g, conj(c[1]));
  if (c.needs(1)) out[1] = for_weight(op, g, conj(c[0]), kernel_of(c[1]));  // [BW-06]
  return out;
}

Cotangents vjp(const op::Conv2dBackwardWeight& op, const VjpContext& c) {
  Cotangents out = c.none();
  const Value g = c.cotangent();
  if (c.needs(0)) out[0] = for_image(op, conj(c[1]), g, c[0].type());
  if (c.needs(1)) out[1] = image_product(op, conj(c[0]), g);
  return out;
}

namespace {

enum class Factor : std::uint8_t { Image, Weight, Output };

// The axis that carries the batch. Two factors share each of the first three, so a batch of those
// two costs nothing for the third; the groups are shared by all.
enum class Carrier : std::uint8_t { Images, InputChannels, OutputChannels, Groups };

// Where a factor holds a carrier: the axis, and whether it comes after the groups on that axis.
struct Place {
  std::size_t axis = 0;
  bool within_group = false;
};
Place place_of(Factor factor, Carrier carrier) {
  const std::size_t channels = factor == Factor::Weight ? 0 : 1;
  switch (carrier) {
    case Carrier::Images: return {0};
    case Carrier::Groups: return {channels};
    case Carrier::OutputChannels: return {channels, true};
    case Carrier::InputChannels: return factor == Factor::Weight ? Place{1} : Place{channels, true};
  }
  throw InternalError("a convolution has no operand or result of this role");
}

// An example's dims with the carrying axis split into groups and the rest, where the batch goes
// between the two.
struct Split {
  Dims dims;
  std::size_t at = 0;  // of the batch
};
Split split_at(const Dims& example, Place place, std::int64_t groups) {
  if (!place.within_group || groups == 1) return {example, place.axis};
  Dims dims = example;
  dims[place.axis] = *Dim::divide(dims[place.axis], groups);
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(place.axis), Dim(groups));
  return {std::move(dims), place.axis + 1};
}
Dims inserted(Dims dims, std::size_t at, const Dim& size) {
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(at), size);
  return dims;
}

// [B, …] → […, groups·B·rest, …]
Value carried(const VmapContext& c, Value v, const Dims& example, Place place,
              std::int64_t groups) {
  const Split s = split_at(example, place, groups);
  const Value apart = with_axis_moved(reshape_to(v, inserted(s.dims, 0, c.batch())), 0, s.at);
  Dims merged = example;
  merged[place.axis] = c.batch() * merged[place.axis];
  return reshape_to(apart, std::move(merged));
}

// The way back.
Value released(const VmapContext& c, Value v, const Dims& example, Place place,
               std::int64_t groups) {
  const Split s = split_at(example, place, groups);
  const Value apart = reshape_to(v, inserted(s.dims, s.at, c.batch()));
  return reshape_to(with_axis_moved(apart, s.at, 0), c.with_batch(example));
}

// The axis shared by the result and the one batched operand. With both operands batched, or with
// channels not known to be a multiple of the groups, there is only the groups' axis.
Carrier carrier_for(const VmapContext& c, Factor result, std::array<Factor, 2> operands,
                    std::int64_t groups) {
  if (c.batched(0) && c.batched(1)) return Carrier::Groups;
  const std::size_t k = c.batched(0) ? 0 : 1;
  const Factor operand = operands[k];
  if (result != Factor::Weight && operand != Factor::Weight) return Carrier::Images;
  const bool image = result == Factor::Image || operand == Factor::Image;
  if (image) return Carrier::InputChannels;
  const Dims& dims = c.type(k).dims;
  const Dim& channels = dims[operand == Factor::Weight ? 0 : 1];
  return Dim::divide(channels, groups) ? Carrier::OutputChannels : Carrier::Groups;
}

// One example after the other, for a batch whose size is not known: a number of groups is one.
template <class Product>
BatchedValues batch_by_loop(const Product& op, const VmapContext& c) {
  std::array<std::size_t, 2> order{0, 1};  // what all examples share comes first
  if (c.batched(0) && !c.batched(1)) std::swap(order[0], order[1]);
  op::Scan loop{.length = c.batch(), .num_carry = 0};
  std::vector<Value> operands;
  std::vector<Type> examples;
  for (const std::size_t k : order) {
    operands.push_back(c[k]);
    if (c.batched(k)) operands.back() = c.lifted(k);
    examples.push_back(c.type(k));
    ++(c.batched(k) ? loop.num_xs : loop.num_bcast);
  }
  const auto body = make_body(
      "body", examples,
      [&](Graph& graph, std::span<const Value> in) {
        const std::array<Value, 2> own{in[order[0] == 0 ? 0 : 1], in[order[0] == 0 ? 1 : 0]};
        return graph.add_node(Op(op), own);
      },
      c.graph());
  return {add_scan(c.graph(), loop, operands, body)[0]};
}

template <class Product>
BatchedValues batch_product(const Product& op, const VmapContext& c, Factor result,
                            std::array<Factor, 2> operands) {
  if (c.batch().is(0)) {  // no number of groups says this
    const Type& example = c.node().types[0];
    return {filled(c.graph(), example.with(c.with_batch(example.dims)), 0)};
  }
  const Carrier carrier = carrier_for(c, result, operands, op.groups);
  if (carrier == Carrier::Groups && !c.batch().is_static()) return batch_by_loop(op, c);
  Product wide = op;
  if (carrier == Carrier::Groups) wide.groups = op.groups * c.batch().value();
  std::array<Value, 2> carrying;
  for (std::size_t k = 0; k < 2; ++k) {
    const bool takes_part = c.batched(k) || carrier == Carrier::Groups;
    carrying[k] = takes_part ? carried(c, c.lifted(k), c.type(k).dims,
                                       place_of(operands[k], carrier), op.groups)
                             : c[k];
  }
  const BatchedValue out = c.emit(Op(wide), carrying)[0];
  return {released(c, out.value, c.node().types[0].dims, place_of(result, carrier), op.groups)};
}

}  // namespace

// [CV-03] shared or batched weights alike
BatchedValues batch(const op::Conv& op, const VmapContext& c) {
  return batch_product(op, c, Factor::Output, {Factor::Image, Factor::Weight});
}
BatchedValues batch(const op::Conv2dBackwardInput& op, const VmapContext& c) {
  return batch_product(op, c, Factor::Image, {Factor::Output, Factor::Weight});
}
// [BW-07] a weight gradient per example
BatchedValues batch(const op::Conv2dBackwardWeight& op, const VmapContext& c) {
  return batch_product(op, c, Factor::Weight, {Factor::Image, Factor::Output});
}

}  // namespace ricci::rule
