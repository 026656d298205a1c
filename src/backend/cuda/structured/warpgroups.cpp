#include "backend/cuda/structured/warpgroups.h"

#include <fmt/format.h>

namespace ricci::cuda {
namespace {

// What is said of shared memory: rows of 128 bytes whose 16 bytes change places by the row's number
// (its last three bits), eight of them 1024 bytes. What is read next must be written, and waited
// for, before; the numbers of results must not be touched in between.
constexpr std::string_view Common = R"(
__device__ inline u64 described(const S* from) {
  const unsigned at = (unsigned)__cvta_generic_to_shared(from);
  return u64(at >> 4 & 0x3fffu) | u64(1) << 16 | u64(64) << 32 | u64(1) << 62;
}
template <int N>
__device__ inline void hold(float* x) {
#pragma unroll
  for (int e = 0; e < N; ++e) asm volatile("" : "+f"(x[e]) :: "memory");
}
__device__ inline void begin_products() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void end_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}
)";

constexpr std::string_view Products = R"(
// Products of the block's rows with the rows of a tile.
template <int WIDE>
__device__ inline void multiply_rows(Scores& s, const S* own, const S* tile) {
#pragma unroll
  for (int g = 0; g < GROUPS; ++g) hold<TILE / 2>(&s[g][0][0]);
  begin_products();
#pragma unroll
  for (int d = 0; d < WIDE; d += 16)
#pragma unroll
    for (int g = 0; g < GROUPS; ++g)
      add_product(&s[g][0][0], own + place_of<ROWS, WIDE>(g * 64, d / 64 * 64) + d % 64, tile + place_of<TILE, WIDE>(0, d / 64 * 64) + d % 64, d != 0);
  end_products();
#pragma unroll
  for (int g = 0; g < GROUPS; ++g) hold<TILE / 2>(&s[g][0][0]);
}
// Adds the rows of a tile, weighted.
template <int WIDE>
__device__ inline void add_rows(float (&sums)[GROUPS][WIDE / 8][4], const Scores& p, const S* tile, S*) {
  Factors a;
  round_factors(a, p);
#pragma unroll
  for (int g = 0; g < GROUPS; ++g) hold<WIDE / 2>(&sums[g][0][0]);
  begin_products();
#pragma unroll
  for (int j = 0; j < TILE / 16; ++j)
#pragma unroll
    for (int g = 0; g < GROUPS; ++g)
#pragma unroll
      for (int d = 0; d < WIDE; d += 64)
        add_weighted(&sums[g][d / 8][0], a[g][j], tile + place_of<TILE, WIDE>(j * 16, d));
  end_products();
#pragma unroll
  for (int g = 0; g < GROUPS; ++g) hold<WIDE / 2>(&sums[g][0][0]);
}
)";

}  // namespace

std::string warpgroup_product(std::int64_t columns, bool factors) {
  const std::int64_t numbers = columns / 2;
  std::string list;
  std::string held;
  for (std::int64_t n = 0; n < numbers; ++n) {
    list += fmt::format("{}%{}", n > 0 ? ", " : "", n);
    held += fmt::format("{}\"+f\"(d[{}])", n > 0 ? ", " : "", n);
  }
  const std::int64_t next = numbers;
  if (factors) {
    return fmt::format(
        R"(asm volatile("wgmma.mma_async.sync.aligned.m64n{}k16.f32." SMALL "." SMALL " {{{}}}, {{%{}, %{}, %{}, %{}}}, %{}, 1, 1, 1, 1;" : {} : "r"(f[0]), "r"(f[1]), "r"(f[2]), "r"(f[3]), "l"(described(b)));)",
        columns, list, next, next + 1, next + 2, next + 3, next + 4, held);
  }
  return fmt::format(
      R"(asm volatile("{{ .reg .pred adds; setp.ne.b32 adds, %{}, 0; wgmma.mma_async.sync.aligned.m64n{}k16.f32." SMALL "." SMALL " {{{}}}, %{}, %{}, adds, 1, 1, 0, 0; }}" : {} : "l"(described(a)), "l"(described(b)), "r"((unsigned)adds));)",
      next + 2, columns, list, next, next + 1, held);
}

std::string warpgroup_text(std::int64_t tile) {
  return fmt::format(
      R"({}// {} columns of results.
__device__ inline void add_product(float* d, const S* a, const S* b, bool adds) {{
  {}
}}
// 64 columns; rows of `b` are weighted by factors.
__device__ inline void add_weighted(float* d, const unsigned* f, const S* b) {{
  {}
}}
{})",
      Common.substr(1), tile, warpgroup_product(tile, false), warpgroup_product(64, true),
      Products.substr(1));
}

}  // namespace ricci::cuda
