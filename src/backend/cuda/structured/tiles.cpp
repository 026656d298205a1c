#include "backend/cuda/structured/tiles.h"

#include <algorithm>
#include <complex>

#include <fmt/format.h>

#include "backend/cuda/codegen/expression.h"
#include "backend/cuda/structured/sums_text.h"
#include "support/align.h"

namespace ricci::cuda {
namespace {

constexpr std::int64_t TileColumns = 128;
constexpr std::int64_t TileDepth = 16;

// A thread has RM by 8 sums; I is an integer that has room for every place. The column of b that a
// thread reads stays the same.
constexpr std::string_view TileCode = R"(__shared__ H left[16][BM + 1];
  __shared__ H right[16][129];
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  const i64 tile = blockIdx.x;
  const I n0 = I(tile % TILES_N * 128), m0 = I(tile / TILES_N % TILES_M * BM);
  const I part = I(tile / TILES_N / TILES_M % PARTS);
  const I z = I(tile / TILES_N / TILES_M / PARTS);
  const I k_end = (part + 1) * PART < K ? (part + 1) * PART : K;
  BEGIN
  H sum[RM][8];
#pragma unroll
  for (int i = 0; i < RM; ++i)
#pragma unroll
    for (int j = 0; j < 8; ++j) sum[i][j] = ZERO;
  const I own_n = n0 + threadIdx.x % 128;
  for (I k0 = part * PART; k0 < k_end; k0 += 16) {
#pragma unroll
    for (int e = threadIdx.x; e < 16 * BM; e += 256) {
      const I m = m0 + (A_BY_ROWS ? e / 16 : e % BM);
      const I k = k0 + (A_BY_ROWS ? e % 16 : e / BM);
      H value = ZERO;
      if (m < M && k < k_end) {
        LOAD_A
      }
      left[k - k0][m - m0] = value;
    }
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const I n = own_n, k = k0 + 2 * e + threadIdx.x / 128;
      H value = ZERO;
      if (n < N && k < k_end) {
        LOAD_B
      }
      right[k - k0][n - n0] = value;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      H x[RM], y[8];
#pragma unroll
      for (int i = 0; i < RM; ++i) x[i] = left[k][ty + 16 * i];
#pragma unroll
      for (int j = 0; j < 8; ++j) y[j] = right[k][tx + 16 * j];
#pragma unroll
      for (int i = 0; i < RM; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) sum[i][j] = NEXT;
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < RM; ++i)
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const I m = m0 + ty + 16 * i, n = n0 + tx + 16 * j;
      if (m < M && n < N) {
        STORE
      }
    })";

// Rows of a tile: not many more than there are, and both tiles in the 48 KiB that a block has
// without asking.
std::int64_t tile_rows(const TiledSums& s) {
  const std::int64_t size = size_of(s.dtype);
  if (s.rows <= 32 || size > 8) return 32;
  return s.rows <= 64 || size > 4 ? 64 : 128;
}

std::string zero_of(DType dtype) {
  if (is_complex(dtype)) return constant_text(dtype, std::complex<double>(0));
  return is_float(dtype) ? constant_text(dtype, 0.0) : constant_text(dtype, std::int64_t{0});
}

// A product that is added at once is rounded once, which floats may have.
std::string next_sum(DType dtype) {
  if (dtype == DType::F32) return "fmaf(x[i], y[j], sum[i][j])";
  if (dtype == DType::F64) return "fma(x[i], y[j], sum[i][j])";
  return binary_text(BinaryKind::Add, dtype, "sum[i][j]",
                     binary_text(BinaryKind::Mul, dtype, "x[i]", "y[j]"));
}

}  // namespace

std::int64_t parts_for(const TiledSums& s) {
  constexpr std::int64_t EnoughBlocks = 528;
  constexpr std::int64_t ShortestPart = 256;
  const std::int64_t rows = tile_rows(s);
  const std::int64_t blocks =
      s.matrices * ((s.rows + rows - 1) / rows) * ((s.columns + TileColumns - 1) / TileColumns);
  const std::int64_t wanted = EnoughBlocks / std::max<std::int64_t>(blocks, 1);
  return std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(s.depth / ShortestPart, 1));
}

void plan_tiled_sums(PlanBuilder& builder, const TiledSums& s, Place a, Place b) {
  constexpr std::int64_t Narrow = std::int64_t{1} << 30;
  const std::int64_t height = tile_rows(s);
  const std::int64_t across = (s.columns + TileColumns - 1) / TileColumns;
  const std::int64_t down = (s.rows + height - 1) / height;
  const DType sum = summed_in(s.dtype);
  const std::int64_t part =
      aligned((s.depth + s.parts - 1) / std::max<std::int64_t>(s.parts, 1), TileDepth);
  const std::int64_t results = s.matrices * s.rows * s.columns;
  const bool whole = s.parts == 1;
  std::string code(TileCode);
  fill_in(code, "BEGIN", s.begin);
  fill_in(code, "LOAD_A", s.a);
  fill_in(code, "LOAD_B", s.b);
  fill_in(code, "NEXT", next_sum(sum));
  fill_in(code, "ZERO", zero_of(sum));
  fill_in(
      code, "STORE",
      whole ? fmt::format("c[{}] = {};", s.c, to_stored(s.dtype, "sum[i][j]"))
            : fmt::format("c[((i64(part) * {}LL + z) * M + m) * N + n] = sum[i][j];", s.matrices));
  const bool narrow = s.reach < Narrow && results < Narrow && s.depth < Narrow;
  const std::string defines = fmt::format(
      "typedef {} H;\ntypedef {} I;\n#define TILES_N {}LL\n#define TILES_M {}LL\n"
      "#define PARTS {}LL\n#define PART I({})\n#define M I({})\n#define K I({})\n#define N I({})\n"
      "#define A_BY_ROWS {}\n#define BM {}\n#define RM {}\n",
      held_type(sum), narrow ? "int" : "i64", across, down, s.parts, part, s.rows, s.depth,
      s.columns, s.a_by_rows, height, height / 16);
  const Place partial = whole ? result(0) : builder.reserve(s.parts * results * size_of(sum));
  const std::vector<Parameter> parameters = {
      {a, s.dtype, "a"}, {b, s.dtype, "b"}, {partial, whole ? s.dtype : sum, "c", true}};
  builder.launch(across * down * s.matrices * s.parts, 256, parameters, code, defines);
  if (whole) return;
  const std::vector<Parameter> rest = {{partial, sum, "parts"}, {result(0), s.dtype, "c", true}};
  builder.for_each(results, rest,
                   fmt::format("H total = parts[i];\n"
                               "    for (int p = 1; p < {0}; ++p) total = {1};\n"
                               "    const I n = I(i % N), m = I(i / N % M), z = I(i / N / M);\n"
                               "    {2}\n    c[{3}] = {4};",
                               s.parts,
                               binary_text(BinaryKind::Add, sum, "total",
                                           fmt::format("parts[p * {}LL + i]", results)),
                               s.begin, s.c, to_stored(s.dtype, "total")),
                   defines);
}

}  // namespace ricci::cuda
