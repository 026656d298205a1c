// What kernels for attention are made of: rows of heads that are copied to shared memory while
// others are computed with, and products of a warp's rows with a tile of them, by tensor cores or,
// in f32, by the lanes.
//
// A warp has GROUPS times 16 rows, its own; TILE rows of the other side are in shared memory, which
// all warps of the block share. Fragments are laid out as the PTX manual says of m16n8k16: of a
// result the lane has the rows lane / 4 and lane / 4 + 8, and of every eight columns lane % 4 * 2
// and the one behind. So sums of a product are, once rounded, a factor of the next.
#include <fmt/format.h>

#include "backend/cuda/structured/attention_tiles.h"
#include "backend/cuda/structured/tensor_text.h"
#include "backend/cuda/structured/warpgroups.h"

namespace ricci::cuda {
namespace {

constexpr std::string_view Common = R"(
typedef float Scores[GROUPS][TILE / 8][4];
// Number d of row r of so many: rows lie behind each other, apart by PAD; or, where warps multiply
// together, by 64 numbers at a time, whose eighths change places by the row's number.
template <int COUNT, int WIDE>
__device__ inline int place_of(int r, int d) {
#if WARPGROUPS
  return (d / 64 * COUNT + r) * 64 + (d % 64 / 8 ^ r % 8) * 8 + d % 8;
#else
  return r * (WIDE + PAD) + d;
#endif
}
// Of the four lanes of a row.
__device__ inline float row_sum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}
__device__ inline float row_most(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
// Begins to copy so many bytes, or zeros: they are there after `arrived` and a barrier.
template <int BYTES>
__device__ inline void begin_copy(void* to, const void* from, bool real) {
  const unsigned at = (unsigned)__cvta_generic_to_shared(to);
  if (BYTES == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(at), "l"(from), "r"(real ? 16 : 0) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" :: "r"(at), "l"(from), "r"(real ? 8 : 0) : "memory");
  }
}
__device__ inline void arrived() {
  asm volatile("cp.async.wait_all;" ::: "memory");
#if WARPGROUPS
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}
// Rows [first, first + COUNT) of an array, zero where there are none. Row r begins at `from + at(r)`;
// `step` is how far apart neighbours are, so that all but the first are found by adding to it. A
// thread has the same part of every row it copies.
template <int COUNT, int WIDE, bool WHOLE, bool EVEN, class At>
__device__ inline void begin_rows(S* to, const T* from, int first, int rows, int width, i64 step, At at) {
  constexpr int Many = 16 / sizeof(S), Parts = WIDE / Many, Rows = THREADS % Parts == 0 ? THREADS / Parts : 0;
  if (WHOLE && EVEN && Rows > 0) {
    const int r0 = threadIdx.x / Parts, d = threadIdx.x % Parts * Many;
    S* const place = to + place_of<COUNT, WIDE>(r0, d);
    constexpr int Row = WARPGROUPS ? 64 : WIDE + PAD;
    const T* const row = from + at(first + r0) + d;
#pragma unroll
    for (int r = 0; r < COUNT; r += Rows) {
      if (COUNT % Rows != 0 && r0 + r >= COUNT) break;
      begin_copy<16>(place + r * Row, row + r * step, first + r0 + r < rows && d < width);
    }
    return;
  }
  for (int e = threadIdx.x; e < COUNT * Parts; e += THREADS) {
    const int r = e / Parts, d = e % Parts * Many;
    S* const place = to + place_of<COUNT, WIDE>(r, d);
    const bool real = first + r < rows;
    const T* const row = from + at(real ? first + r : 0);
    if (WHOLE) {
      begin_copy<16>(place, row + d, real && d < width);
      continue;
    }
#pragma unroll
    for (int j = 0; j < Many; ++j) place[j] = real && d + j < width ? AS_SHARED(row[d + j]) : NOTHING;
  }
}
// Adds the rows of a tile where a weight of zero takes nothing of its row, even if that has numbers that are
// infinite, or none: products would. It is rare, so its code is small instead of fast, and what
// it indexes are copies, so that all else stays in registers.
template <int WIDE>
__device__ inline void add_rows_with_care(float (&sums)[GROUPS][WIDE / 8][4], const Scores& p, const S* tile) {
  const int lane = threadIdx.x % 32;
  float weights[GROUPS * TILE / 2], mine[GROUPS * WIDE / 2];
#pragma unroll
  for (int e = 0; e < GROUPS * TILE / 2; ++e) weights[e] = p[e / 4 / (TILE / 8)][e / 4 % (TILE / 8)][e % 4];
#pragma unroll
  for (int e = 0; e < GROUPS * WIDE / 2; ++e) mine[e] = sums[e / 4 / (WIDE / 8)][e / 4 % (WIDE / 8)][e % 4];
#pragma unroll 1
  for (int of = 0; of < GROUPS * TILE; ++of) {
    const int g = of / TILE, j = of % TILE, from = lane / 4 * 4 + j % 8 / 2;
    const float* const w = weights + (g * (TILE / 8) + j / 8) * 4 + j % 2;
    const float x = __shfl_sync(0xffffffffu, w[0], from), y = __shfl_sync(0xffffffffu, w[2], from);
#pragma unroll 1
    for (int e = 0; e < WIDE / 4; ++e) {
      const int at = place_of<TILE, WIDE>(j, e / 2 * 8 + lane % 4 * 2 + e % 2);
      const float value = AS_FLOAT(tile[at]);
      float* const sum = mine + (g * (WIDE / 8) + e / 2) * 4 + e % 2;
      if (x != 0) sum[0] = fmaf(x, value, sum[0]);
      if (y != 0) sum[2] = fmaf(y, value, sum[2]);
    }
  }
#pragma unroll
  for (int e = 0; e < GROUPS * WIDE / 2; ++e) sums[e / 4 / (WIDE / 8)][e / 4 % (WIDE / 8)][e % 4] = mine[e];
}
template <int WIDE>
__device__ inline void clear(float (&sums)[GROUPS][WIDE / 8][4]) {
#pragma unroll
  for (int e = 0; e < GROUPS * WIDE / 2; ++e) sums[e / 4 / (WIDE / 8)][e / 4 % (WIDE / 8)][e % 4] = 0;
}
// Is one of the sums none? Then a weight of zero may have met what is infinite.
template <int WIDE>
__device__ inline bool has_none(const float (&sums)[GROUPS][WIDE / 8][4]) {
  bool none = false;
#pragma unroll
  for (int e = 0; e < GROUPS * WIDE / 2; ++e) {
    const float x = sums[e / 4 / (WIDE / 8)][e / 4 % (WIDE / 8)][e % 4];
    none = none || x != x;
  }
  return none;
}
// Numbers at, at + 1 of a row of a head that has `width`.
template <bool PAIRS>
__device__ inline void store_both(T* row, int at, int width, float x, float x2) {
  const Pack<T, 2> pair = {as_stored(x), as_stored(x2)};
  if (PAIRS && at < width) {
    *(Pack<T, 2>*)(row + at) = pair;
    return;
  }
  if (at < width) row[at] = pair.at[0];
  if (at + 1 < width) row[at + 1] = pair.at[1];
}
#if !PLAIN
// A score as the power of 2 that weighs it, from a product; and the slope of the cap.
__device__ inline float bent_score(float r, float& slope) {
  slope = 1;
#ifdef CAP
  const float u = 1 / (near_exp2(r * float(2 * LOG2E * SCALE / CAP)) + 1);
  slope = 4 * u * (1 - u);
  return (1 - 2 * u) * float(CAP);
#else
  return r * float(SCALE);
#endif
}
#endif
)";

constexpr std::string_view Tensors = R"(
typedef unsigned Factors[GROUPS][TILE / 16][4];
__device__ inline unsigned both(float x, float y) {
  unsigned pair;
  asm("cvt.rn." SMALL "x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(y), "f"(x));
  return pair;
}
__device__ inline void round_factors(Factors& a, const Scores& p) {
#pragma unroll
  for (int g = 0; g < GROUPS; ++g)
#pragma unroll
    for (int j = 0; j < TILE / 16; ++j)
#pragma unroll
      for (int c = 0; c < 4; ++c)
        a[g][j][c] = both(p[g][2 * j + c / 2][c % 2 * 2], p[g][2 * j + c / 2][c % 2 * 2 + 1]);
}
)";

constexpr std::string_view ByWarps = R"(
// The fragments of a warp's own rows that a product needs next.
template <int WIDE>
__device__ inline void load_own(unsigned (&a)[GROUPS][4], const S* own, int d) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int g = 0; g < GROUPS; ++g)
    load_matrices(a[g], own + (g * 16 + lane % 16) * (WIDE + PAD) + d + lane / 16 * 8);
}
// Products of its own rows with the rows of a tile.
template <int WIDE>
__device__ inline void multiply_rows(Scores& s, const S* own, const S* tile) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int g = 0; g < GROUPS; ++g)
#pragma unroll
    for (int n = 0; n < TILE / 8; ++n)
#pragma unroll
      for (int c = 0; c < 4; ++c) s[g][n][c] = 0;
#pragma unroll
  for (int d = 0; d < WIDE; d += 16) {
    unsigned a[GROUPS][4];
    load_own<WIDE>(a, own, d);
#pragma unroll
    for (int n = 0; n < TILE / 8; n += 2) {
      unsigned b[4];
      load_matrices(b, tile + (n * 8 + lane % 8 + lane / 16 * 8) * (WIDE + PAD) + d + lane / 8 % 2 * 8);
#pragma unroll
      for (int g = 0; g < GROUPS; ++g) {
        multiply_add(s[g][n], a[g], b[0], b[1]);
        multiply_add(s[g][n + 1], a[g], b[2], b[3]);
      }
    }
  }
}
// Adds the rows of a tile, weighted.
template <int WIDE>
__device__ inline void add_rows(float (&sums)[GROUPS][WIDE / 8][4], const Scores& p, const S* tile, S*) {
  const int lane = threadIdx.x % 32;
  Factors a;
  round_factors(a, p);
#pragma unroll
  for (int j = 0; j < TILE / 16; ++j)
#pragma unroll
    for (int n = 0; n < WIDE / 8; n += 2) {
      unsigned b[4];
      load_transposed(b, tile + (j * 16 + lane % 16) * (WIDE + PAD) + n * 8 + lane / 16 * 8);
#pragma unroll
      for (int g = 0; g < GROUPS; ++g) {
        multiply_add(sums[g][n], a[g][j], b[0], b[1]);
        multiply_add(sums[g][n + 1], a[g][j], b[2], b[3]);
      }
    }
}
)";

// The same sums by the lanes, in f32. Loops are not unrolled where that would only make code long.
constexpr std::string_view Lanes = R"(
template <int WIDE>
__device__ inline void multiply_rows(Scores& s, const S* own, const S* tile) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int e = 0; e < GROUPS * TILE / 2; ++e) s[e / 4 / (TILE / 8)][e / 4 % (TILE / 8)][e % 4] = 0;
#pragma unroll 1
  for (int d = 0; d < WIDE; d += 4) {
    Pack<float, 4> a[GROUPS][2];
#pragma unroll
    for (int e = 0; e < GROUPS * 2; ++e)
      a[e / 2][e % 2] = *(const Pack<float, 4>*)(own + (e * 8 + lane / 4) * (WIDE + PAD) + d);
#pragma unroll
    for (int n = 0; n < TILE / 8; ++n)
#pragma unroll
      for (int of = 0; of < 2; ++of) {
        const Pack<float, 4> b = *(const Pack<float, 4>*)(tile + (n * 8 + lane % 4 * 2 + of) * (WIDE + PAD) + d);
#pragma unroll
        for (int t = 0; t < 4; ++t)
#pragma unroll
          for (int e = 0; e < GROUPS * 2; ++e)
            s[e / 2][n][e % 2 * 2 + of] = fmaf(a[e / 2][e % 2].at[t], b.at[t], s[e / 2][n][e % 2 * 2 + of]);
      }
  }
}
// Weights go through `room`, where the warp's rows are its own.
template <int WIDE>
__device__ inline void add_rows(float (&sums)[GROUPS][WIDE / 8][4], const Scores& p, const S* tile, S* room) {
  const int lane = threadIdx.x % 32;
  S* const mine = room + threadIdx.x / 32 * 16 * GROUPS * (TILE + PAD);
  __syncwarp();
#pragma unroll
  for (int e = 0; e < GROUPS * 2; ++e)
#pragma unroll
    for (int n = 0; n < TILE / 8; ++n)
      *(Pack<float, 2>*)(mine + (e * 8 + lane / 4) * (TILE + PAD) + n * 8 + lane % 4 * 2) = {p[e / 2][n][e % 2 * 2], p[e / 2][n][e % 2 * 2 + 1]};
  __syncwarp();
#pragma unroll 1
  for (int j = 0; j < TILE; j += 4) {
    Pack<float, 4> w[GROUPS * 2];
#pragma unroll
    for (int e = 0; e < GROUPS * 2; ++e)
      w[e] = *(const Pack<float, 4>*)(mine + (e * 8 + lane / 4) * (TILE + PAD) + j);
#pragma unroll
    for (int t = 0; t < 4; ++t)
#pragma unroll
      for (int n = 0; n < WIDE / 8; ++n) {
        const Pack<float, 2> v = *(const Pack<float, 2>*)(tile + (j + t) * (WIDE + PAD) + n * 8 + lane % 4 * 2);
#pragma unroll
        for (int e = 0; e < GROUPS * 2; ++e) {
          float* const sum = &sums[e / 2][n][e % 2 * 2];
          sum[0] = fmaf(w[e].at[t], v.at[0], sum[0]);
          sum[1] = fmaf(w[e].at[t], v.at[1], sum[1]);
        }
      }
  }
}
)";

}  // namespace

std::string attention_fragments(bool tensors, std::int64_t tile) {
  if (!tensors) return std::string(Common) + std::string(Lanes);
  return fmt::format("{}{}#if WARPGROUPS\n{}#else{}{}#endif\n", Common, Tensors,
                     warpgroup_text(tile), SmallTensorText, ByWarps);
}

}  // namespace ricci::cuda
