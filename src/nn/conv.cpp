#include "ricci/build/conv.h"

#include "ricci/array/create.h"
#include "ricci/array/ops.h"
#include "ricci/array/shape.h"
#include "ricci/nn/layers.h"
#include "ricci/op/ops.h"

#include "array/node.h"
#include "nn/layer.h"

namespace ricci::nn {
namespace {

void require_groups(std::int64_t in, std::int64_t out, std::int64_t groups, const char* layer) {
  require_setting(groups > 0 && in % groups == 0 && out % groups == 0, layer,
                  "groups are a positive number that divides both counts of channels");
}

Array with_bias(const Array& y, const Array& b, Here where) {
  if (!b.valid()) return y;
  Dims shape(y.rank(), Dim(1));
  shape[1] = b.dim(0);
  return add(y, reshape(b, shape, where), where);
}

HeightWidth listed(const Triple& t) { return {t.sizes.begin(), t.sizes.end()}; }
HeightWidth listed(std::int64_t size) { return {size}; }

template <class Sizes>
ConvTransposeGeometry<Sizes> geometry_of(const ConvTransposeLayerOptions<Sizes>& o) {
  return {o.stride, o.padding, o.output_padding, o.dilation, o.groups};
}

template <class Sizes>
Array transposed(const Array& x, const Array& w, const ConvTransposeGeometry<Sizes>& g,
                 Here where) {
  return detail::lift_one({x, w}, where, [&](auto v) {
    return ricci::conv_transpose(v[0], v[1],
                                 ConvTransposeOptions{.stride = listed(g.stride),
                                                      .padding = listed(g.padding),
                                                      .dilation = listed(g.dilation),
                                                      .output_padding = listed(g.output_padding),
                                                      .groups = g.groups},
                                 where);
  });
}

}  // namespace

Conv1d::Conv1d(std::int64_t in, std::int64_t out, std::int64_t window,
               const ConvLayerOptions<std::int64_t>& options)
    : geometry{.stride = options.stride,
               .padding = options.padding,
               .dilation = options.dilation,
               .groups = options.groups} {
  require_groups(in, out, options.groups, "Conv1d");
  w = drawn_weight("Conv1d", options.init, {out, in / options.groups, window}, options.dtype);
  if (options.bias) b = zeros({out}, {.dtype = options.dtype});
}

Array Conv1d::operator()(const Array& x, Here where) const {
  return with_bias(conv1d(x, w, geometry, where), b, where);
}

Conv2d::Conv2d(std::int64_t in, std::int64_t out, Pair window,
               const ConvLayerOptions<Pair>& options)
    : geometry{.stride = options.stride,
               .padding = options.padding,
               .dilation = options.dilation,
               .groups = options.groups} {
  require_groups(in, out, options.groups, "Conv2d");
  w = drawn_weight("Conv2d", options.init, {out, in / options.groups, window.height, window.width},
                   options.dtype);
  if (options.bias) b = zeros({out}, {.dtype = options.dtype});
}

Array Conv2d::operator()(const Array& x, Here where) const {
  return with_bias(conv2d(x, w, geometry, where), b, where);
}

Conv3d::Conv3d(std::int64_t in, std::int64_t out, Triple window,
               const ConvLayerOptions<Triple>& options)
    : geometry{.stride = options.stride,
               .padding = options.padding,
               .dilation = options.dilation,
               .groups = options.groups} {
  require_groups(in, out, options.groups, "Conv3d");
  const auto& k = window.sizes;
  w = drawn_weight("Conv3d", options.init, {out, in / options.groups, k[0], k[1], k[2]},
                   options.dtype);
  if (options.bias) b = zeros({out}, {.dtype = options.dtype});
}

Array Conv3d::operator()(const Array& x, Here where) const {
  const op::Conv attributes{.kernel_size = {},
                            .stride = listed(geometry.stride),
                            .padding = listed(geometry.padding),
                            .dilation = listed(geometry.dilation),
                            .groups = geometry.groups};
  return with_bias(conv(x, w, attributes, where), b, where);
}

ConvTranspose2d::ConvTranspose2d(std::int64_t in, std::int64_t out, Pair window,
                                 const ConvTranspose2dLayerOptions& options)
    : geometry{.stride = options.stride,
               .padding = options.padding,
               .output_padding = options.output_padding,
               .dilation = options.dilation,
               .groups = options.groups} {
  require_groups(in, out, options.groups, "ConvTranspose2d");
  w = drawn_weight("ConvTranspose2d", options.init,
                   {in, out / options.groups, window.height, window.width}, options.dtype);
  if (options.bias) b = zeros({out}, {.dtype = options.dtype});
}

Array ConvTranspose2d::operator()(const Array& x, Here where) const {
  return with_bias(conv_transpose2d(x, w, geometry, where), b, where);
}

ConvTranspose1d::ConvTranspose1d(std::int64_t in, std::int64_t out, std::int64_t window,
                                 const ConvTransposeLayerOptions<std::int64_t>& options)
    : geometry(geometry_of(options)) {
  require_groups(in, out, options.groups, "ConvTranspose1d");
  w = drawn_weight("ConvTranspose1d", options.init, {in, out / options.groups, window},
                   options.dtype);
  if (options.bias) b = zeros({out}, {.dtype = options.dtype});
}

Array ConvTranspose1d::operator()(const Array& x, Here where) const {
  return with_bias(transposed(x, w, geometry, where), b, where);
}

ConvTranspose3d::ConvTranspose3d(std::int64_t in, std::int64_t out, Triple window,
                                 const ConvTransposeLayerOptions<Triple>& options)
    : geometry(geometry_of(options)) {
  require_groups(in, out, options.groups, "ConvTranspose3d");
  const auto& k = window.sizes;
  w = drawn_weight("ConvTranspose3d", options.init, {in, out / options.groups, k[0], k[1], k[2]},
                   options.dtype);
  if (options.bias) b = zeros({out}, {.dtype = options.dtype});
}

Array ConvTranspose3d::operator()(const Array& x, Here where) const {
  return with_bias(transposed(x, w, geometry, where), b, where);
}

}  // namespace ricci::nn
