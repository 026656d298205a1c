#include "backend/cuda/structured/implicit_product.h"

#include <algorithm>

#include <fmt/format.h>

#include "backend/cuda/codegen/expression.h"
#include "backend/cuda/structured/sums_text.h"
#include "backend/cuda/structured/tensor_text.h"

namespace ricci::cuda {
namespace {

// Elements of four bytes and more are copied behind the threads' backs, or are zero; whole ones are
// of 16 bytes.
constexpr std::string_view CopyElement = R"(
__device__ inline void copy_element(T* to, const T* from, bool real) {
  const unsigned at = (unsigned)__cvta_generic_to_shared(to);
  asm volatile("{ .reg .pred none; setp.eq.u32 none, %2, 0; cp.async.ca.shared.global [%0], [%1], " ELEMENT ", none; }" :: "r"(at), "l"(from), "r"((unsigned)real) : "memory");
}
)";
constexpr std::string_view FetchElement = R"(
__device__ inline T fetch(const T* from, bool real) {
  T x;
  asm("{ .reg .pred real; setp.ne.u32 real, %2, 0; mov.b16 %0, 0; @real ld.global.nc.u16 %0, [%1]; }" : "=h"(x.bits) : "l"(from), "r"((unsigned)real));
  return x;
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

// How a warp multiplies sixteen rows of both factors, and which results a lane has then: VALUE in
// row ROW(i) and in column j < WIDE behind COLUMN(g), from (own_m, own_n) on.
struct MultiplyText {
  std::string_view own;
  std::string_view sums;
  std::string_view code;
  std::string_view rows;
  std::string_view row;
  std::string_view groups;
  std::string_view column;
  std::string_view wide;
  std::string_view value;
};

// Four neighbours are read at a time.
constexpr MultiplyText FusedText = {
    .own = R"(const int own_m = warp_m + lane / LANES_N * 4, own_n = warp_n + lane % LANES_N * 4;)",
    .sums = R"(H sum[OWN_M][OWN_N];
#pragma unroll
  for (int i = 0; i < OWN_M; ++i)
#pragma unroll
    for (int j = 0; j < OWN_N; ++j) sum[i][j] = 0;)",
    .code = R"(
#pragma unroll
      for (int k = 0; k < TILE_DEPTH / SLICES; ++k) {
        const int row = slice * (TILE_DEPTH / SLICES) + k;
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
      })",
    .rows = "OWN_M",
    .row = "i / 4 * (LANES_M * 4) + i % 4",
    .groups = "OWN_N / 4",
    .column = "g * (LANES_N * 4)",
    .wide = "4",
    .value = "sum[i][4 * g + j]",
};

constexpr std::string_view TensorSums = R"(float sum[WARP_M / 16][WARP_N / 8][4];
#pragma unroll
  for (int i = 0; i < WARP_M / 16; ++i)
#pragma unroll
    for (int j = 0; j < WARP_N / 8; ++j)
#pragma unroll
      for (int c = 0; c < 4; ++c) sum[i][j][c] = 0;)";

// The two rows that a lane has of a left fragment are neighbours in the tile: they come with one
// read into the registers where they are needed.
constexpr MultiplyText Tf32Text = {
    .own = R"(const int own_m = warp_m + lane / 4 * 2, own_n = warp_n + lane % 4 * 2;)",
    .sums = TensorSums,
    .code = R"(
#pragma unroll
      for (int k = 0; k < 16; k += 8) {
        unsigned y[WARP_N / 8][2];
#pragma unroll
        for (int j = 0; j < WARP_N / 8; ++j)
#pragma unroll
          for (int h = 0; h < 2; ++h)
            y[j][h] = as_tf32(right[(k + lane % 4 + 4 * h) * RIGHT + warp_n + lane / 4 + j * 8]);
#pragma unroll
        for (int i = 0; i < WARP_M / 16; ++i) {
          const T* const row = left + (k + lane % 4) * LEFT + own_m + i * 16;
          const Pack<T, 2> low = *(const Pack<T, 2>*)row, high = *(const Pack<T, 2>*)(row + 4 * LEFT);
          const unsigned own[4] = {left_bits(low.at[0]), left_bits(low.at[1]), left_bits(high.at[0]), left_bits(high.at[1])};
#pragma unroll
          for (int j = 0; j < WARP_N / 8; ++j) multiply_add(sum[i][j], own, y[j][0], y[j][1]);
        }
      })",
    .rows = "WARP_M / 8",
    .row = "i / 2 * 16 + i % 2",
    .groups = "WARP_N / 8",
    .column = "g * 8",
    .wide = "2",
    .value = "sum[i / 2][g][i % 2 * 2 + j]",
};

constexpr MultiplyText SmallText = {
    .own = R"(const int own_m = warp_m + lane / 4, own_n = warp_n + lane % 4 * 2;)",
    .sums = TensorSums,
    .code = R"(
      unsigned y[WARP_N / 8][2];
#pragma unroll
      for (int j = 0; j < WARP_N / 8; j += 2) {
        unsigned two[4];
        load_transposed(two, right + lane % 16 * RIGHT + warp_n + j * 8 + lane / 16 * 8);
        y[j][0] = two[0];
        y[j][1] = two[1];
        y[j + 1][0] = two[2];
        y[j + 1][1] = two[3];
      }
#pragma unroll
      for (int i = 0; i < WARP_M / 16; ++i) {
        unsigned own[4];
        load_transposed(own, left + (lane / 16 * 8 + lane % 8) * LEFT + warp_m + i * 16 + lane / 8 % 2 * 8);
#pragma unroll
        for (int j = 0; j < WARP_N / 8; ++j) multiply_add(sum[i][j], own, y[j][0], y[j][1]);
      })",
    .rows = "WARP_M / 8",
    .row = "i * 8",
    .groups = "WARP_N / 8",
    .column = "g * 8",
    .wide = "2",
    .value = "sum[i / 2][g][i % 2 * 2 + j]",
};

const MultiplyText& text_of(Multiply multiply) {
  if (multiply == Multiply::Tf32) return Tf32Text;
  return multiply == Multiply::Small ? SmallText : FusedText;
}

// A trip copies the tile that comes STAGES - 1 trips later and multiplies its own; the first trips
// only copy.
constexpr std::string_view TileCode =
    R"(extern __shared__ __align__(16) unsigned char shared_memory[];
  T* const room = (T*)shared_memory;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % (WARPS_M * WARPS_N);
  const int slice = threadIdx.x / 32 / (WARPS_M * WARPS_N);
  const int warp_m = warp / WARPS_N * WARP_M, warp_n = warp % WARPS_N * WARP_N;
  OWN
  i64 rest = blockIdx.x;
  const I m0 = I(rest % TILES_M) * BM;
  rest /= TILES_M;
  const I n0 = I(rest % TILES_N) * BN;
  rest /= TILES_N;
  const I part = I(rest % PARTS), z = I(rest / PARTS);
  const I first = part * PART, last = first + PART < TILES ? first + PART : TILES;
  BEGIN
  SUMS
  int filled = 0, used = 0;
#pragma unroll 1
  for (I trip = first - (STAGES - 1); trip < last; ++trip) {
    if (trip >= first) {
      await_copies<STAGES - 2>();
      __syncthreads();
    }
    const I t = trip + (STAGES - 1);
    FETCHED
    if (t < last) {
      T* const left = room + filled * STAGE;
      T* const right = left + TILE_DEPTH * LEFT;
      LOAD
    }
    end_copies();
    if (trip >= first) {
      const T* const left = room + used * STAGE;
      const T* const right = left + TILE_DEPTH * LEFT;
      MULTIPLY
      used = used + 1 == STAGES ? 0 : used + 1;
    }
    PUT
    filled = filled + 1 == STAGES ? 0 : filled + 1;
  }
  END_OF_TILE)";

constexpr std::string_view OwnResults = R"(SLICES_MEET
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
    const I m = m0 + own_m + ROW;
    if (m >= M) continue;
#pragma unroll
    for (int g = 0; g < GROUPS; ++g) {
      const I first_n = n0 + own_n + COLUMN;
      STORE
    }
  })";

// The sums of all slices lie in what was the room of the factors, and each thread adds up some.
constexpr std::string_view SharedResults = R"(H* const all = (H*)shared_memory;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < ROWS; ++i)
#pragma unroll
    for (int g = 0; g < GROUPS; ++g) {
      Pack<H, 4> own;
#pragma unroll
      for (int j = 0; j < 4; ++j) own.at[j] = VALUE;
      *(Pack<H, 4>*)(all + (slice * BM + own_m + ROW) * BN + own_n + COLUMN) = own;
    }
  __syncthreads();
  for (int e = threadIdx.x; e < BM * BN / 4; e += THREADS) {
    const int row = e / (BN / 4), column = e % (BN / 4) * 4;
    Pack<H, 4> total = *(const Pack<H, 4>*)(all + row * BN + column);
#pragma unroll
    for (int s = 1; s < SLICES; ++s) {
      const Pack<H, 4> more = *(const Pack<H, 4>*)(all + (s * BM + row) * BN + column);
#pragma unroll
      for (int j = 0; j < 4; ++j) total.at[j] += more.at[j];
    }
    const I m = m0 + row, first_n = n0 + column;
    if (m >= M) continue;
    STORE
    BEHIND
  })";

constexpr std::string_view PutCode = R"(if (t < last) {
      T* const left = room + filled * STAGE;
      T* const right = left + TILE_DEPTH * LEFT;
      PUT
    })";

// The sums of the slices meet in order in what was the room of the factors.
constexpr std::string_view SlicesMeet = R"(H* const others = (H*)shared_memory;
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
#pragma unroll
    for (int s = 0; s < SLICES - 1; ++s)
      sum[e / OWN_N][e % OWN_N] += others[(s * OWN_M * OWN_N + e) * (THREADS / SLICES) + me];)";

constexpr std::string_view StoreTogether = R"(const I n = first_n;
      if (n < N && (REAL)) {
        Pack<C, WIDE> wide;
#pragma unroll
        for (int j = 0; j < WIDE; ++j) wide.at[j] = STORED;
        *(Pack<C, WIDE>*)(c + (PLACE)) = wide;
      })";
constexpr std::string_view StoreEach = R"(
#pragma unroll
      for (int j = 0; j < WIDE; ++j) {
        const I n = first_n + j;
        if (n < N && (REAL)) c[PLACE] = STORED;
      })";

// A product that is added at once is rounded once, which floats may have.
std::string next_sum(DType dtype) {
  const std::string x = from_stored(dtype, "x[i / 4].at[i % 4]");
  const std::string y = from_stored(dtype, "y[j / 4].at[j % 4]");
  return fmt::format("{}({}, {}, sum[i][j])", dtype == DType::F64 ? "fma" : "fmaf", x, y);
}

std::string constants_of(const ImplicitProduct& p) {
  const ProductSizes& s = p.sizes;
  const ProductTile& t = p.split.tile;
  std::string out = fmt::format(
      "const int BM = {}, BN = {}, OWN_M = {}, OWN_N = {}, LANES_M = {}, LANES_N = {};\n"
      "const int WARP_M = {}, WARP_N = {}, WARPS_M = {}, WARPS_N = {}, SLICES = {}, THREADS = "
      "{};\n",
      t.rows, t.columns, t.own_rows, t.own_columns, t.lanes_down, t.lanes_across(), t.warp_rows(),
      t.warp_columns(), t.warps_down(), t.warps_across(), t.slices, t.threads());
  out += fmt::format(
      "const int TILE_DEPTH = {}, LEFT = {}, RIGHT = {}, STAGE = {}, STAGES = {}, VECTOR = {};\n",
      t.depth, t.rows + s.row_padding, t.columns + s.row_padding, stage_elements(s, t),
      stages_of(s, t), 16 / size_of(s.dtype));
  out += fmt::format("const I M = {}, N = {}, TILES = {}, PARTS = {}, PART = {};\n"
                     "const i64 TILES_M = {}, TILES_N = {};\n",
                     s.rows, s.columns, s.depth_tiles, p.split.parts,
                     tiles_over(s.depth_tiles, p.split.parts), tiles_over(s.rows, t.rows),
                     tiles_over(s.columns, t.columns));
  if (are_fetched(s.dtype)) {
    out += FetchElement.substr(1);
  } else {
    out += fmt::format("#define ELEMENT \"{}\"\n{}", size_of(s.dtype), CopyElement.substr(1));
  }
  if (s.multiply == Multiply::Tf32) {
    out += Tf32TensorText.substr(1);
    out += fmt::format("__device__ inline unsigned left_bits(float x) {{ return {}; }}\n",
                       p.left_is_rounded ? "__float_as_uint(x)" : "as_tf32(x)");
  }
  if (s.multiply == Multiply::Small) {
    out += fmt::format("#define SMALL \"{}\"\n{}", stored_type(s.dtype), SmallTensorText.substr(1));
  }
  return out += WholeCopies.substr(1);
}

std::int64_t shared_bytes(const ImplicitProduct& p) {
  const ProductTile& t = p.split.tile;
  const std::int64_t factors =
      stages_of(p.sizes, t) * stage_elements(p.sizes, t) * size_of(p.sizes.dtype);
  const std::int64_t kept = p.all_store ? t.slices : t.slices - 1;
  const std::int64_t sums = kept * t.rows * t.columns * size_of(summed_in(p.sizes.dtype));
  return std::max(factors, sums);
}

std::string tile_code(const ImplicitProduct& p, const ImplicitProductText& text) {
  const ProductSizes& s = p.sizes;
  const MultiplyText& multiply = text_of(s.multiply);
  const bool whole = p.split.parts == 1;
  const bool fetched = are_fetched(s.dtype);
  std::string code(TileCode);
  fill_in(code, "BEGIN", text.begin);
  fill_in(code, "OWN\n", std::string(multiply.own) + "\n");
  fill_in(code, "SUMS", multiply.sums);
  fill_in(code, "LOAD", text.load);
  fill_in(code, "FETCHED", fetched ? fmt::format("T fetched[{}];", text.fetched) : "");
  fill_in(code, "PUT", fetched ? PutCode : std::string_view());
  fill_in(code, "PUT", fetched ? std::string_view(text.put) : std::string_view());
  fill_in(code, "MULTIPLY", multiply.code.substr(multiply.code.find_first_not_of('\n')));
  fill_in(code, "NEXT", next_sum(s.dtype));
  fill_in(code, "END_OF_TILE", p.all_store ? SharedResults : OwnResults);
  fill_in(code, "BEHIND", text.behind);
  fill_in(code, "SLICES_MEET", p.split.tile.slices > 1 ? SlicesMeet : std::string_view());
  fill_in(code, "i < ROWS", fmt::format("i < {}", multiply.rows));
  fill_in(code, "own_m + ROW", fmt::format("own_m + {}", multiply.row));
  fill_in(code, "VALUE", multiply.value);
  fill_in(code, "GROUPS;", fmt::format("{};", multiply.groups));
  fill_in(code, "own_n + COLUMN", fmt::format("own_n + {}", multiply.column));
  const bool together = s.columns % 4 == 0 && (!whole || p.columns_adjoin);
  fill_in(code, "STORE", together ? StoreTogether : StoreEach.substr(1));
  fill_in(code, "WIDE", multiply.wide);
  fill_in(code, "REAL", whole ? text.is_real : "true");
  fill_in(code, "PLACE",
          whole ? text.place : fmt::format("((i64(part) * {}LL + z) * M + m) * N + n", s.matrices));
  const std::string value = p.all_store ? "total.at[j]" : std::string(multiply.value);
  fill_in(code, "STORED", whole ? to_stored(s.dtype, value) : value);
  return code;
}

}  // namespace

std::string copy_text(DType dtype, std::string_view slot, std::string_view to,
                      std::string_view from, std::string_view real) {
  return are_fetched(dtype) ? fmt::format("fetched[{}] = fetch({}, {});", slot, from, real)
                            : fmt::format("copy_element({}, {}, {});", to, from, real);
}

std::string product_types(DType dtype, bool narrow) {
  return fmt::format("typedef {} T;\ntypedef {} H;\ntypedef {} I;\n", stored_type(dtype),
                     held_type(summed_in(dtype)), narrow ? "int" : "i64");
}

void plan_implicit_product(PlanBuilder& builder, const ImplicitProduct& p,
                           const ImplicitProductText& text, Place a, Place b) {
  const ProductSizes& s = p.sizes;
  const ProductTile& t = p.split.tile;
  const DType sum = summed_in(s.dtype);
  const bool whole = p.split.parts == 1;
  const std::string types = product_types(s.dtype, p.narrow);
  const std::string stored =
      fmt::format("typedef {} C;\n", whole ? stored_type(s.dtype) : held_type(sum));
  const Place to = whole ? result(0) : builder.reserve(p.split.parts * s.results() * size_of(sum));
  std::vector<Parameter> parameters = {
      {a, s.dtype, "a"},
      {b, s.dtype, "b"},
      {to, whole ? s.dtype : sum, "c", true, !text.behind.empty()}};
  parameters.insert(parameters.end(), text.behind_parameters.begin(), text.behind_parameters.end());
  builder.launch(
      tiles_over(s.rows, t.rows) * tiles_over(s.columns, t.columns) * s.matrices * p.split.parts,
      static_cast<std::int32_t>(t.threads()), parameters, tile_code(p, text),
      types + stored + constants_of(p) + text.before, {.shared_bytes = shared_bytes(p)});
  if (s.multiply == Multiply::Tf32) builder.plan.how = "kernel tf32";
  if (whole) return;
  const std::string sizes = fmt::format("const I M = {}, N = {};\n", s.rows, s.columns);
  plan_sum_of_parts(builder, s.dtype, p.split.parts, s.results(), to, types + sizes + text.before,
                    fmt::format("const I n = I(i % N), m = I(i / N % M), z = I(i / N / M);\n"
                                "    if ({}) c[{}] = {};",
                                text.is_real, text.place, to_stored(s.dtype, "total")));
}

void plan_sum_of_parts(PlanBuilder& builder, DType dtype, std::int64_t parts, std::int64_t results,
                       Place from, const std::string& before, const std::string& store) {
  constexpr std::int64_t Beside = 32;
  const std::int64_t slices = parts > 64 ? 32 : parts > 4 ? 8 : 2;
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
