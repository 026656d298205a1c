// Pooling window by window: a thread has a window, or, of a gradient whose windows lie in each
// other, a place of the image.
#include <algorithm>

#include <fmt/format.h>

#include "ricci/support/error.h"

#include "backend/cuda/codegen/expression.h"
#include "backend/cuda/structured/roles.h"
#include "type/small_dtype.h"

namespace ricci::cuda {
namespace {

// Does a window of this axis ever leave the image?
bool has_edges(const loop::Pooling& g, std::size_t a) {
  return g.padding[a] > 0 || (g.size_out[a] - 1) * g.stride[a] + g.kernel[a] > g.size_in[a];
}

// Is every place of the image in exactly one window?
bool covers_once(const loop::Pooling& g) {
  const auto covers = [&](std::size_t a) {
    return g.padding[a] == 0 && g.stride[a] == g.kernel[a] &&
           g.size_out[a] * g.kernel[a] == g.size_in[a];
  };
  return covers(0) && covers(1);
}

// Sizes; T as it is stored, H as it is computed with; and `each_of`, which shows `visit` what is in
// a window, and its place in the plane, in order.
std::string window_code(const loop::Pooling& g) {
  constexpr std::int64_t Narrow = std::int64_t{1} << 30;
  constexpr std::int64_t WrittenOut = 64;
  const bool narrow =
      g.planes * std::max(g.size_in[0] * g.size_in[1], g.size_out[0] * g.size_out[1]) < Narrow &&
      std::max({g.kernel[0] + g.padding[0], g.kernel[1] + g.padding[1], g.size_out[0] * g.stride[0],
                g.size_out[1] * g.stride[1]}) < Narrow;
  const bool edges = has_edges(g, 0) || has_edges(g, 1);
  const bool lines =
      covers_once(g) && (g.kernel[1] == 2 || (g.kernel[1] == 4 && size_of(g.dtype) <= 4));
  const bool written_out = g.kernel[0] * g.kernel[1] <= WrittenOut;
  std::string out = fmt::format(
      "typedef {} T;\ntypedef {} H;\ntypedef {} I;\n"
      "const I H_IN = {}, W_IN = {}, H_OUT = {}, W_OUT = {}, KH = {}, KW = {}, SH = {}, SW = {}, "
      "PH = {}, PW = {};\nconst int WIDE = {};\nstruct __align__(sizeof(T) * WIDE) Line {{\n  T "
      "at[WIDE];\n}};\n",
      stored_type(g.dtype), held_type(g.dtype), narrow ? "int" : "i64", g.size_in[0], g.size_in[1],
      g.size_out[0], g.size_out[1], g.kernel[0], g.kernel[1], g.stride[0], g.stride[1],
      g.padding[0], g.padding[1], lines ? g.kernel[1] : 1);
  const auto head = [&](const char* i, const char* begin, const char* k, const char* size) {
    if (!edges) return fmt::format("for (I {0} = 0; {0} < {1}; ++{0})", i, k);
    return fmt::format("for (I {0} = {1} < 0 ? -{1} : 0; {0} < {2} && {1} + {0} < {3}; ++{0})", i,
                       begin, k, size);
  };
  const char* const unrolled = written_out && !edges ? "#pragma unroll\n" : "";
  out += fmt::format(
      "template <class F>\n__device__ inline void each_of(const T* x, I top, I left, F visit) {{\n"
      "{0}  {1} {{\n    const I row = (top + u) * W_IN + left;\n{2}{0}    {3} visit({4}, row + "
      "v);\n"
      "  }}\n}}\n",
      unrolled, head("u", "top", "KH", "H_IN"),
      lines ? "    const Line line = *(const Line*)(x + row);\n" : "",
      head("v", "left", "KW", "W_IN"), from_stored(g.dtype, lines ? "line.at[v]" : "x[row + v]"));
  return out;
}

// The first place of a window's maximum; a NaN counts as larger than everything.
constexpr std::string_view FindMaximum = R"(
__device__ inline I maximum(const T* x, I top, I left) {
  I place = -1;
  H best = 0;
  each_of(x, top, left, [&](H here, I at) {
    if (place < 0 || here > best || (here != here && best == best)) {
      best = here;
      place = at;
    }
  });
  return place;
}
)";

constexpr std::string_view OwnWindow =
    R"(const I n = I(i), left = n % W_OUT * SW - PW, top = n / W_OUT % H_OUT * SH - PH;
    const i64 plane = i64(n / W_OUT / H_OUT) * (H_IN * W_IN);
    )";

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
      "{}H total = {};\n"
      "    each_of(x + plane, top, left, [&](H here, I) {{ total = {}; }});\n"
      "    {}y[i] = {};",
      OwnWindow,
      reduction_of_nothing(g.kind == ReduceKind::Mean ? ReduceKind::Sum : g.kind, widened(g.dtype)),
      combine_window(g.kind), g.kind == ReduceKind::Mean ? "total /= " + count + ";\n    " : "",
      to_stored(g.dtype, "total"));
  const std::vector<Parameter> parameters = {{builder.row_major(0), g.dtype, "x"},
                                             {result(0), g.dtype, "y", true}};
  builder.for_each(g.planes * g.size_out[0] * g.size_out[1], parameters, body, window_code(g));
}

// Every window writes what is in it, as many neighbours at a time as a `Line` has.
std::string gradient_of_windows(DType dtype) {
  return fmt::format(
      R"({}const I place = maximum(image + plane, top, left);
    const T given = {}, zero = {};
    for (I u = 0; u < KH; ++u)
      for (I v = 0; v < KW; v += WIDE) {{
        const I at = (top + u) * W_IN + left + v;
        Line line;
        for (int e = 0; e < WIDE; ++e) line.at[e] = at + e == place ? given : zero;
        *(Line*)(dx + plane + at) = line;
      }})",
      OwnWindow, to_stored(dtype, "(H(0) + " + from_stored(dtype, "dy[i]") + ")"),
      to_stored(dtype, "H(0)"));
}

// Every place of the image asks the windows it lies in.
std::string gradient_of_places(DType dtype) {
  return fmt::format(
      R"(const I n = I(i), column = n % W_IN, row = n / W_IN % H_IN, plane = n / W_IN / H_IN;
    const I place = n % (H_IN * W_IN);
    const I first_y = row + PH - KH + 1 <= 0 ? 0 : (row + PH - KH + SH) / SH;
    const I first_x = column + PW - KW + 1 <= 0 ? 0 : (column + PW - KW + SW) / SW;
    H total = 0;
    for (I y = first_y; y < H_OUT && y * SH - PH <= row; ++y)
      for (I x = first_x; x < W_OUT && x * SW - PW <= column; ++x)
        if (maximum(image + i64(plane) * (H_IN * W_IN), y * SH - PH, x * SW - PW) == place)
          total += {};
    dx[i] = {};)",
      from_stored(dtype, "dy[(i64(plane) * H_OUT + y) * W_OUT + x]"), to_stored(dtype, "total"));
}

void pool_gradient(PlanBuilder& builder, const loop::Pooling& g) {
  const bool once = covers_once(g);
  const loop::HeightAndWidth& size = once ? g.size_out : g.size_in;
  const std::vector<Parameter> parameters = {{builder.row_major(0), g.dtype, "image"},
                                             {builder.row_major(1), g.dtype, "dy"},
                                             {result(0), g.dtype, "dx", true}};
  builder.for_each(g.planes * size[0] * size[1], parameters,
                   once ? gradient_of_windows(g.dtype) : gradient_of_places(g.dtype),
                   window_code(g) + std::string(FindMaximum.substr(1)));
}

void pool_selection(PlanBuilder& builder, const loop::Pooling& g) {
  const std::string body =
      std::string(OwnWindow) + "y[i] = chosen[plane + maximum(x + plane, top, left)];";
  const std::vector<Parameter> parameters = {{builder.row_major(0), g.dtype, "x"},
                                             {builder.row_major(1), g.dtype, "chosen"},
                                             {result(0), g.dtype, "y", true}};
  builder.for_each(g.planes * g.size_out[0] * g.size_out[1], parameters, body,
                   window_code(g) + std::string(FindMaximum.substr(1)));
}

}  // namespace

void plan_pooling(PlanBuilder& builder, const loop::Pooling& g) {
  using Of = loop::Pooling::Of;
  if (g.of == Of::Windows) return pool_windows(builder, g);
  if (g.of == Of::ImageGradient) return pool_gradient(builder, g);
  pool_selection(builder, g);
}

}  // namespace ricci::cuda
