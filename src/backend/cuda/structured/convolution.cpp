// Convolutions and their gradients as products whose matrices are never made.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "backend/cuda/structured/convolution_geometry.h"
#include "backend/cuda/structured/implicit_product.h"
#include "backend/cuda/structured/roles.h"
#include "backend/cuda/structured/tensor_text.h"

namespace ricci::cuda {
namespace {

constexpr std::int64_t MostMaskedTaps = 32;

// As many channels follow each other before the next tap, of sixteen products: with sixteen, a tile
// has one tap.
std::int64_t channel_block(std::int64_t channels) {
  constexpr std::int64_t Many = 48;  // of which filling up to sixteen takes little
  return channels >= Many ? TileDepth : std::gcd(channels, TileDepth);
}

std::int64_t depth_tiles(const Gathering& g) {
  const std::int64_t block = channel_block(g.channels);
  const std::int64_t runs = (g.channels + block - 1) / block * g.taps();
  return (runs * block + TileDepth - 1) / TileDepth;
}

// The weights in the order of the products, [z][depth][rows], and zeros where there are none.
Place packed_weights(PlanBuilder& builder, const Gathering& g, const ImplicitProduct& p,
                     const std::string& constants) {
  const bool rounded = p.sizes.multiply == Multiply::Tf32;
  const std::int64_t wide = tiles_over(p.sizes.rows, p.split.tile.rows) * p.split.tile.rows;
  const std::int64_t count = p.sizes.matrices * p.sizes.depth_tiles * TileDepth * wide;
  const Place to = builder.reserve(count * size_of(g.dtype));
  const std::vector<Parameter> parameters = {{builder.row_major(1), g.dtype, "w"},
                                             {to, g.dtype, "packed", true}};
  const std::string body = fmt::format(
      R"(const I m = I(i % {0}), k = I(i / {0} % (16 * {1}LL)), z = I(i / {0} / (16 * {1}LL));
  {2}  const I run = k / BLOCK, tap = run % TAPS, channel = run / TAPS * BLOCK + k % BLOCK;
  const I u = down.first + tap / TAPS_X * UNIT_Y, v = across.first + tap % TAPS_X * UNIT_X;
  const bool real = m < RESULTS && channel < CHANNELS && tap / TAPS_X < down.count && tap % TAPS_X < across.count;
  const i64 filter = {3};
  const T weight = real ? w[(filter * KERNEL_Y + u) * KERNEL_X + v] : T{{0}};
  packed[i] = {4};)",
      wide, p.sizes.depth_tiles, gather_taps(g), gather_filter(g),
      rounded ? "__uint_as_float(as_tf32(weight))" : "weight");
  const std::string tools(rounded ? Tf32TensorText.substr(1) : std::string_view());
  builder.for_each(count, parameters, body, constants + tools);
  return to;
}

// A thread has the same columns in every tile, PIXELS of them, and of each EACH of the sixteen
// products; whether a tap lies inside the image is a bit, or asked each time where taps are many.
std::string gather_begin(const Gathering& g, bool masked) {
  std::string out = gather_taps(g);
  out += R"(  const int own_column = threadIdx.x % BN, own_k = threadIdx.x / BN * EACH;
  const int own_weights = threadIdx.x / (BM / VECTOR), own_row = threadIdx.x % (BM / VECTOR) * VECTOR;
  const T* const weights = a + i64(z) * TILES * (16 * TILES_M * BM) + own_weights * (TILES_M * BM) + m0 + own_row;
  const T* source[PIXELS];
  I top[PIXELS], left_edge[PIXELS];
  unsigned inside[PIXELS];
#pragma unroll
  for (int p = 0; p < PIXELS; ++p) {
    const I n = n0 + own_column + p * THREADS;
    const I x = n % GRID_X, y = n / GRID_X % GRID_Y, image = n / GRID_X / GRID_Y;
    top[p] = y * STEP_Y + down.place;
    left_edge[p] = x * STEP_X + across.place;
    source[p] = b + ((((i64(image) * GROUPS + z / CLASSES) * CHANNELS + own_k % BLOCK) * SOURCE_Y + top[p]) * SOURCE_X + left_edge[p]);
    hold(source[p]);
    inside[p] = 0;
)";
  if (masked) {
    out += R"(    if (n < N) {
#pragma unroll
      for (int tap = 0; tap < TAPS; ++tap) {
        const I row = top[p] + tap / TAPS_X * TAP_STEP_Y, column = left_edge[p] + tap % TAPS_X * TAP_STEP_X;
        const bool real = row >= 0 && row < SOURCE_Y && column >= 0 && column < SOURCE_X;
        inside[p] |= real ? 1u << tap : 0u;
      }
    }
    hold(inside[p]);
)";
  } else {
    out += "    if (n >= N) top[p] = -1 - SOURCE_Y - TAPS_Y * (TAP_STEP_Y > 0 ? TAP_STEP_Y : 0);\n";
  }
  return out + "  }";
}

std::string gather_load(DType dtype, bool masked, bool whole) {
  const std::string inside = masked
                                 ? "(inside[p] >> tap & 1) != 0"
                                 : "row >= 0 && row < SOURCE_Y && column >= 0 && column < SOURCE_X";
  return fmt::format(R"(
#pragma unroll
      for (int k = 0; k < 16; k += ROWS_AT_ONCE)
        if (16 % ROWS_AT_ONCE == 0 || own_weights + k < 16)
          copy_whole(left + (own_weights + k) * LEFT + own_row,
                     weights + i64(t) * (16 * TILES_M * BM) + k * (TILES_M * BM));
#pragma unroll
      for (int e = 0; e < EACH; e += SPAN) {{
        const unsigned run = unsigned(t) * RUNS + (own_k + e) / BLOCK;
        const I tap = run % TAPS, begin = run / TAPS * BLOCK;
        const I off = (begin * SOURCE_Y + tap / TAPS_X * TAP_STEP_Y) * SOURCE_X + tap % TAPS_X * TAP_STEP_X;
#pragma unroll
        for (int p = 0; p < PIXELS; ++p) {{
          {}const T* from = source[p] + off;
          const bool real = {};
          T* const to = right + (own_k + e) * RIGHT + own_column + p * THREADS;
          hold(from);
#pragma unroll
          for (int c = 0; c < SPAN; ++c) {}
        }}
      }})",
                     masked ? ""
                            : "const I row = top[p] + tap / TAPS_X * TAP_STEP_Y, column = "
                              "left_edge[p] + tap % TAPS_X * TAP_STEP_X;\n          ",
                     inside,
                     copy_text(dtype, "(e / SPAN * PIXELS + p) * SPAN + c", "to + c * RIGHT",
                               "from + c * (SOURCE_Y * SOURCE_X)",
                               whole ? "real" : "real && begin + own_k % BLOCK + c < CHANNELS"))
      .substr(1);
}

constexpr std::string_view GatherPut = R"(
#pragma unroll
      for (int e = 0; e < EACH; e += SPAN)
#pragma unroll
        for (int p = 0; p < PIXELS; ++p)
#pragma unroll
          for (int c = 0; c < SPAN; ++c)
            right[(own_k + e + c) * RIGHT + own_column + p * THREADS] = fetched[(e / SPAN * PIXELS + p) * SPAN + c];)";

bool fits_gathering(const ProductTile& t) {
  return t.columns % t.threads() == 0 || t.threads() % t.columns == 0;
}

Multiply multiply_of(DType dtype, const Means& means) {
  if (dtype == DType::F16 || dtype == DType::BF16) return Multiply::Small;
  return dtype == DType::F32 && means.tf32 ? Multiply::Tf32 : Multiply::Fused;
}

void plan_gathering(PlanBuilder& builder, const loop::Convolution& convolution,
                    const Means& means) {
  const Gathering g = gathering_of(convolution);
  const Multiply multiply = multiply_of(g.dtype, means);
  ImplicitProduct p{.sizes = {.dtype = g.dtype,
                              .multiply = multiply,
                              .matrices = g.groups * g.classes(),
                              .rows = g.results,
                              .columns = g.images * g.y.grid * g.x.grid,
                              .depth_tiles = depth_tiles(g),
                              .row_padding = multiply == Multiply::Fused ? 0 : 8},
                    .narrow = is_narrow(convolution),
                    .columns_adjoin = g.classes() == 1 && g.y.grid * g.x.grid % 4 == 0,
                    .left_is_rounded = true};
  p.split = choose_split(p.sizes, fits_gathering);
  if (direct_cycles(g) < p.split.cycles) return plan_direct_gathering(builder, g, p.narrow);
  const ProductTile& tile = p.split.tile;
  const bool masked = g.taps() <= MostMaskedTaps;
  const bool whole = g.channels * g.taps() == p.sizes.depth_tiles * TileDepth;
  ImplicitProductText text;
  text.before = gather_constants(g) + fmt::format("const int BLOCK = {}, RUNS = 16 / BLOCK;\n",
                                                  channel_block(g.channels));
  text.begin =
      fmt::format("const int PIXELS = {}, EACH = {}, ROWS_AT_ONCE = THREADS * VECTOR / BM;\n"
                  "  const int SPAN = BLOCK < EACH ? BLOCK : EACH;\n  {}",
                  std::max<std::int64_t>(tile.columns / tile.threads(), 1),
                  TileDepth / std::max<std::int64_t>(tile.threads() / tile.columns, 1),
                  gather_begin(g, masked));
  text.load = gather_load(g.dtype, masked, whole);
  text.put = GatherPut.substr(1);
  text.fetched = "EACH * PIXELS";
  text.place = gather_place("n / (GRID_X * GRID_Y)", "n / GRID_X % GRID_Y", "n % GRID_X");
  if (g.classes() > 1) text.is_real = gather_is_real("n / GRID_X % GRID_Y", "n % GRID_X");
  const Place packed =
      packed_weights(builder, g, p, product_types(g.dtype, p.narrow) + text.before);
  plan_implicit_product(builder, p, text, packed, builder.row_major(0));
}

// x, dy -> dw. A thread has the same rows and columns in every tile, and one of the sixteen
// products, whose place in the images it finds out anew. Neighbours in an image go to different
// rows of shared memory, which the padding puts into different banks.
std::string weight_begin(bool masked) {
  std::string out = R"(const int own_k = threadIdx.x % 16, own = threadIdx.x / 16;
  // The last of them may be those of another thread.
  const auto own_row = [&](int i) {
    const int at = own + i * (THREADS / 16);
    return BM % (THREADS / 16) == 0 || at < BM ? at : BM - 1;
  };
  const auto own_column = [&](int j) {
    const int at = own + j * (THREADS / 16);
    return BN % (THREADS / 16) == 0 || at < BN ? at : BN - 1;
  };
  I off[TAKEN_COLUMNS];
  )";
  out += masked ? "unsigned bit[TAKEN_COLUMNS];" : "I down[TAKEN_COLUMNS], across[TAKEN_COLUMNS];";
  out += R"(
#pragma unroll
  for (int j = 0; j < TAKEN_COLUMNS; ++j) {
    const I n = n0 + own_column(j);
    const I tap = n % TAPS, channel = n / TAPS;
    off[j] = (channel * IN_Y + tap / KERNEL_X * DILATION_Y) * IN_X + tap % KERNEL_X * DILATION_X;
    hold(off[j]);
    )";
  out += masked ? "bit[j] = n < N ? 1u << tap : 0u;\n    hold(bit[j]);"
                : "down[j] = n < N ? tap / KERNEL_X * DILATION_Y : IN_Y + PADDING_Y;\n"
                  "    across[j] = tap % KERNEL_X * DILATION_X;";
  return out + "\n  }";
}

std::string weight_load(DType dtype, bool masked, bool whole_depth, bool whole_rows) {
  const std::string inside =
      masked
          ? "(inside & bit[j]) != 0"
          : "k < DEPTH && top + down[j] >= 0 && top + down[j] < IN_Y && left_edge + across[j] >= "
            "0 && left_edge + across[j] < IN_X";
  const std::string mask = R"(unsigned line = 0, inside = 0;
#pragma unroll
      for (int v = 0; v < KERNEL_X; ++v)
        line |= left_edge + v * DILATION_X >= 0 && left_edge + v * DILATION_X < IN_X ? 1u << v : 0u;
#pragma unroll
      for (int u = 0; u < KERNEL_Y; ++u)
        inside |= top + u * DILATION_Y >= 0 && top + u * DILATION_Y < IN_Y ? line << (u * KERNEL_X) : 0u;
      if (k >= DEPTH) inside = 0;)";
  const std::string real = fmt::format("{}{}", whole_depth ? "true" : "k < DEPTH",
                                       whole_rows ? "" : " && m0 + own_row(i) < M");
  return fmt::format(R"(const I k = t * 16 + own_k;
      const I x = k % OUT_X, y = k / OUT_X % OUT_Y, image = k / OUT_X / OUT_Y;
      const I top = y * STRIDE_Y - PADDING_Y, left_edge = x * STRIDE_X - PADDING_X;
      {}
      const T* given = b + ((i64(image) * CHANNELS_OUT + z * M + m0) * (OUT_Y * OUT_X) + y * OUT_X + x);
      const T* source = a + (((i64(image) * CHANNELS_IN + z * CHANNELS) * IN_Y + top) * IN_X + left_edge);
      hold(given);
      hold(source);
#pragma unroll
      for (int i = 0; i < TAKEN_ROWS; ++i)
        {}
#pragma unroll
      for (int j = 0; j < TAKEN_COLUMNS; ++j)
        {})",
                     masked ? mask : "",
                     copy_text(dtype, "i", "left + own_k * LEFT + own_row(i)",
                               "given + own_row(i) * (OUT_Y * OUT_X)", real),
                     copy_text(dtype, "TAKEN_ROWS + j", "right + own_k * RIGHT + own_column(j)",
                               "source + off[j]", inside));
}

constexpr std::string_view WeightPut = R"(
#pragma unroll
      for (int i = 0; i < TAKEN_ROWS; ++i) left[own_k * LEFT + own_row(i)] = fetched[i];
#pragma unroll
      for (int j = 0; j < TAKEN_COLUMNS; ++j) right[own_k * RIGHT + own_column(j)] = fetched[TAKEN_ROWS + j];)";

bool fits_weights(const ProductTile& /*tile*/) { return true; }

void plan_weight_gradient(PlanBuilder& builder, const loop::Convolution& g, const Means& means) {
  const std::int64_t depth = g.images * area(g.size_out);
  const Multiply multiply = multiply_of(g.dtype, means);
  ImplicitProduct p{.sizes = {.dtype = g.dtype,
                              .multiply = multiply,
                              .matrices = g.groups,
                              .rows = g.channels_out / g.groups,
                              .columns = g.taps(),
                              .depth_tiles = tiles_over(depth, TileDepth),
                              .row_padding = multiply == Multiply::Fused ? 4 : 8},
                    .narrow = is_narrow(g),
                    .columns_adjoin = true};
  p.split = choose_split(p.sizes, fits_weights);
  const std::string constants = weight_constants(g);
  if (direct_cycles(g) < p.split.cycles) return plan_direct_weights(builder, g, p.narrow);
  const ProductTile& tile = p.split.tile;
  const bool masked = area(g.kernel) <= MostMaskedTaps;
  const std::int64_t beside = tile.threads() / TileDepth;
  ImplicitProductText text;
  text.before = constants;
  text.begin = fmt::format("const int TAKEN_ROWS = {}, TAKEN_COLUMNS = {};\n  {}",
                           tiles_over(tile.rows, beside), tiles_over(tile.columns, beside),
                           weight_begin(masked));
  text.load = weight_load(g.dtype, masked, depth % TileDepth == 0, p.sizes.rows % tile.rows == 0);
  text.put = WeightPut.substr(1);
  text.fetched = "TAKEN_ROWS + TAKEN_COLUMNS";
  text.place = "(i64(z) * M + m) * N + n";
  const Place x = builder.row_major(0);
  plan_implicit_product(builder, p, text, x, builder.row_major(1));
}

}  // namespace

void plan_convolution(PlanBuilder& builder, const loop::Convolution& g, const Means& means) {
  const bool of_weight = g.of == loop::Convolution::Of::WeightGradient;
  const bool nothing =
      of_weight ? g.images * area(g.size_out) == 0 : g.taps() == 0 || g.channels_out == 0;
  if (nothing) return builder.zeros(result(0), bytes_of(builder.step().results[0]));
  if (of_weight) return plan_weight_gradient(builder, g, means);
  plan_gathering(builder, g, means);
}

}  // namespace ricci::cuda
