// Convolutions and their gradients as products whose matrices are never made. The image and its
// gradient gather: a result's place in a grid says which places of the source its taps meet. For
// the gradient of the image, places of the same remainder by the stride, a class, meet the same
// taps.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "ricci/support/error.h"

#include "backend/cuda/codegen/expression.h"
#include "backend/cuda/structured/implicit_product.h"
#include "backend/cuda/structured/roles.h"

namespace ricci::cuda {
namespace {

constexpr std::int64_t MostMaskedTaps = 32;

// One axis of an image whose results gather: result r·classes + class meets, for every tap k of its
// class, the source at r·step + row(class) + k·tap_step with the weight first(class) + k·unit.
struct GatherAxis {
  std::int64_t source = 1;
  std::int64_t target = 1;
  std::int64_t classes = 1;
  std::int64_t grid = 1;  ///< places of a class, or fewer
  std::int64_t kernel = 1;
  std::int64_t taps = 1;  ///< of a class, or fewer
  std::int64_t unit = 1;
  std::int64_t step = 1;
  std::int64_t tap_step = 1;
  std::int64_t padding = 0;
  std::int64_t stride = 1;  ///< of the convolution
  std::int64_t dilation = 1;
};

GatherAxis image_axis(const loop::Convolution& g, std::size_t a) {
  return {.source = g.size_in[a],
          .target = g.size_out[a],
          .grid = g.size_out[a],
          .kernel = g.kernel[a],
          .taps = g.kernel[a],
          .step = g.stride[a],
          .tap_step = g.dilation[a],
          .padding = g.padding[a]};
}

GatherAxis gradient_axis(const loop::Convolution& g, std::size_t a) {
  const std::int64_t stride = g.stride[a];
  const std::int64_t unit = stride / std::gcd(stride, g.dilation[a]);
  return {.source = g.size_out[a],
          .target = g.size_in[a],
          .classes = stride,
          .grid = (g.size_in[a] + stride - 1) / stride,
          .kernel = g.kernel[a],
          .taps = (g.kernel[a] + unit - 1) / unit,
          .unit = unit,
          .tap_step = -(unit * g.dilation[a] / stride),
          .padding = g.padding[a],
          .stride = stride,
          .dilation = g.dilation[a]};
}

struct Gathering {
  DType dtype = DType::F32;
  bool gradient = false;
  std::int64_t images = 1;
  std::int64_t groups = 1;
  std::int64_t channels = 1;  ///< of the source, in a group
  std::int64_t results = 1;   ///< channels of the target in a group
  GatherAxis y = {};
  GatherAxis x = {};

  [[nodiscard]] std::int64_t classes() const { return y.classes * x.classes; }
  [[nodiscard]] std::int64_t taps() const { return y.taps * x.taps; }
};

Gathering gathering_of(const loop::Convolution& g) {
  const bool gradient = g.of == loop::Convolution::Of::ImageGradient;
  const std::int64_t in = g.channels_in / g.groups;
  const std::int64_t out = g.channels_out / g.groups;
  const auto axis = [&](std::size_t a) {
    return gradient ? gradient_axis(g, a) : image_axis(g, a);
  };
  return {.dtype = g.dtype,
          .gradient = gradient,
          .images = g.images,
          .groups = g.groups,
          .channels = gradient ? out : in,
          .results = gradient ? in : out,
          .y = axis(0),
          .x = axis(1)};
}

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

constexpr std::string_view FirstTaps = R"(
// The taps of a class: the first, how many, and where the first meets the source from place 0.
struct Taps {
  I first, count, place;
};
__device__ inline Taps taps_of(I which, I kernel, I unit, I padding, I stride, I dilation) {
  for (I u = 0; u < unit && u < kernel; ++u) {
    const I at = which + padding - u * dilation;
    if (at % stride == 0) return {u, (kernel - u + unit - 1) / unit, at / stride};
  }
  return {0, 0, 0};
}
)";

std::string axis_text(const char* name, const GatherAxis& a) {
  return fmt::format(
      "const I SOURCE_{0} = {1}, TARGET_{0} = {2}, CLASSES_{0} = {3}, GRID_{0} = {4}, "
      "KERNEL_{0} = {5};\n"
      "const I TAPS_{0} = {6}, UNIT_{0} = {7}, STEP_{0} = {8}, TAP_STEP_{0} = {9};\n",
      name, a.source, a.target, a.classes, a.grid, a.kernel, a.taps, a.unit, a.step, a.tap_step);
}

std::string taps_text(const Gathering& g, const char* name, const GatherAxis& a) {
  if (!g.gradient)
    return fmt::format("const Taps {} = {{0, {}, -{}}};\n", name, a.kernel, a.padding);
  return fmt::format("const Taps {0} = taps_of({1}, {2}, {3}, {4}, {5}, {6});\n", name,
                     name[0] == 'd' ? "z / CLASSES_X % CLASSES_Y" : "z % CLASSES_X", a.kernel,
                     a.unit, a.padding, a.stride, a.dilation);
}

// Sizes and taps; matrix z is class z % CLASSES of group z / CLASSES.
std::string gather_constants(const Gathering& g) {
  return fmt::format(
             "const I IMAGES = {}, GROUPS = {}, CHANNELS = {}, RESULTS = {}, CLASSES = {}, BLOCK = "
             "{}, RUNS = 16 / BLOCK;\n",
             g.images, g.groups, g.channels, g.results, g.classes(), channel_block(g.channels)) +
         axis_text("Y", g.y) + axis_text("X", g.x) + "const I TAPS = TAPS_Y * TAPS_X;\n" +
         std::string(FirstTaps.substr(1));
}

std::string gather_taps(const Gathering& g) {
  return taps_text(g, "down", g.y) + "  " + taps_text(g, "across", g.x);
}

// The weights in the order of the products, [z][depth][rows], and zeros where there are none.
Place packed_weights(PlanBuilder& builder, const Gathering& g, const ImplicitProduct& p,
                     const std::string& constants) {
  const std::int64_t wide = (p.rows + p.tile.rows - 1) / p.tile.rows * p.tile.rows;
  const std::int64_t count = p.matrices * p.depth_tiles * TileDepth * wide;
  const Place to = builder.reserve(count * size_of(g.dtype));
  const std::vector<Parameter> parameters = {{builder.row_major(1), g.dtype, "w"},
                                             {to, g.dtype, "packed", true}};
  const std::string body = fmt::format(
      R"(const I m = I(i % {0}), k = I(i / {0} % (16 * {1}LL)), z = I(i / {0} / (16 * {1}LL));
  {2}  const I run = k / BLOCK, tap = run % TAPS, channel = run / TAPS * BLOCK + k % BLOCK;
  const I u = down.first + tap / TAPS_X * UNIT_Y, v = across.first + tap % TAPS_X * UNIT_X;
  const bool real = m < RESULTS && channel < CHANNELS && tap / TAPS_X < down.count && tap % TAPS_X < across.count;
  const i64 filter = {3};
  packed[i] = real ? w[(filter * KERNEL_Y + u) * KERNEL_X + v] : T{{0}};)",
      wide, p.depth_tiles, gather_taps(g),
      g.gradient ? "(z / CLASSES * CHANNELS + channel) * i64(RESULTS) + m"
                 : "(z / CLASSES * RESULTS + m) * i64(CHANNELS) + channel");
  builder.for_each(count, parameters, body, constants);
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

std::string gather_load(bool masked, bool whole) {
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
          for (int c = 0; c < SPAN; ++c)
            copy_element(to + c * RIGHT, from + c * (SOURCE_Y * SOURCE_X), real{});
        }}
      }})",
                     masked ? ""
                            : "const I row = top[p] + tap / TAPS_X * TAP_STEP_Y, column = "
                              "left_edge[p] + tap % TAPS_X * TAP_STEP_X;\n          ",
                     inside, whole ? "" : " && begin + own_k % BLOCK + c < CHANNELS")
      .substr(1);
}

std::int64_t product_of(const loop::HeightAndWidth& size) { return size[0] * size[1]; }

// Every place of both images, the edges included, and every number of a result.
bool is_narrow(const loop::Convolution& g) {
  constexpr std::int64_t Narrow = std::int64_t{1} << 29;
  std::int64_t reach = std::max({g.images * g.x_image(), g.images * g.y_image(), g.weights()});
  for (std::size_t a = 0; a < 2; ++a) {
    reach = std::max({reach, g.size_in[a] + g.kernel[a] * g.dilation[a] + g.padding[a],
                      g.size_out[a] * g.stride[a] + g.kernel[a] * g.dilation[a]});
  }
  // What is outside is never read, but its place is reckoned.
  const std::int64_t outside =
      (g.padding[0] + g.kernel[0] * g.dilation[0]) * std::max(g.size_in[1], g.size_out[1]);
  return reach < Narrow && outside < Narrow;
}

bool fits_gathering(const ProductTile& t) {
  return t.columns % t.threads() == 0 || t.threads() % t.columns == 0;
}
void plan_gathering(PlanBuilder& builder, const loop::Convolution& convolution) {
  const Gathering g = gathering_of(convolution);
  ImplicitProduct p{.dtype = g.dtype,
                    .matrices = g.groups * g.classes(),
                    .rows = g.results,
                    .columns = g.images * g.y.grid * g.x.grid,
                    .depth_tiles = depth_tiles(g),
                    .narrow = is_narrow(convolution),
                    .columns_adjoin = g.classes() == 1 && g.y.grid * g.x.grid % 4 == 0};
  choose_tile(p, fits_gathering);
  const std::int64_t threads = p.tile.threads();
  const bool masked = g.taps() <= MostMaskedTaps;
  const bool whole = g.channels * g.taps() == p.depth_tiles * TileDepth;
  const std::string constants = gather_constants(g);
  const std::string taps = gather_taps(g);
  ImplicitProductText text;
  text.before = constants;
  text.begin = fmt::format(
      "const int PIXELS = {}, EACH = {}, ROWS_AT_ONCE = THREADS * VECTOR / BM;\n"
      "  const int SPAN = BLOCK < EACH ? BLOCK : EACH;\n  {}",
      std::max<std::int64_t>(p.tile.columns / threads, 1),
      TileDepth / std::max<std::int64_t>(threads / p.tile.columns, 1), gather_begin(g, masked));
  text.load = gather_load(masked, whole);
  const char* const y = "(n / GRID_X % GRID_Y * CLASSES_Y + z / CLASSES_X % CLASSES_Y)";
  const char* const x = "(n % GRID_X * CLASSES_X + z % CLASSES_X)";
  text.place = fmt::format(
      "((i64(n / (GRID_X * GRID_Y)) * GROUPS + z / CLASSES) * RESULTS + m) * (TARGET_Y * TARGET_X) "
      "+ {} * TARGET_X + {}",
      y, x);
  if (g.classes() > 1) text.is_real = fmt::format("{} < TARGET_Y && {} < TARGET_X", y, x);
  const Place packed = packed_weights(builder, g, p, product_types(g.dtype, p.narrow) + constants);
  plan_implicit_product(builder, p, text, packed, builder.row_major(0));
}

// x, dy -> dw. A thread has the same rows and columns in every tile, and one of the sixteen
// products, whose place in the images it finds out anew. Neighbours in an image go to different
// rows of shared memory, which the padding puts into different banks.
std::string weight_begin(bool masked) {
  std::string out = R"(const int own_k = threadIdx.x % 16, own = threadIdx.x / 16;
  I off[COLUMNS];
  )";
  out += masked ? "unsigned bit[COLUMNS];" : "I down[COLUMNS], across[COLUMNS];";
  out += R"(
#pragma unroll
  for (int j = 0; j < COLUMNS; ++j) {
    const I n = n0 + own + j * (THREADS / 16);
    const I tap = n % TAPS, channel = n / TAPS;
    off[j] = (channel * IN_Y + tap / KERNEL_X * DILATION_Y) * IN_X + tap % KERNEL_X * DILATION_X;
    hold(off[j]);
    )";
  out += masked ? "bit[j] = n < N ? 1u << tap : 0u;\n    hold(bit[j]);"
                : "down[j] = n < N ? tap / KERNEL_X * DILATION_Y : IN_Y + PADDING_Y;\n"
                  "    across[j] = tap % KERNEL_X * DILATION_X;";
  return out + "\n  }";
}

std::string weight_load(bool masked, bool whole_depth, bool whole_rows) {
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
                                       whole_rows ? "" : " && m0 + own + i * (THREADS / 16) < M");
  return fmt::format(R"(const I k = t * 16 + own_k;
      const I x = k % OUT_X, y = k / OUT_X % OUT_Y, image = k / OUT_X / OUT_Y;
      const I top = y * STRIDE_Y - PADDING_Y, left_edge = x * STRIDE_X - PADDING_X;
      {}
      const T* given = b + ((i64(image) * CHANNELS_OUT + z * M + m0 + own) * (OUT_Y * OUT_X) + y * OUT_X + x);
      const T* source = a + (((i64(image) * CHANNELS_IN + z * CHANNELS) * IN_Y + top) * IN_X + left_edge);
      hold(given);
      hold(source);
#pragma unroll
      for (int i = 0; i < ROWS; ++i)
        copy_element(left + own_k * LEFT + own + i * (THREADS / 16), given + i * (THREADS / 16) * (OUT_Y * OUT_X), {});
#pragma unroll
      for (int j = 0; j < COLUMNS; ++j)
        copy_element(right + own_k * RIGHT + own + j * (THREADS / 16), source + off[j], {});)",
                     masked ? mask : "", real, inside);
}

bool fits_weights(const ProductTile& t) {
  const std::int64_t beside = t.threads() / TileDepth;
  return t.rows % beside == 0 && t.columns % beside == 0;
}

void plan_weight_gradient(PlanBuilder& builder, const loop::Convolution& g) {
  const std::int64_t depth = g.images * product_of(g.size_out);
  ImplicitProduct p{.dtype = g.dtype,
                    .matrices = g.groups,
                    .rows = g.channels_out / g.groups,
                    .columns = g.taps(),
                    .depth_tiles = (depth + TileDepth - 1) / TileDepth,
                    .narrow = is_narrow(g),
                    .columns_adjoin = true,
                    .row_padding = 4};
  choose_tile(p, fits_weights);
  const bool masked = product_of(g.kernel) <= MostMaskedTaps;
  const std::int64_t beside = p.tile.threads() / TileDepth;
  ImplicitProductText text;
  text.before = fmt::format(
      "const I CHANNELS_IN = {}, CHANNELS_OUT = {}, CHANNELS = {}, DEPTH = {}, TAPS = {};\n"
      "const I IN_Y = {}, IN_X = {}, OUT_Y = {}, OUT_X = {}, KERNEL_Y = {}, KERNEL_X = {};\n"
      "const I STRIDE_Y = {}, STRIDE_X = {}, PADDING_Y = {}, PADDING_X = {}, DILATION_Y = {}, "
      "DILATION_X = {};\n",
      g.channels_in, g.channels_out, g.channels_in / g.groups, depth, product_of(g.kernel),
      g.size_in[0], g.size_in[1], g.size_out[0], g.size_out[1], g.kernel[0], g.kernel[1],
      g.stride[0], g.stride[1], g.padding[0], g.padding[1], g.dilation[0], g.dilation[1]);
  text.begin = fmt::format("const int ROWS = {}, COLUMNS = {};\n  {}", p.tile.rows / beside,
                           p.tile.columns / beside, weight_begin(masked));
  text.load = weight_load(masked, depth % TileDepth == 0, p.rows % p.tile.rows == 0);
  text.place = "(i64(z) * M + m) * N + n";
  const Place x = builder.row_major(0);
  plan_implicit_product(builder, p, text, x, builder.row_major(1));
}

}  // namespace

void plan_convolution(PlanBuilder& builder, const loop::Convolution& g) {
  const bool of_weight = g.of == loop::Convolution::Of::WeightGradient;
  const bool nothing =
      of_weight ? g.images * product_of(g.size_out) == 0 : g.taps() == 0 || g.channels_out == 0;
  if (nothing) return builder.zeros(result(0), bytes_of(builder.step().results[0]));
  if (of_weight) return plan_weight_gradient(builder, g);
  plan_gathering(builder, g);
}

}  // namespace ricci::cuda
