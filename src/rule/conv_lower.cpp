// Convolutions and pooling as calls.
#include "rule/tables/lower_rules.h"

namespace ricci::rule {
namespace {

loop::HeightAndWidth two(const HeightWidth& pair) { return {pair[0], pair[1]}; }

// The height and width of a grid; one with a single spatial axis is a row.
loop::HeightAndWidth spatial(std::span<const std::int64_t> sizes, std::int64_t height) {
  return sizes.size() == 1 ? loop::HeightAndWidth{height, sizes[0]}
                           : loop::HeightAndWidth{sizes[0], sizes[1]};
}

// From the sizes of x, w and y. More than two spatial axes are no role's: `convolution_by_taps`;
// nor are complex numbers, of whose parts a real one is made.
template <class Op>
Lowering convolution(const Op& op, loop::Convolution::Of of, DType dtype, const StaticDims& x,
                     const StaticDims& w, const StaticDims& y) {
  if (x.size() > 4 || is_complex(dtype)) return {};
  const auto sizes = [](const StaticDims& dims) { return spatial(std::span(dims).subspan(2), 1); };
  return as_call(loop::Convolution{.of = of,
                                   .dtype = dtype,
                                   .images = x[0],
                                   .channels_in = x[1],
                                   .channels_out = w[0],
                                   .groups = op.groups,
                                   .size_in = sizes(x),
                                   .size_out = sizes(y),
                                   .kernel = sizes(w),
                                   .stride = spatial(op.stride, 1),
                                   .padding = spatial(op.padding, 0),
                                   .dilation = spatial(op.dilation, 1)});
}

// From the sizes of the image and of its windows.
template <class Op>
loop::Pooling pooling(const Op& op, loop::Pooling::Of of, DType dtype, const StaticDims& x,
                      const StaticDims& y) {
  return {.of = of,
          .dtype = dtype,
          .planes = x[0] * x[1],
          .size_in = {x[2], x[3]},
          .size_out = {y[2], y[3]},
          .kernel = two(op.kernel_size),
          .stride = two(op.stride),
          .padding = two(op.padding)};
}

}  // namespace

Lowering lower(const op::Conv& op, const LowerContext& c) {
  return convolution(op, loop::Convolution::Of::Image, c.dtypes[0], c.operands[0], c.operands[1],
                     c.result);
}
Lowering lower(const op::Conv2dBackwardInput& op, const LowerContext& c) {
  return convolution(op, loop::Convolution::Of::ImageGradient, c.dtypes[0], c.result, c.operands[1],
                     c.operands[0]);
}
Lowering lower(const op::Conv2dBackwardWeight& op, const LowerContext& c) {
  return convolution(op, loop::Convolution::Of::WeightGradient, c.dtypes[0], c.operands[0],
                     c.result, c.operands[1]);
}

Lowering lower(const op::Pool& op, const LowerContext& c) {
  loop::Pooling pool =
      pooling(op, loop::Pooling::Of::Windows, c.dtypes[0], c.operands[0], c.result);
  pool.kind = op.kind;
  pool.count_padding = op.count_include_pad;
  return as_call(pool);
}
Lowering lower(const op::MaxPool2dBackward& op, const LowerContext& c) {
  return as_call(
      pooling(op, loop::Pooling::Of::ImageGradient, c.dtypes[0], c.operands[0], c.operands[1]));
}
Lowering lower(const op::MaxPool2dSelect& op, const LowerContext& c) {
  return as_call(pooling(op, loop::Pooling::Of::Selection, c.dtypes[0], c.operands[0], c.result));
}

}  // namespace ricci::rule
