// The gradients of attention in tiles. First a forward pass finds, for every query, the lse
// and Σ P dP, unless they are known; then queries collect their gradient over keys, and keys
// theirs, and that of their values, over queries. Tiles of the other side are read while the one
// before is computed with.
#include <fmt/format.h>

#include "backend/cuda/codegen/expression.h"
#include "backend/cuda/structured/attention_tiles.h"

namespace ricci::cuda {
namespace {

// What a cap makes of the gradients of scores.
constexpr std::string_view Slopes = R"(#ifdef CAP
#undef KEEP_SLOPE
#define KEEP_SLOPE(slope) slopes[g][n][c] = slope
#endif
)";

// Weights `s` and the gradients of scores without the scale, `dp`, from those of weights.
// Statistics are those of the element's query.
constexpr std::string_view Elements = R"(
#pragma unroll
      for (int n = 0; n < TILE / 8; ++n)
#pragma unroll
        for (int of = 0; of < 2; ++of) {
          $COLUMN
#pragma unroll
          for (int e = 0; e < GROUPS * 2; ++e) {
            const int g = e / 2, c = e % 2 * 2 + of;
            $ROW
            const float p = near_exp2(fmaf(s[g][n][c], STEEP, -known));
            s[g][n][c] = p;
            dp[g][n][c] = p * (dp[g][n][c] - mean);
#ifdef CAP
            dp[g][n][c] *= slopes[g][n][c];
#endif
          }
        }
      if (with_care) {
#pragma unroll
        for (int e = 0; e < GROUPS * TILE / 2; ++e)
          if (s[e / 4 / (TILE / 8)][e / 4 % (TILE / 8)][e % 4] == 0) dp[e / 4 / (TILE / 8)][e / 4 % (TILE / 8)][e % 4] = 0;
      })";

constexpr std::string_view StatisticsOfRow =
    "const float known = less[g][e % 2], mean = means[g][e % 2];";
constexpr std::string_view StatisticsOfColumn =
    R"(const Pack<float, 2> stat = stats[n * 8 + lane % 4 * 2 + of];
          const float known = stat.at[0] == -float(Infinity) ? float(Infinity) : stat.at[0] * float(LOG2E), mean = stat.at[1];)";

constexpr std::string_view RowsTiles =
    R"(const i64 h = own_head;
  const int seen = low_query, high = high_query;
  S* const given = queries + ROWS * (DEPTH + PAD);
  S* const tiles = given + ROWS * (VALUE_DEPTH + PAD);
  constexpr int Room = TILE * (DEPTH + PAD + VALUE_DEPTH + PAD);
  S* const room = tiles + COPIES * Room;
  const S* const own_given = given + OWN_ROWS(warp) * (VALUE_DEPTH + PAD);
  const auto given_at = [&](i64 i) { return DY_AT(b, i, h); };
  const auto begin_tile = [&](int j0, int which) {
    begin_rows<TILE, DEPTH, K_WHOLE, true>(tiles + which * Room, k, j0, KEYS, WIDTH, K_STEP, key_at);
    begin_rows<TILE, VALUE_DEPTH, V_WHOLE, true>(tiles + which * Room + TILE * (DEPTH + PAD), v, j0, KEYS, VALUE_WIDTH, V_STEP, value_at);
  };
  begin_rows<ROWS, DEPTH, Q_WHOLE, true>(queries, q, first, QUERIES, WIDTH, Q_STEP, query_at);
  begin_rows<ROWS, VALUE_DEPTH, DY_WHOLE, true>(given, dy, first, QUERIES, VALUE_WIDTH, DY_STEP, given_at);
  float sums[GROUPS][DEPTH / 8][4], less[GROUPS][2], means[GROUPS][2];
#pragma unroll
  for (int g = 0; g < GROUPS; ++g)
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int i = low + g * GROUP_ROWS + lane / 4 + 8 * r;
      const i64 number = (b * HEADS + h) * QUERIES + i;
      const float known = i < QUERIES ? rows[2 * number] : -float(Infinity);
      less[g][r] = known == -float(Infinity) ? float(Infinity) : known * float(LOG2E);
      means[g][r] = i < QUERIES ? rows[2 * number + 1] : 0.0f;
    }
  for (bool with_care = false;; with_care = true) {
    clear<DEPTH>(sums);
    __syncthreads();
    if (COPIES == 2 && begin < end) begin_tile(begin, 0);
    int which = 0;
    for (int j0 = begin; j0 < end; j0 += TILE, which ^= COPIES - 1) {
      if (COPIES == 1) {
        __syncthreads();
        begin_tile(j0, 0);
      }
      arrived();
      __syncthreads();
      if (COPIES == 2 && j0 + TILE < end) begin_tile(j0 + TILE, which ^ 1);
      if (NONE_ALLOWED(seen, high, j0, j0 + TILE - 1)) continue;
      const S* const keys = tiles + which * Room;
      Scores s, dp;
      multiply_rows<DEPTH>(s, own, keys);
      multiply_rows<VALUE_DEPTH>(dp, own_given, keys + TILE * (DEPTH + PAD));
#ifdef CAP
      Scores slopes;
#endif
      if (!PLAIN || j0 + TILE > KEYS || !(ALL_ALLOWED(seen, high, j0, j0 + TILE - 1))) {$MASK
      }$ELEMENTS
      if (with_care) {
        add_rows_with_care<DEPTH>(sums, dp, keys);
      } else {
        add_rows<DEPTH>(sums, dp, keys, room);
      }
    }
    if (with_care || !__syncthreads_or(has_none<DEPTH>(sums))) break;
  }
#pragma unroll
  for (int g = 0; g < GROUPS; ++g)
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int i = low + g * GROUP_ROWS + lane / 4 + 8 * r;
      if (i >= QUERIES) continue;
#pragma unroll
      for (int n = 0; n < DEPTH / 8; ++n)
        store_both<DQ_PAIRS>(dq + DQ_AT(b, i, h), n * 8 + lane % 4 * 2, WIDTH,
                            sums[g][n][2 * r] * float(SCALE), sums[g][n][2 * r + 1] * float(SCALE));
    })";

// Rows of the products are keys, columns queries. First the keys that most queries see.
constexpr std::string_view ColumnsTiles =
    R"(const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int blocks = (KEYS + ROWS - 1) / ROWS, all_heads = int(BATCH * KV_HEADS);
  const int part = ORDERED ? int(blockIdx.x) / all_heads : int(blockIdx.x) % blocks;
  const int head = ORDERED ? int(blockIdx.x) % all_heads : int(blockIdx.x) / blocks;
  const i64 kv = head % int(KV_HEADS), b = head / int(KV_HEADS);
  const int first = part * ROWS, low = first + OWN_ROW(warp), seen = SEEN_LOW(low), high = SEEN_HIGH(low);
  const int begin = int(QUERIES_BEGIN), end = int(QUERIES_END);
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  S* const keys = (S*)shared_memory;
  S* const values = keys + ROWS * (DEPTH + PAD);
  S* const tiles = values + ROWS * (VALUE_DEPTH + PAD);
  constexpr int Room = TILE * (DEPTH + PAD + VALUE_DEPTH + PAD);
  Pack<float, 2>* const all_stats = (Pack<float, 2>*)(tiles + COPIES * Room);
  S* const room = (S*)(all_stats + COPIES * TILE);
  const S* const own = keys + OWN_ROWS(warp) * (DEPTH + PAD);
  const S* const own_values = values + OWN_ROWS(warp) * (VALUE_DEPTH + PAD);
  const auto key_at = [&](i64 j) { return K_AT(b, j, kv); };
  const auto value_at = [&](i64 j) { return V_AT(b, j, kv); };
  // One head after another: a tile's number, and in which copy it is.
  const int per_head = (end - begin + TILE - 1) / TILE, count = begin < end ? per_head * int(HEADS / KV_HEADS) : 0;
  const auto begin_tile = [&](int number, int which) {
    const i64 h = kv * (HEADS / KV_HEADS) + number / per_head;
    const int i0 = begin + number % per_head * TILE;
    const auto query_at = [&](i64 i) { return Q_AT(b, i, h); };
    const auto given_at = [&](i64 i) { return DY_AT(b, i, h); };
    S* const to = tiles + which * Room;
    begin_rows<TILE, DEPTH, Q_WHOLE, true>(to, q, i0, QUERIES, WIDTH, Q_STEP, query_at);
    begin_rows<TILE, VALUE_DEPTH, DY_WHOLE, true>(to + TILE * (DEPTH + PAD), dy, i0, QUERIES, VALUE_WIDTH, DY_STEP, given_at);
    const float* const from = rows + 2 * ((b * HEADS + h) * QUERIES);
    for (int e = threadIdx.x; e < TILE; e += THREADS) {
      const bool real = i0 + e < QUERIES;
      begin_copy<8>(all_stats + which * TILE + e, from + (real ? 2 * (i0 + e) : 0), real);
    }
  };
  begin_rows<ROWS, DEPTH, K_WHOLE, true>(keys, k, first, KEYS, WIDTH, K_STEP, key_at);
  begin_rows<ROWS, VALUE_DEPTH, V_WHOLE, true>(values, v, first, KEYS, VALUE_WIDTH, V_STEP, value_at);
  float d_key[GROUPS][DEPTH / 8][4], d_value[GROUPS][VALUE_DEPTH / 8][4];
  for (bool with_care = false;; with_care = true) {
    clear<DEPTH>(d_key);
    clear<VALUE_DEPTH>(d_value);
    __syncthreads();
    if (COPIES == 2 && count > 0) begin_tile(0, 0);
    for (int number = 0; number < count; ++number) {
      const int which = number % COPIES, i0 = begin + number % per_head * TILE;
      if (COPIES == 1) {
        __syncthreads();
        begin_tile(number, 0);
      }
      arrived();
      __syncthreads();
      if (COPIES == 2 && number + 1 < count) begin_tile(number + 1, which ^ 1);
      if (NONE_ALLOWED(i0, i0 + TILE - 1, seen, high)) continue;
      const S* const queries = tiles + which * Room;
      const S* const given = queries + TILE * (DEPTH + PAD);
      const Pack<float, 2>* const stats = all_stats + which * TILE;
      const i64 h = kv * (HEADS / KV_HEADS) + number / per_head;
      Scores s, dp;
      multiply_rows<DEPTH>(s, own, queries);
      multiply_rows<VALUE_DEPTH>(dp, own_values, given);
#ifdef CAP
      Scores slopes;
#endif
      if (!PLAIN || i0 + TILE > QUERIES || !(ALL_ALLOWED(i0, i0 + TILE - 1, seen, high))) {$MASK
      }$ELEMENTS
      if (with_care) {
        add_rows_with_care<VALUE_DEPTH>(d_value, s, given);
        add_rows_with_care<DEPTH>(d_key, dp, queries);
      } else {
        add_rows<VALUE_DEPTH>(d_value, s, given, room);
        add_rows<DEPTH>(d_key, dp, queries, room);
      }
    }
    if (with_care || !__syncthreads_or(has_none<DEPTH>(d_key) || has_none<VALUE_DEPTH>(d_value))) break;
  }
#pragma unroll
  for (int g = 0; g < GROUPS; ++g)
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int j = low + g * GROUP_ROWS + lane / 4 + 8 * r;
      if (j >= KEYS) continue;
      if (dk != nullptr) {
#pragma unroll
        for (int n = 0; n < DEPTH / 8; ++n)
          store_both<DK_PAIRS>(dk + DK_AT(b, j, kv), n * 8 + lane % 4 * 2, WIDTH,
                              d_key[g][n][2 * r] * float(SCALE), d_key[g][n][2 * r + 1] * float(SCALE));
      }
      if (dv != nullptr) {
#pragma unroll
        for (int n = 0; n < VALUE_DEPTH / 8; ++n)
          store_both<DV_PAIRS>(dv + DV_AT(b, j, kv), n * 8 + lane % 4 * 2, VALUE_WIDTH,
                              d_value[g][n][2 * r], d_value[g][n][2 * r + 1]);
      }
    })";

std::string with_elements(std::string_view code, bool queries_in_rows) {
  std::string elements(Elements);
  elements = with(elements, "$COLUMN", queries_in_rows ? "" : StatisticsOfColumn);
  elements = with(elements, "$ROW", queries_in_rows ? StatisticsOfRow : "");
  return with(with(std::string(code), "$MASK", masked_scores(queries_in_rows)), "$ELEMENTS",
              elements);
}

// The lse and Σ P dP of every query: those that are given, or those of a forward pass.
void plan_statistics(PlanBuilder& builder, const loop::Attention& a, const AttentionArrays& arrays,
                     Place rows) {
  if (a.mean_operand < 0)
    return plan_tile_pass(builder, a, arrays, {.lse = rows, .given = arrays.dy});
  builder.for_each(a.batch * a.heads * a.queries,
                   std::vector<Parameter>{{arrays.lse, DType::F32, "lse"},
                                          {arrays.mean, DType::F32, "mean"},
                                          {rows, DType::F32, "rows", true}},
                   "rows[2 * i] = lse[i];\n  rows[2 * i + 1] = mean[i];");
}

}  // namespace

void plan_backward_tiles(PlanBuilder& builder, const loop::Attention& a,
                         const AttentionArrays& arrays, Place rows) {
  const CallStep& step = builder.step();
  const DType dtype = builder.dtype(0);
  const bool tensors = multiplies_with_tensors(dtype, a.pass);
  const std::int64_t depth = tile_depth(a.width);
  const std::int64_t both = depth + tile_depth(a.value_width);
  plan_statistics(builder, a, arrays, rows);
  std::vector<Parameter> in = tile_inputs(builder, a, arrays);
  in.push_back({arrays.dy, builder.dtype(3), "dy"});
  in.push_back({rows, DType::F32, "rows"});
  if (is_wanted(step, 0)) {
    const AttentionNeeds needs{.sums = depth, .scores = 2, .own = both, .other = both, .tile = 32};
    const std::int64_t heads = a.batch * a.heads;
    const AttentionBlock block = attention_block(builder, tensors, heads, a.queries, needs);
    std::vector<Parameter> first = in;
    first.push_back({result(0), dtype, "dq", true});
    builder.launch(tile_blocks(heads, a.queries, block), AttentionBlock::threads, first,
                   fmt::format("{}  {}", own_queries(), with_elements(RowsTiles, true)),
                   tile_names(builder, a, arrays, block) + std::string(Slopes),
                   room_of(block, needs));
  }
  if (!is_wanted(step, 1) && !is_wanted(step, 2)) return;
  const AttentionNeeds needs{.sums = both, .scores = 2, .own = both, .other = both, .tile = 32};
  const std::int64_t heads = a.batch * a.kv_heads;
  const AttentionBlock block = attention_block(builder, tensors, heads, a.keys, needs);
  in.push_back({result(1), dtype, "dk", true});
  in.push_back({result(2), dtype, "dv", true});
  builder.launch(tile_blocks(heads, a.keys, block), AttentionBlock::threads, in,
                 with_elements(ColumnsTiles, false),
                 tile_names(builder, a, arrays, block) + std::string(Slopes),
                 room_of(block, needs));
}

}  // namespace ricci::cuda
