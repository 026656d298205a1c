// Pooling window by window.
#include <fmt/format.h>

#include "ricci/support/error.h"

#include "backend/cuda/codegen/expression.h"
#include "backend/cuda/structured/roles.h"
#include "type/small_dtype.h"

namespace ricci::cuda {
namespace {

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

void plan_pooling(PlanBuilder& builder, const loop::Pooling& g) {
  using Of = loop::Pooling::Of;
  if (g.of == Of::Windows) return pool_windows(builder, g);
  if (g.of == Of::ImageGradient) return pool_gradient(builder, g);
  pool_selection(builder, g);
}

}  // namespace ricci::cuda
