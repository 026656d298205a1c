// Convolutions over grids [N, C, spatial…] with any number of spatial axes, and pooling over images
// [N, C, H, W]. Geometry comes in lists with one entry a spatial axis.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ricci/op/fields.h"
#include "ricci/op/reduce.h"

namespace ricci {

/// One number for every spatial axis: of an image a height and a width.
using HeightWidth = std::vector<std::int64_t>;

}  // namespace ricci

namespace ricci::op {

/// Cross-correlation; taps that fall into the padding take no part.
///   x [N, C_in, H, W], w [C_out, C_in/groups, kH, kW]:
///   y[n, o, i, j] = Σ_{c,u,v} x[n, G(o)·C_in/groups + c, i·s + u·d - p, j·s + v·d - p]
///                           · w[o, c, u, v]
///   with G(o) = ⌊o / (C_out/groups)⌋ and H_out = ⌊(H + 2p - d(k - 1) - 1) / s⌋ + 1
/// and so on with one spatial axis, with three, with more. Geometry left at its default fits any.
struct Conv {
  std::optional<HeightWidth> kernel_size =
      {};  ///< absent: w's; a given one that agrees becomes absent
  HeightWidth stride = {1, 1};
  HeightWidth padding = {0, 0};
  HeightWidth dilation = {1, 1};
  std::int64_t groups = 1;

  static constexpr OpInfo info{
      .name = "conv",
      .operands = "x, w",
      .results = "y",
      .traits = Trait::Multilinear,
      .help = "convolution (cross-correlation) over any spatial axes, with groups",
      .formula = "x [N, C_in, H, W], w [C_out, C_in/groups, kH, kW]: "
                 "y[n, o, i, j] = Σ_{c,u,v} x[n, G(o)·C_in/groups + c, i·s + u·d - p, "
                 "j·s + v·d - p] · w[o, c, u, v], G(o) = ⌊o / (C_out/groups)⌋",
      .constraints =
          "c1 shape: x and w have one rank, 3 or more\n"
          "c2 dtype: x and w have one floating or complex dtype\n"
          "c3 attr: stride, padding and dilation have an entry a spatial axis; strides and "
          "dilations are positive, paddings not negative\n"
          "c4 attr: kernel_size, when given, is w's\n"
          "c5 shape: groups divides C_out, and w has C_in/groups channels\n"
          "c6 shape: the kernel is not empty and fits into the padded image\n"
          "c7 needs_static_dim: a symbolic size divides by its stride"};
  static void fields(auto& self, auto&& f) {
    f("kernel_size", self.kernel_size, "sizes of the kernel; absent: w's", Presence::Defaulted,
      Range::Window);
    f("stride", self.stride, "steps between windows", Presence::Defaulted, Range::Window);
    f("padding", self.padding, "zeros on each side of the image", Presence::Defaulted,
      Range::Window);
    f("dilation", self.dilation, "steps between the kernel's taps", Presence::Defaulted,
      Range::Window);
    f("groups", self.groups, "parts the channels fall into");
  }
  void normalize(std::span<const Type> operands);
  bool operator==(const Conv&) const = default;
};

/// The transpose of conv in its image: spreads dy back through the kernel.
///   dx[n, c, a, b] = Σ dy[n, o, i, j] · w[o, c', u, v] over a = i·s + u·d - p, b = j·s + v·d - p
struct Conv2dBackwardInput {
  Dims input_size = {};  ///< H and W; a stride leaves them open
  std::optional<HeightWidth> kernel_size =
      {};  ///< absent: w's; a given one that agrees becomes absent
  HeightWidth stride = {1, 1};
  HeightWidth padding = {0, 0};
  HeightWidth dilation = {1, 1};
  std::int64_t groups = 1;

  static constexpr OpInfo info{
      .name = "conv2d_backward_input",
      .operands = "dy, w",
      .results = "dx",
      .traits = Trait::Multilinear,
      .help = "the gradient of conv in its image",
      .formula = "dy [N, C_out, H_out, W_out], w [C_out, C_in/groups, kH, kW]: "
                 "dx[n, c, a, b] = Σ dy[n, o, i, j] · w[o, c', u, v] over all o of c's group and "
                 "all i, j, u, v with a = i·s + u·d - p, b = j·s + v·d - p",
      .constraints =
          "c1 shape: dy and w have one rank, 3 or more\n"
          "c2 dtype: dy and w have one floating or complex dtype\n"
          "c3 attr: input_size, stride, padding and dilation have an entry a spatial axis; "
          "strides and dilations are positive, paddings and sizes not negative\n"
          "c4 attr: kernel_size, when given, is w's\n"
          "c5 shape: groups divides C_out, and dy has w's C_out channels\n"
          "c6 shape: the kernel is not empty and fits into the padded image\n"
          "c7 needs_static_dim: a symbolic size divides by its stride\n"
          "c8 shape: dy has the size conv gives for input_size"};
  static void fields(auto& self, auto&& f) {
    f("input_size", self.input_size, "spatial sizes of the image", Presence::Required);
    f("kernel_size", self.kernel_size, "sizes of the kernel; absent: w's", Presence::Defaulted,
      Range::Window);
    f("stride", self.stride, "steps between windows", Presence::Defaulted, Range::Window);
    f("padding", self.padding, "zeros on each side of the image", Presence::Defaulted,
      Range::Window);
    f("dilation", self.dilation, "steps between the kernel's taps", Presence::Defaulted,
      Range::Window);
    f("groups", self.groups, "parts the channels fall into");
  }
  void normalize(std::span<const Type> operands);
  bool operator==(const Conv2dBackwardInput&) const = default;
};

/// The transpose of conv in its weight.
///   dw[o, c, u, v] = Σ_{n,i,j} x[n, G(o)·C_in/groups + c, i·s + u·d - p, j·s + v·d - p]
///                            · dy[n, o, i, j]
struct Conv2dBackwardWeight {
  HeightWidth kernel_size = {};
  HeightWidth stride = {1, 1};
  HeightWidth padding = {0, 0};
  HeightWidth dilation = {1, 1};
  std::int64_t groups = 1;

  static constexpr OpInfo info{
      .name = "conv2d_backward_weight",
      .operands = "x, dy",
      .results = "dw",
      .traits = Trait::Multilinear,
      .help = "the gradient of conv in its weight",
      .formula = "x [N, C_in, H, W], dy [N, C_out, H_out, W_out]: dw[o, c, u, v] = Σ_{n,i,j} "
                 "x[n, G(o)·C_in/groups + c, i·s + u·d - p, j·s + v·d - p] · dy[n, o, i, j]",
      .constraints =
          "c1 shape: x and dy have one rank, 3 or more\n"
          "c2 dtype: x and dy have one floating or complex dtype\n"
          "c3 attr: kernel_size, stride, padding and dilation have an entry a spatial axis; "
          "strides and dilations are positive, paddings not negative\n"
          "c4 shape: x and dy have one batch size\n"
          "c5 shape: groups divides C_in and C_out\n"
          "c6 shape: the kernel is not empty and fits into the padded image\n"
          "c7 needs_static_dim: a symbolic size divides by its stride, and C_in by "
          "groups\n"
          "c8 shape: dy has the size conv gives for x"};
  static void fields(auto& self, auto&& f) {
    f("kernel_size", self.kernel_size, "height and width of the kernel", Presence::Required,
      Range::Window);
    f("stride", self.stride, "steps between windows", Presence::Defaulted, Range::Window);
    f("padding", self.padding, "zeros on each side of the image", Presence::Defaulted,
      Range::Window);
    f("dilation", self.dilation, "steps between the kernel's taps", Presence::Defaulted,
      Range::Window);
    f("groups", self.groups, "parts the channels fall into");
  }
  void normalize(std::span<const Type> operands);
  bool operator==(const Conv2dBackwardWeight&) const = default;
};

/// Combines the elements of every window. Positions in the padding take no part; a mean divides by
/// kH·kW all the same unless count_include_pad is false. A NaN makes max and min NaN.
struct Pool {
  ReduceKind kind = ReduceKind::Max;
  HeightWidth kernel_size = {};
  HeightWidth stride = {1, 1};
  HeightWidth padding = {0, 0};
  bool count_include_pad = true;

  static constexpr OpInfo info{
      .name = "pool",
      .operands = "x",
      .results = "y",
      .help = "combines the elements of every window",
      .formula = "x [N, C, H, W]: y[n, c, i, j] = kind over the x[n, c, i·s + u - p, j·s + v - p] "
                 "that lie inside; H_out = ⌊(H + 2p - k) / s⌋ + 1",
      .constraints = "c1 shape: x has rank 4\n"
                     "c2 dtype: x is floating or complex\n"
                     "c3 attr: kind is sum, mean, max, min or prod; sum or mean of complex "
                     "numbers\n"
                     "c4 attr: kernel_size, stride and padding are pairs; kernels and strides are "
                     "positive, paddings not negative and less than the kernel\n"
                     "c5 shape: the image is not empty, and the window fits into it with its "
                     "padding\n"
                     "c6 needs_static_dim: a symbolic size divides by its stride"};
  static void fields(auto& self, auto&& f) {
    f("kind", self.kind, "how a window is combined", Presence::Required);
    f("kernel_size", self.kernel_size, "height and width of the window", Presence::Required,
      Range::Window);
    f("stride", self.stride, "steps between windows", Presence::Defaulted, Range::Window);
    f("padding", self.padding, "positions on each side that take no part", Presence::Defaulted,
      Range::Window);
    f("count_include_pad", self.count_include_pad, "a mean counts padding in its divisor");
  }
  bool operator==(const Pool&) const = default;
};

/// Adds dy at every window's maximum: the first in row-major order, a NaN before all others.
struct MaxPool2dBackward {
  HeightWidth kernel_size = {};
  HeightWidth stride = {1, 1};
  HeightWidth padding = {0, 0};

  static constexpr OpInfo info{
      .name = "max_pool2d_backward",
      .operands = "x, dy",
      .results = "dx",
      .help = "the gradient of max pooling",
      .formula = "dx[n, c, a, b] = Σ dy[n, c, i, j] over the windows (i, j) whose first maximum "
                 "is x[n, c, a, b]",
      .constraints = "c1 shape: x and dy have rank 4\n"
                     "c2 dtype: x and dy have one floating dtype\n"
                     "c3 attr: kernel_size, stride and padding are pairs; kernels and strides are "
                     "positive, paddings not negative and less than the kernel\n"
                     "c4 shape: the image is not empty, and the window fits into it with its "
                     "padding\n"
                     "c5 needs_static_dim: a symbolic size divides by its stride\n"
                     "c6 shape: dy has the shape of pooled x"};
  static void fields(auto& self, auto&& f) {
    f("kernel_size", self.kernel_size, "height and width of the window", Presence::Required,
      Range::Window);
    f("stride", self.stride, "steps between windows", Presence::Defaulted, Range::Window);
    f("padding", self.padding, "positions on each side that take no part", Presence::Defaulted,
      Range::Window);
  }
  bool operator==(const MaxPool2dBackward&) const = default;
};

/// v at every window's maximum of x: the first in row-major order, a NaN before all others. The
/// transpose of max_pool2d_backward, and the tangent of max pooling.
struct MaxPool2dSelect {
  HeightWidth kernel_size = {};
  HeightWidth stride = {1, 1};
  HeightWidth padding = {0, 0};

  static constexpr OpInfo info{
      .name = "max_pool2d_select",
      .operands = "x, v",
      .results = "out",
      .help = "one operand at the places where another has its windows' maxima",
      .formula = "out[n, c, i, j] = v at the first maximum of x in window (i, j)",
      .constraints = "c1 shape: x has rank 4\n"
                     "c2 dtype: x and v have one floating dtype\n"
                     "c3 attr: kernel_size, stride and padding are pairs; kernels and strides are "
                     "positive, paddings not negative and less than the kernel\n"
                     "c4 shape: the image is not empty, and the window fits into it with its "
                     "padding\n"
                     "c5 needs_static_dim: a symbolic size divides by its stride\n"
                     "c6 shape: v has x's shape"};
  static void fields(auto& self, auto&& f) {
    f("kernel_size", self.kernel_size, "height and width of the window", Presence::Required,
      Range::Window);
    f("stride", self.stride, "steps between windows", Presence::Defaulted, Range::Window);
    f("padding", self.padding, "positions on each side that take no part", Presence::Defaulted,
      Range::Window);
  }
  bool operator==(const MaxPool2dSelect&) const = default;
};

}  // namespace ricci::op
