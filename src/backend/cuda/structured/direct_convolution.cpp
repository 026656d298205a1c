// Convolutions of groups of few channels, depthwise ones above all, whose products no tile gains.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "backend/cuda/codegen/expression.h"
#include "backend/cuda/structured/convolution_geometry.h"
#include "backend/cuda/structured/implicit_product.h"

namespace ricci::cuda {
namespace {

constexpr std::int64_t MostResults = 8;  // of a thread
constexpr std::int64_t MostTaps = 32;    // of a block
constexpr double LanesACycle = 132 * 128;

}  // namespace

double direct_cycles(const Gathering& g) {
  if (g.results > MostResults) return std::numeric_limits<double>::infinity();
  const double threads =
      static_cast<double>(g.images * g.groups * g.classes() * g.y.grid * g.x.grid);
  const double instructions =
      40 + static_cast<double>(g.channels * g.taps()) * (6 + 2 * static_cast<double>(g.results));
  return threads * instructions / LanesACycle;
}

void plan_direct_gathering(PlanBuilder& builder, const Gathering& g, bool narrow) {
  const std::string value = from_stored(g.dtype, "plane[row * SOURCE_X + column]");
  const std::string weight = from_stored(g.dtype, "w[(filter * KERNEL_Y + u) * KERNEL_X + v]");
  const std::string body = fmt::format(
      R"(const I grid_x = I(i % GRID_X), grid_y = I(i / GRID_X % GRID_Y), z = I(i / (GRID_X * GRID_Y) % (GROUPS * CLASSES));
  const I image = I(i / (i64(GRID_X) * GRID_Y * GROUPS * CLASSES));
  if (!({0})) continue;
  {1}  H sum[RESULTS];
#pragma unroll
  for (int m = 0; m < RESULTS; ++m) sum[m] = 0;
  for (I channel = 0; channel < CHANNELS; ++channel) {{
    const T* const plane = x + ((i64(image) * GROUPS + z / CLASSES) * CHANNELS + channel) * (SOURCE_Y * SOURCE_X);
#pragma unroll {2}
    for (I tap = 0; tap < TAPS; ++tap) {{
      const I row = grid_y * STEP_Y + down.place + tap / TAPS_X * TAP_STEP_Y;
      const I column = grid_x * STEP_X + across.place + tap % TAPS_X * TAP_STEP_X;
      const I u = down.first + tap / TAPS_X * UNIT_Y, v = across.first + tap % TAPS_X * UNIT_X;
      if (row < 0 || row >= SOURCE_Y || column < 0 || column >= SOURCE_X || tap / TAPS_X >= down.count || tap % TAPS_X >= across.count) continue;
      const H value = {3};
#pragma unroll
      for (int m = 0; m < RESULTS; ++m) {{
        const i64 filter = {4};
        sum[m] = {5}(value, {6}, sum[m]);
      }}
    }}
  }}
#pragma unroll
  for (int m = 0; m < RESULTS; ++m) y[{7}] = {8};)",
      g.classes() > 1 ? gather_is_real("grid_y", "grid_x") : "true", gather_taps(g),
      g.taps() <= MostTaps ? "" : "1", value, gather_filter(g),
      g.dtype == DType::F64 ? "fma" : "fmaf", weight, gather_place("image", "grid_y", "grid_x"),
      to_stored(g.dtype, "sum[m]"));
  const std::vector<Parameter> parameters = {{builder.row_major(0), g.dtype, "x"},
                                             {builder.row_major(1), g.dtype, "w"},
                                             {result(0), g.dtype, "y", true}};
  builder.for_each(g.images * g.groups * g.classes() * g.y.grid * g.x.grid, parameters, body,
                   product_types(g.dtype, narrow) + gather_constants(g));
}

double direct_cycles(const loop::Convolution& g) {
  const std::int64_t taps = area(g.kernel);
  if (taps > MostTaps) return std::numeric_limits<double>::infinity();
  const double filters = static_cast<double>(g.channels_out * (g.channels_in / g.groups));
  const double places = static_cast<double>(g.images * area(g.size_out));
  const double of_a_place = 40 + 10 * static_cast<double>(taps);
  return filters * (places + 256) * of_a_place / LanesACycle;
}

// A block has a part of the places and all taps of one filter.
void plan_direct_weights(PlanBuilder& builder, const loop::Convolution& g, bool narrow) {
  constexpr std::int64_t Threads = 256;
  constexpr std::int64_t EnoughBlocks = 1056;
  const std::int64_t depth = g.images * area(g.size_out);
  const std::int64_t filters = g.channels_out * (g.channels_in / g.groups);
  const std::int64_t wanted =
      std::clamp<std::int64_t>(EnoughBlocks / filters, 1, tiles_over(depth, 4 * Threads));
  const std::int64_t part = tiles_over(depth, wanted);
  const std::int64_t parts = tiles_over(depth, part);
  const std::int64_t results = filters * area(g.kernel);
  const std::string before = product_types(g.dtype, narrow) + weight_constants(g);
  const bool whole = parts == 1;
  const DType sum = g.dtype == DType::F64 ? DType::F64 : DType::F32;
  const std::string code = fmt::format(
      R"(__shared__ H of_warps[{0} / 32][TAPS];
  const i64 filter = blockIdx.x / {1};
  const I part = blockIdx.x % {1}, channel = I(filter % CHANNELS), out = I(filter / CHANNELS);
  const I in = out / (CHANNELS_OUT / (CHANNELS_IN / CHANNELS)) * CHANNELS + channel;
  const I end = part * {2} + {2} < DEPTH ? part * {2} + {2} : DEPTH;
  H sum[TAPS];
#pragma unroll
  for (int tap = 0; tap < TAPS; ++tap) sum[tap] = 0;
  for (I k = part * {2} + threadIdx.x; k < end; k += {0}) {{
    const I column = k % OUT_X, row = k / OUT_X % OUT_Y, image = k / OUT_X / OUT_Y;
    const H given = {3};
    const T* const plane = x + (i64(image) * CHANNELS_IN + in) * (IN_Y * IN_X);
#pragma unroll
    for (int tap = 0; tap < TAPS; ++tap) {{
      const I at_y = row * STRIDE_Y - PADDING_Y + tap / KERNEL_X * DILATION_Y;
      const I at_x = column * STRIDE_X - PADDING_X + tap % KERNEL_X * DILATION_X;
      if (at_y < 0 || at_y >= IN_Y || at_x < 0 || at_x >= IN_X) continue;
      sum[tap] = {4}(given, {5}, sum[tap]);
    }}
  }}
#pragma unroll
  for (int tap = 0; tap < TAPS; ++tap) {{
#pragma unroll
    for (int beside = 16; beside > 0; beside /= 2) sum[tap] += __shfl_xor_sync(0xffffffffu, sum[tap], beside);
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32][tap] = sum[tap];
  }}
  __syncthreads();
  if (threadIdx.x < TAPS) {{
    H total = 0;
    for (int w = 0; w < {0} / 32; ++w) total += of_warps[w][threadIdx.x];
    dw[({6}LL * part + filter) * TAPS + threadIdx.x] = {7};
  }})",
      Threads, parts, part,
      from_stored(g.dtype,
                  "dy[(i64(image) * CHANNELS_OUT + out) * (OUT_Y * OUT_X) + row * OUT_X + column]"),
      g.dtype == DType::F64 ? "fma" : "fmaf", from_stored(g.dtype, "plane[at_y * IN_X + at_x]"),
      filters, whole ? to_stored(g.dtype, "total") : "total");
  const Place to = whole ? result(0) : builder.reserve(parts * results * size_of(sum));
  const std::vector<Parameter> parameters = {{builder.row_major(0), g.dtype, "x"},
                                             {builder.row_major(1), g.dtype, "dy"},
                                             {to, whole ? g.dtype : sum, "dw", true}};
  builder.launch(filters * parts, static_cast<std::int32_t>(Threads), parameters, code, before);
  if (whole) return;
  plan_sum_of_parts(builder, g.dtype, parts, results, to, before,
                    fmt::format("c[i] = {};", to_stored(g.dtype, "total")));
}

}  // namespace ricci::cuda
