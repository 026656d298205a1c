#include "backend/cuda/structured/implicit_product.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "ricci/support/error.h"

#include "backend/cuda/codegen/expression.h"
#include "backend/cuda/structured/sums_text.h"

namespace ricci::cuda {
namespace {

constexpr std::int64_t SharedBytes = 48 * 1024;  // what a block has without asking
constexpr std::int64_t MostStages = 4;
constexpr double Multiprocessors = 132;

// Elements of four bytes and more are copied behind the threads' backs, or are zero; several
// neighbours at a time where the caller knows that 16 bytes lie together.
constexpr std::string_view AsyncCopies = R"(
__device__ inline void copy_element(T* to, const T* from, bool real) {
  const unsigned at = (unsigned)__cvta_generic_to_shared(to);
  asm volatile("{ .reg .pred none; setp.eq.u32 none, %2, 0; cp.async.ca.shared.global [%0], [%1], " ELEMENT ", none; }" :: "r"(at), "l"(from), "r"((unsigned)real) : "memory");
}
)";
constexpr std::string_view PlainCopies = R"(
__device__ inline void copy_element(T* to, const T* from, bool real) {
  T x;
  x.bits = 0;
  if (real) x = *from;
  *to = x;
}
)";
constexpr std::string_view WholeCopies = R"(
// Keeps what a loop needs in registers: it would be reckoned anew where it is used.
__device__ inline void hold(int& x) { asm volatile("" : "+r"(x)); }
__device__ inline void hold(unsigned& x) { asm volatile("" : "+r"(x)); }
__device__ inline void hold(i64& x) { asm volatile("" : "+l"(x)); }
__device__ inline void hold(const T*& x) { asm volatile("" : "+l"(x)); }
__device__ inline void copy_whole(T* to, const T* from) {
  const unsigned at = (unsigned)__cvta_generic_to_shared(to);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(at), "l"(from) : "memory");
}
__device__ inline void end_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
// Of all but the last groups.
template <int PENDING>
__device__ inline void await_copies() {
  asm volatile("cp.async.wait_group %0;" :: "n"(PENDING) : "memory");
}
)";

// Of the sixteen rows of both factors a lane reads four neighbours at a time.
constexpr std::string_view MultiplyAdd = R"(
#pragma unroll
    for (int k = 0; k < 16 / SLICES; ++k) {
      const int row = slice * (16 / SLICES) + k;
      Pack<T, 4> x[OWN_M / 4], y[OWN_N / 4];
#pragma unroll
      for (int g = 0; g < OWN_M / 4; ++g)
        x[g] = *(const Pack<T, 4>*)(left + row * LEFT + own_m + g * (LANES_M * 4));
#pragma unroll
      for (int g = 0; g < OWN_N / 4; ++g)
        y[g] = *(const Pack<T, 4>*)(right + row * RIGHT + own_n + g * (LANES_N * 4));
#pragma unroll
      for (int i = 0; i < OWN_M; ++i)
#pragma unroll
        for (int j = 0; j < OWN_N; ++j) sum[i][j] = NEXT;
    })";

// A trip copies the tile that comes STAGES - 1 trips later and multiplies its own; the first trips
// only copy.
constexpr std::string_view TileCode = R"(__shared__ Pack<T, VECTOR> room[ROOM / VECTOR];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % (WARPS_M * WARPS_N);
  const int slice = threadIdx.x / 32 / (WARPS_M * WARPS_N);
  const int own_m = warp / WARPS_N * (LANES_M * OWN_M) + lane / LANES_N * 4;
  const int own_n = warp % WARPS_N * (LANES_N * OWN_N) + lane % LANES_N * 4;
  i64 rest = blockIdx.x;
  const I m0 = I(rest % TILES_M) * BM;
  rest /= TILES_M;
  const I n0 = I(rest % TILES_N) * BN;
  rest /= TILES_N;
  const I part = I(rest % PARTS), z = I(rest / PARTS);
  const I first = part * PART, last = first + PART < TILES ? first + PART : TILES;
  BEGIN
  H sum[OWN_M][OWN_N];
#pragma unroll
  for (int i = 0; i < OWN_M; ++i)
#pragma unroll
    for (int j = 0; j < OWN_N; ++j) sum[i][j] = 0;
  int filled = 0, used = 0;
#pragma unroll 1
  for (I trip = first - (STAGES - 1); trip < last; ++trip) {
    if (trip >= first) {
      await_copies<STAGES - 2>();
      __syncthreads();
    }
    const I t = trip + (STAGES - 1);
    if (t < last) {
      T* const left = room[0].at + filled * STAGE;
      T* const right = left + 16 * LEFT;
      LOAD
    }
    end_copies();
    filled = filled + 1 == STAGES ? 0 : filled + 1;
    if (trip < first) continue;
    const T* const left = room[0].at + used * STAGE;
    const T* const right = left + 16 * LEFT;
    MULTIPLY
    used = used + 1 == STAGES ? 0 : used + 1;
  }
  SLICE_SUMS
#pragma unroll
  for (int i = 0; i < OWN_M; ++i) {
    const I m = m0 + own_m + i / 4 * (LANES_M * 4) + i % 4;
    if (m >= M) continue;
#pragma unroll
    for (int g = 0; g < OWN_N / 4; ++g) {
      const I first_n = n0 + own_n + g * (LANES_N * 4);
      STORE
    }
  })";

// The sums of the slices meet in order in what was the room of the factors.
constexpr std::string_view SliceSums = R"(H* const others = (H*)room;
  const int me = threadIdx.x % (THREADS / SLICES);
  __syncthreads();
  if (slice > 0) {
#pragma unroll
    for (int e = 0; e < OWN_M * OWN_N; ++e)
      others[((slice - 1) * OWN_M * OWN_N + e) * (THREADS / SLICES) + me] = sum[e / OWN_N][e % OWN_N];
  }
  __syncthreads();
  if (slice > 0) return;
#pragma unroll
  for (int e = 0; e < OWN_M * OWN_N; ++e)
    for (int s = 0; s < SLICES - 1; ++s)
      sum[e / OWN_N][e % OWN_N] += others[(s * OWN_M * OWN_N + e) * (THREADS / SLICES) + me];)";

constexpr std::string_view StoreFour = R"(const I n = first_n;
      if (n < N && (REAL)) {
        Pack<C, 4> four;
#pragma unroll
        for (int j = 0; j < 4; ++j) four.at[j] = STORED;
        *(Pack<C, 4>*)(c + (PLACE)) = four;
      })";
constexpr std::string_view StoreEach = R"(
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const I n = first_n + j;
        if (n < N && (REAL)) c[PLACE] = STORED;
      })";

std::int64_t tiles_over(std::int64_t size, std::int64_t tile) { return (size + tile - 1) / tile; }

std::int64_t stage_elements(const ImplicitProduct& p) {
  return TileDepth * (p.tile.rows + p.tile.columns + 2 * p.row_padding);
}
// Also of what slices leave for each other.
std::int64_t room_elements(const ImplicitProduct& p, std::int64_t stages) {
  const std::int64_t left = (p.tile.slices - 1) * p.tile.rows * p.tile.columns *
                            size_of(summed_in(p.dtype)) / size_of(p.dtype);
  return std::max(stages * stage_elements(p), left);
}
std::int64_t stages_of(const ImplicitProduct& p) {
  return std::min(SharedBytes / (stage_elements(p) * size_of(p.dtype)), MostStages);
}

// What tiles can be; how near they come to the pace of products alone.
struct Candidate {
  ProductTile tile;
  double pace = 1;
};
constexpr auto Candidates = std::to_array<Candidate>({
    {{.rows = 128, .columns = 128}, 0.9},
    {{.rows = 64, .columns = 128}, 0.9},
    {{.rows = 64, .columns = 128, .slices = 2}, 0.88},
    {{.rows = 128, .columns = 64}, 0.9},
    {{.rows = 128, .columns = 64, .slices = 2}, 0.88},
    {{.rows = 128, .columns = 96, .own_columns = 12, .lanes_down = 8}, 0.9},
    {{.rows = 64, .columns = 96, .own_columns = 12, .lanes_down = 8}, 0.88},
    {{.rows = 64, .columns = 96, .own_columns = 12, .lanes_down = 8, .slices = 2}, 0.88},
    {{.rows = 32, .columns = 256}, 0.85},
    {{.rows = 32, .columns = 128}, 0.82},
    {{.rows = 32, .columns = 128, .slices = 2}, 0.8},
    {{.rows = 64, .columns = 64}, 0.85},
    {{.rows = 64, .columns = 64, .slices = 2}, 0.84},
    {{.rows = 128, .columns = 32, .lanes_down = 8}, 0.8},
    {{.rows = 64, .columns = 32, .lanes_down = 8}, 0.7},
    {{.rows = 64, .columns = 32, .lanes_down = 8, .slices = 4}, 0.75},
    {{.rows = 16, .columns = 256, .own_rows = 4}, 0.6},
    {{.rows = 16, .columns = 128, .own_rows = 4}, 0.6},
    {{.rows = 32, .columns = 32, .own_rows = 4, .lanes_down = 8, .slices = 4}, 0.6},
    {{.rows = 16, .columns = 32, .own_rows = 4, .own_columns = 4, .slices = 4}, 0.35},
});

// Cycles of the whole GPU.
double cycles_of(const ImplicitProduct& p, double pace) {
  constexpr double ProductsACycle = 128;  // of a multiprocessor
  constexpr double WarpsThatHideWaiting = 8;
  constexpr double BytesACycle = 2000;
  constexpr double Launch = 4000;
  const ProductTile& t = p.tile;
  const double tiles = static_cast<double>(p.matrices * tiles_over(p.rows, t.rows) *
                                           tiles_over(p.columns, t.columns));
  const double blocks = tiles * static_cast<double>(p.parts);
  const double in_turn = std::ceil(blocks / Multiprocessors);
  const double warps = std::min(in_turn, 4.0) * static_cast<double>(t.threads()) / 32;
  const double hidden = std::min(1.0, 0.4 + 0.6 * warps / WarpsThatHideWaiting);
  const double depth =
      static_cast<double>(tiles_over(p.depth_tiles, p.parts) * TileDepth) + 48;  // begin and end
  const double own = static_cast<double>(t.rows * t.columns) * depth / ProductsACycle;
  double cycles = in_turn * own / (pace * hidden);
  if (p.parts > 1) {
    const double results = static_cast<double>(p.matrices * p.rows * p.columns);
    cycles += Launch + 8 * results * static_cast<double>(p.parts) / BytesACycle;
  }
  return cycles;
}

// A product that is added at once is rounded once, which floats may have.
std::string next_sum(DType dtype) {
  const std::string x = from_stored(dtype, "x[i / 4].at[i % 4]");
  const std::string y = from_stored(dtype, "y[j / 4].at[j % 4]");
  return fmt::format("{}({}, {}, sum[i][j])", dtype == DType::F64 ? "fma" : "fmaf", x, y);
}

std::string constants_of(const ImplicitProduct& p) {
  const ProductTile& t = p.tile;
  std::string out = fmt::format(
      "const int BM = {}, BN = {}, OWN_M = {}, OWN_N = {}, LANES_M = {}, LANES_N = {};\n"
      "const int WARPS_M = {}, WARPS_N = {}, SLICES = {}, THREADS = {};\n",
      t.rows, t.columns, t.own_rows, t.own_columns, t.lanes_down, t.lanes_across(), t.warps_down(),
      t.warps_across(), t.slices, t.threads());
  out += fmt::format(
      "const int LEFT = {}, RIGHT = {}, STAGE = {}, STAGES = {}, ROOM = {}, VECTOR = {};\n",
      t.rows + p.row_padding, t.columns + p.row_padding, stage_elements(p), stages_of(p),
      room_elements(p, stages_of(p)), 16 / size_of(p.dtype));
  out += fmt::format("const I M = {}, N = {}, TILES = {}, PARTS = {}, PART = {};\n"
                     "const i64 TILES_M = {}, TILES_N = {};\n",
                     p.rows, p.columns, p.depth_tiles, p.parts, tiles_over(p.depth_tiles, p.parts),
                     tiles_over(p.rows, t.rows), tiles_over(p.columns, t.columns));
  const bool async = size_of(p.dtype) >= 4;
  if (async) out += fmt::format("#define ELEMENT \"{}\"\n", size_of(p.dtype));
  return out + std::string((async ? AsyncCopies : PlainCopies).substr(1)) +
         std::string(WholeCopies.substr(1));
}

}  // namespace

std::string product_types(DType dtype, bool narrow) {
  return fmt::format("typedef {} T;\ntypedef {} H;\ntypedef {} I;\n", stored_type(dtype),
                     held_type(summed_in(dtype)), narrow ? "int" : "i64");
}

double choose_tile(ImplicitProduct& p, bool (*fits)(const ProductTile&)) {
  constexpr std::int64_t ShortestPart = 8;
  double least = std::numeric_limits<double>::infinity();
  ImplicitProduct best = p;
  for (const Candidate& candidate : Candidates) {
    p.tile = candidate.tile;
    if (!fits(p.tile) || stages_of(p) < 2) continue;
    const std::int64_t tiles =
        p.matrices * tiles_over(p.rows, p.tile.rows) * tiles_over(p.columns, p.tile.columns);
    std::int64_t last = 0;
    for (const std::int64_t full : {0, 1, 2, 3, 4}) {
      p.parts =
          std::clamp<std::int64_t>(full * static_cast<std::int64_t>(Multiprocessors) / tiles, 1,
                                   std::max<std::int64_t>(p.depth_tiles / ShortestPart, 1));
      if (p.parts == last) continue;
      last = p.parts;
      const double cycles = cycles_of(p, candidate.pace);
      if (cycles >= least) continue;
      least = cycles;
      best = p;
    }
  }
  p = best;
  // None is empty.
  p.parts = tiles_over(p.depth_tiles, tiles_over(p.depth_tiles, p.parts));
  return least;
}

void plan_implicit_product(PlanBuilder& builder, const ImplicitProduct& p,
                           const ImplicitProductText& text, Place a, Place b) {
  const ProductTile& t = p.tile;
  const DType sum = summed_in(p.dtype);
  const bool whole = p.parts == 1;
  const std::int64_t results = p.matrices * p.rows * p.columns;
  std::string code(TileCode);
  fill_in(code, "BEGIN", text.begin);
  fill_in(code, "LOAD", text.load);
  fill_in(code, "MULTIPLY", MultiplyAdd.substr(1));
  fill_in(code, "NEXT", next_sum(p.dtype));
  fill_in(code, "SLICE_SUMS", t.slices > 1 ? SliceSums : std::string_view());
  const bool four = p.columns % 4 == 0 && (!whole || p.columns_adjoin);
  fill_in(code, "STORE", four ? StoreFour : StoreEach.substr(1));
  fill_in(code, "REAL", whole ? text.is_real : "true");
  fill_in(code, "PLACE",
          whole ? text.place : fmt::format("((i64(part) * {}LL + z) * M + m) * N + n", p.matrices));
  const std::string own = "sum[i][4 * g + j]";
  fill_in(code, "STORED", whole ? to_stored(p.dtype, own) : own);
  const std::string types =
      product_types(p.dtype, p.narrow) +
      fmt::format("typedef {} C;\n", whole ? stored_type(p.dtype) : held_type(sum));
  const Place to = whole ? result(0) : builder.reserve(p.parts * results * size_of(sum));
  const std::vector<Parameter> parameters = {
      {a, p.dtype, "a"}, {b, p.dtype, "b"}, {to, whole ? p.dtype : sum, "c", true}};
  builder.launch(
      tiles_over(p.rows, t.rows) * tiles_over(p.columns, t.columns) * p.matrices * p.parts,
      static_cast<std::int32_t>(t.threads()), parameters, code,
      types + constants_of(p) + text.before);
  if (whole) return;
  const std::string places = fmt::format("const I M = {}, N = {};\n", p.rows, p.columns);
  plan_sum_of_parts(builder, p.dtype, p.parts, results, to,
                    product_types(p.dtype, p.narrow) + places + text.before,
                    fmt::format("const I n = I(i % N), m = I(i / N % M), z = I(i / N / M);\n"
                                "    if ({}) c[{}] = {};",
                                text.is_real, text.place, to_stored(p.dtype, "total")));
}

void plan_sum_of_parts(PlanBuilder& builder, DType dtype, std::int64_t parts, std::int64_t results,
                       Place from, const std::string& before, const std::string& store) {
  constexpr std::int64_t Beside = 32;
  const std::int64_t slices = parts > 64 ? 32 : 8;
  const std::string code = fmt::format(
      R"(__shared__ H sums[{0}][{1}];
  const int lane = threadIdx.x % {1}, slice = threadIdx.x / {1};
  const i64 i = i64(blockIdx.x) * {1} + lane;
  H total = 0;
  if (i < {2}LL) {{
#pragma unroll 8
    for (int p = slice; p < {3}; p += {0}) total += parts[p * {2}LL + i];
  }}
  sums[slice][lane] = total;
  __syncthreads();
  if (slice == 0 && i < {2}LL) {{
    for (int s = 1; s < {0}; ++s) total += sums[s][lane];
    {4}
  }})",
      slices, Beside, results, parts, store);
  const std::vector<Parameter> rest = {{from, summed_in(dtype), "parts"},
                                       {result(0), dtype, "c", true}};
  builder.launch(tiles_over(results, Beside), static_cast<std::int32_t>(Beside * slices), rest,
                 code, before);
}

}  // namespace ricci::cuda
