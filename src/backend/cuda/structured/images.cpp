// Convolutions as products whose matrices are never made, and pooling window by window.
#include <algorithm>

#include <fmt/format.h>

#include "ricci/support/error.h"

#include "backend/cuda/codegen/expression.h"
#include "backend/cuda/structured/roles.h"
#include "backend/cuda/structured/tiles.h"

namespace ricci::cuda {
namespace {

// The sizes of a convolution as constants of its kernels.
std::string names_of(const loop::Convolution& g) {
  return fmt::format(
      "const I C = {}, O = {}, CG = {}, OG = {}, H_IN = {}, W_IN = {}, H_OUT = {}, W_OUT = {}, "
      "KH = {}, KW = {}, SH = {}, SW = {}, PH = {}, PW = {}, DH = {}, DW = {};",
      g.channels_in, g.channels_out, g.channels_in / g.groups, g.channels_out / g.groups,
      g.size_in[0], g.size_in[1], g.size_out[0], g.size_out[1], g.kernel[0], g.kernel[1],
      g.stride[0], g.stride[1], g.padding[0], g.padding[1], g.dilation[0], g.dilation[1]);
}

std::string load_text(DType dtype, std::string_view place) {
  return fmt::format("value = {};", from_stored(dtype, std::string(place)));
}

// x, w -> y
TiledSums of_image(const loop::Convolution& g) {
  TiledSums s{.dtype = g.dtype,
              .matrices = g.groups,
              .rows = g.channels_out / g.groups,
              .depth = g.taps(),
              .columns = g.images * g.size_out[0] * g.size_out[1]};
  s.a = load_text(g.dtype, "b[(z * OG + m) * K + k]");
  s.b = fmt::format(
      "const I x = n % W_OUT, y = n / W_OUT % H_OUT, image = n / W_OUT / H_OUT;\n"
      "        const I v = k % KW, u = k / KW % KH, channel = k / KW / KH;\n"
      "        const I row = y * SH - PH + u * DH, column = x * SW - PW + v * DW;\n"
      "        if (row >= 0 && row < H_IN && column >= 0 && column < W_IN) {}",
      load_text(g.dtype, "a[((image * C + z * CG + channel) * H_IN + row) * W_IN + column]"));
  s.c = "((n / (W_OUT * H_OUT)) * O + z * OG + m) * (H_OUT * W_OUT) + n % (W_OUT * H_OUT)";
  return s;
}

// dy, w -> dx
TiledSums of_image_gradient(const loop::Convolution& g) {
  TiledSums s{.dtype = g.dtype,
              .matrices = g.groups,
              .rows = g.channels_in / g.groups,
              .depth = g.channels_out / g.groups * g.kernel[0] * g.kernel[1],
              .columns = g.images * g.size_in[0] * g.size_in[1]};
  s.a = load_text(g.dtype, "b[((z * OG + k / (KH * KW)) * CG + m) * (KH * KW) + k % (KH * KW)]");
  s.b = fmt::format(
      "const I x = n % W_IN, y = n / W_IN % H_IN, image = n / W_IN / H_IN;\n"
      "        const I v = k % KW, u = k / KW % KH, channel = k / KW / KH;\n"
      "        const I row = y + PH - u * DH, column = x + PW - v * DW;\n"
      "        if (row >= 0 && column >= 0 && row % SH == 0 && column % SW == 0 &&\n"
      "            row / SH < H_OUT && column / SW < W_OUT) {}",
      load_text(g.dtype,
                "a[((image * O + z * OG + channel) * H_OUT + row / SH) * W_OUT + column / SW]"));
  s.c = "((n / (W_IN * H_IN)) * C + z * CG + m) * (H_IN * W_IN) + n % (W_IN * H_IN)";
  return s;
}

// x, dy -> dw
TiledSums of_weight_gradient(const loop::Convolution& g) {
  TiledSums s{.dtype = g.dtype,
              .matrices = g.groups,
              .rows = g.channels_out / g.groups,
              .depth = g.images * g.size_out[0] * g.size_out[1],
              .columns = g.taps()};
  s.a = load_text(
      g.dtype,
      "b[((k / (H_OUT * W_OUT)) * O + z * OG + m) * (H_OUT * W_OUT) + k % (H_OUT * W_OUT)]");
  s.b = fmt::format(
      "const I x = k % W_OUT, y = k / W_OUT % H_OUT, image = k / W_OUT / H_OUT;\n"
      "        const I v = n % KW, u = n / KW % KH, channel = n / KW / KH;\n"
      "        const I row = y * SH - PH + u * DH, column = x * SW - PW + v * DW;\n"
      "        if (row >= 0 && row < H_IN && column >= 0 && column < W_IN) {}",
      load_text(g.dtype, "a[((image * C + z * CG + channel) * H_IN + row) * W_IN + column]"));
  s.c = "(z * OG + m) * N + n";
  return s;
}

std::string window_names(const loop::Pooling& g) {
  return fmt::format(
      "const i64 H_IN = {}, W_IN = {}, H_OUT = {}, W_OUT = {}, KH = {}, KW = {}, SH = {}, SW = {}, "
      "PH = {}, PW = {};\n  ",
      g.size_in[0], g.size_in[1], g.size_out[0], g.size_out[1], g.kernel[0], g.kernel[1],
      g.stride[0], g.stride[1], g.padding[0], g.padding[1]);
}

// The first place of a window's maximum; a NaN counts as larger than everything.
std::string find_maximum(DType dtype, const loop::Pooling& g) {
  return fmt::format(R"(
typedef {0} H;
__device__ inline i64 maximum(const {1}* x, i64 top, i64 left) {{
  {2}
  i64 place = -1;
  H best = 0;
  for (i64 u = top < 0 ? -top : 0; u < KH && top + u < H_IN; ++u)
    for (i64 v = left < 0 ? -left : 0; v < KW && left + v < W_IN; ++v) {{
      const i64 at = (top + u) * W_IN + left + v;
      const H here = {3};
      if (place < 0 || here > best || (here != here && best == best)) {{
        best = here;
        place = at;
      }}
    }}
  return place;
}}
)",
                     held_type(dtype), stored_type(dtype), window_names(g),
                     from_stored(dtype, "x[at]"));
}

std::string combine_window(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::Max: return "total > here || total != total ? total : here";
    case ReduceKind::Min: return "total < here || total != total ? total : here";
    case ReduceKind::Prod: return "total * here";
    case ReduceKind::Sum:
    case ReduceKind::Mean: return "total + here";
    case ReduceKind::Any:
    case ReduceKind::All:
    case ReduceKind::LogSumExp: break;
  }
  throw InternalError("a pooling of no known kind");
}

void pool_windows(PlanBuilder& builder, const loop::Pooling& g) {
  const std::string count =
      g.count_padding ? "H(KH) * H(KW)"
                      : "H((top + KH < H_IN ? top + KH : H_IN) - (top > 0 ? top : 0)) *\n"
                        "        H((left + KW < W_IN ? left + KW : W_IN) - (left > 0 ? left : 0))";
  const std::string body = fmt::format(
      R"(const i64 left = i % W_OUT * SW - PW, top = i / W_OUT % H_OUT * SH - PH;
    const i64 plane = i / W_OUT / H_OUT * (H_IN * W_IN);
    H total = {};
    for (i64 u = top < 0 ? -top : 0; u < KH && top + u < H_IN; ++u)
      for (i64 v = left < 0 ? -left : 0; v < KW && left + v < W_IN; ++v) {{
        const H here = {};
        total = {};
      }}
    {}y[i] = {};)",
      reduction_of_nothing(g.kind == ReduceKind::Mean ? ReduceKind::Sum : g.kind, widened(g.dtype)),
      from_stored(g.dtype, "x[plane + (top + u) * W_IN + left + v]"), combine_window(g.kind),
      g.kind == ReduceKind::Mean ? "total /= " + count + ";\n    " : "",
      to_stored(g.dtype, "total"));
  const std::vector<Parameter> parameters = {{builder.row_major(0), g.dtype, "x"},
                                             {result(0), g.dtype, "y", true}};
  builder.for_each(g.planes * g.size_out[0] * g.size_out[1], parameters,
                   window_names(g) + "  " + body, fmt::format("typedef {} H;", held_type(g.dtype)));
}

// Every place of the image asks the windows it lies in.
void pool_gradient(PlanBuilder& builder, const loop::Pooling& g) {
  const std::string body = fmt::format(
      R"(const i64 column = i % W_IN, row = i / W_IN % H_IN, plane = i / W_IN / H_IN;
    const i64 place = i % (H_IN * W_IN);
    const i64 first_y = row + PH - KH + 1 <= 0 ? 0 : (row + PH - KH + SH) / SH;
    const i64 first_x = column + PW - KW + 1 <= 0 ? 0 : (column + PW - KW + SW) / SW;
    H total = 0;
    for (i64 y = first_y; y < H_OUT && y * SH - PH <= row; ++y)
      for (i64 x = first_x; x < W_OUT && x * SW - PW <= column; ++x)
        if (maximum(image + plane * (H_IN * W_IN), y * SH - PH, x * SW - PW) == place)
          total += {};
    dx[i] = {};)",
      from_stored(g.dtype, "dy[(plane * H_OUT + y) * W_OUT + x]"), to_stored(g.dtype, "total"));
  const std::vector<Parameter> parameters = {{builder.row_major(0), g.dtype, "image"},
                                             {builder.row_major(1), g.dtype, "dy"},
                                             {result(0), g.dtype, "dx", true}};
  builder.for_each(g.planes * g.size_in[0] * g.size_in[1], parameters,
                   window_names(g) + "  " + body, find_maximum(g.dtype, g));
}

void pool_selection(PlanBuilder& builder, const loop::Pooling& g) {
  const std::string body =
      R"(const i64 left = i % W_OUT * SW - PW, top = i / W_OUT % H_OUT * SH - PH;
    const i64 plane = i / W_OUT / H_OUT * (H_IN * W_IN);
    y[i] = chosen[plane + maximum(x + plane, top, left)];)";
  const std::vector<Parameter> parameters = {{builder.row_major(0), g.dtype, "x"},
                                             {builder.row_major(1), g.dtype, "chosen"},
                                             {result(0), g.dtype, "y", true}};
  builder.for_each(g.planes * g.size_out[0] * g.size_out[1], parameters,
                   window_names(g) + "  " + body, find_maximum(g.dtype, g));
}

}  // namespace

void plan_convolution(PlanBuilder& builder, const loop::Convolution& g) {
  using Of = loop::Convolution::Of;
  TiledSums sums = g.of == Of::Image           ? of_image(g)
                   : g.of == Of::ImageGradient ? of_image_gradient(g)
                                               : of_weight_gradient(g);
  sums.begin = names_of(g);
  sums.reach = std::max({g.images * g.x_image(), g.images * g.y_image(), g.weights(),
                         g.size_in[0] + g.kernel[0] * g.dilation[0] + g.padding[0],
                         g.size_in[1] + g.kernel[1] * g.dilation[1] + g.padding[1],
                         g.size_out[0] * g.stride[0], g.size_out[1] * g.stride[1]});
  if (sums.depth == 0) return builder.zeros(result(0), bytes_of(builder.step().results[0]));
  sums.parts = parts_for(sums);
  const Place first = builder.row_major(0);
  plan_tiled_sums(builder, sums, first, builder.row_major(1));
}

void plan_pooling(PlanBuilder& builder, const loop::Pooling& g) {
  using Of = loop::Pooling::Of;
  if (g.of == Of::Windows) return pool_windows(builder, g);
  if (g.of == Of::ImageGradient) return pool_gradient(builder, g);
  pool_selection(builder, g);
}

}  // namespace ricci::cuda
