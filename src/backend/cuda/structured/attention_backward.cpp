// The gradients of attention in tiles. First a forward pass finds, for every query, the lse
// and Σ P dP; then queries collect their gradient over keys, and keys theirs, and that of their
// values, over queries. Tiles of the other side are read while the one before is computed with.
#include <fmt/format.h>

#include "backend/cuda/codegen/expression.h"
#include "backend/cuda/structured/attention_tiles.h"

namespace ricci::cuda {
namespace {

// Weights from scores, and the gradients of scores, without the scale: s and dp, of which the
// element has a row and a column of the product, and statistics of its query.
constexpr std::string_view Element = R"(
            float slope = 1, z = s[g][n][c];
#if !PLAIN
            z = bent_score(z, slope);
#endif
            bool sees = true;
            if (!whole) {
              sees = i < QUERIES && j < KEYS && ALLOWED;
              if (sees) BIAS;
            }
#if !PLAIN
            z *= float(LOG2E);
#endif
            float p = near_exp2(fmaf(z, STEEP, -known));
            if (!sees) p = 0;
            float d = p * (dp[g][n][c] - mean);
            if (with_care && p == 0) d = 0;
#if !PLAIN
            d *= slope;
#endif)";

constexpr std::string_view RowsTiles =
    R"(const i64 h = own_head;
  const int high = high_query;
  S* const given = queries + ROWS * (DEPTH + PAD);
  S* const tiles = given + ROWS * (VALUE_DEPTH + PAD);
  constexpr int Room = TILE * (DEPTH + PAD + VALUE_DEPTH + PAD);
  S* const room = tiles + COPIES * Room;
  const S* const own_given = given + warp * 16 * GROUPS * (VALUE_DEPTH + PAD);
  const auto given_at = [&](i64 i) { return OUT_AT(b, i, h); };
  const auto begin_tile = [&](int j0, int which) {
    begin_rows<TILE, DEPTH, K_WHOLE>(tiles + which * Room, k, j0, KEYS, WIDTH, key_at);
    begin_rows<TILE, VALUE_DEPTH, V_WHOLE>(tiles + which * Room + TILE * (DEPTH + PAD), v, j0, KEYS, VALUE_WIDTH, value_at);
  };
  begin_rows<ROWS, DEPTH, Q_WHOLE>(queries, q, first, QUERIES, WIDTH, query_at);
  begin_rows<ROWS, VALUE_DEPTH, DY_WHOLE>(given, dy, first, QUERIES, VALUE_WIDTH, given_at);
  float sums[GROUPS][DEPTH / 8][4], less[GROUPS][2], means[GROUPS][2];
#pragma unroll
  for (int g = 0; g < GROUPS; ++g)
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int i = low + g * 16 + lane / 4 + 8 * r;
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
      if (NONE_ALLOWED(low, high, j0, j0 + TILE - 1)) continue;
      const S* const keys = tiles + which * Room;
      Scores s, dp;
      multiply_rows<DEPTH>(s, own, keys);
      multiply_rows<VALUE_DEPTH>(dp, own_given, keys + TILE * (DEPTH + PAD));
      const bool whole = PLAIN && j0 + TILE <= KEYS && (ALL_ALLOWED(low, high, j0, j0 + TILE - 1));
#pragma unroll
      for (int g = 0; g < GROUPS; ++g)
#pragma unroll
        for (int n = 0; n < TILE / 8; ++n)
#pragma unroll
          for (int c = 0; c < 4; ++c) {
            const int i = low + g * 16 + lane / 4 + c / 2 * 8, j = j0 + n * 8 + lane % 4 * 2 + c % 2;
            const float known = less[g][c / 2], mean = means[g][c / 2];$ELEMENT
            s[g][n][c] = d;
          }
      if (with_care) {
        add_rows_with_care<DEPTH>(sums, s, keys);
      } else {
        add_rows<DEPTH>(sums, s, keys, room);
      }
    }
    if (with_care || !__syncthreads_or(has_none<DEPTH>(sums))) break;
  }
#pragma unroll
  for (int g = 0; g < GROUPS; ++g)
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int i = low + g * 16 + lane / 4 + 8 * r;
      if (i >= QUERIES) continue;
#pragma unroll
      for (int n = 0; n < DEPTH / 8; ++n)
        store_both<Q_PAIRS>(dq + Q_AT(b, i, h), n * 8 + lane % 4 * 2, WIDTH,
                            sums[g][n][2 * r] * float(SCALE), sums[g][n][2 * r + 1] * float(SCALE));
    })";

// Rows of the products are keys, columns queries. First the keys that most queries see.
constexpr std::string_view ColumnsTiles =
    R"(const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int blocks = (KEYS + ROWS - 1) / ROWS, all_heads = int(BATCH * KV_HEADS);
  const int part = ORDERED ? int(blockIdx.x) / all_heads : int(blockIdx.x) % blocks;
  const int head = ORDERED ? int(blockIdx.x) % all_heads : int(blockIdx.x) / blocks;
  const i64 kv = head % int(KV_HEADS), b = head / int(KV_HEADS);
  const int first = part * ROWS, low = first + warp * 16 * GROUPS, high = low + 16 * GROUPS - 1;
  const int begin = int(QUERIES_BEGIN), end = int(QUERIES_END);
  extern __shared__ __align__(16) unsigned char shared_memory[];
  S* const keys = (S*)shared_memory;
  S* const values = keys + ROWS * (DEPTH + PAD);
  S* const tiles = values + ROWS * (VALUE_DEPTH + PAD);
  constexpr int Room = TILE * (DEPTH + PAD + VALUE_DEPTH + PAD + 8 / sizeof(S));
  S* const room = tiles + COPIES * Room;
  const S* const own = keys + warp * 16 * GROUPS * (DEPTH + PAD);
  const S* const own_values = values + warp * 16 * GROUPS * (VALUE_DEPTH + PAD);
  const auto key_at = [&](i64 j) { return K_AT(b, j, kv); };
  const auto value_at = [&](i64 j) { return V_AT(b, j, kv); };
  // One head after another: a tile's number, and in which copy it is.
  const int per_head = (end - begin + TILE - 1) / TILE, count = begin < end ? per_head * int(HEADS / KV_HEADS) : 0;
  const auto begin_tile = [&](int number, int which) {
    const i64 h = kv * (HEADS / KV_HEADS) + number / per_head;
    const int i0 = begin + number % per_head * TILE;
    const auto query_at = [&](i64 i) { return Q_AT(b, i, h); };
    const auto given_at = [&](i64 i) { return OUT_AT(b, i, h); };
    S* const to = tiles + which * Room;
    begin_rows<TILE, DEPTH, Q_WHOLE>(to, q, i0, QUERIES, WIDTH, query_at);
    begin_rows<TILE, VALUE_DEPTH, DY_WHOLE>(to + TILE * (DEPTH + PAD), dy, i0, QUERIES, VALUE_WIDTH, given_at);
    const float* const from = rows + 2 * ((b * HEADS + h) * QUERIES);
    for (int e = threadIdx.x; e < TILE; e += THREADS) {
      const bool real = i0 + e < QUERIES;
      begin_copy<8>(to + TILE * (DEPTH + PAD + VALUE_DEPTH + PAD) + 8 / sizeof(S) * e, from + (real ? 2 * (i0 + e) : 0), real);
    }
  };
  begin_rows<ROWS, DEPTH, K_WHOLE>(keys, k, first, KEYS, WIDTH, key_at);
  begin_rows<ROWS, VALUE_DEPTH, V_WHOLE>(values, v, first, KEYS, VALUE_WIDTH, value_at);
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
      if (NONE_ALLOWED(i0, i0 + TILE - 1, low, high)) continue;
      const S* const queries = tiles + which * Room;
      const S* const given = queries + TILE * (DEPTH + PAD);
      const Pack<float, 2>* const stats = (const Pack<float, 2>*)(given + TILE * (VALUE_DEPTH + PAD));
      const i64 h = kv * (HEADS / KV_HEADS) + number / per_head;
      Scores s, dp;
      multiply_rows<DEPTH>(s, own, queries);
      multiply_rows<VALUE_DEPTH>(dp, own_values, given);
      const bool whole = PLAIN && i0 + TILE <= QUERIES && (ALL_ALLOWED(i0, i0 + TILE - 1, low, high));
#pragma unroll
      for (int n = 0; n < TILE / 8; ++n)
#pragma unroll
        for (int of = 0; of < 2; ++of) {
          const int t = n * 8 + lane % 4 * 2 + of, i = i0 + t;
          const Pack<float, 2> stat = stats[t];
          const float known = stat.at[0] == -float(Infinity) ? float(Infinity) : stat.at[0] * float(LOG2E), mean = stat.at[1];
#pragma unroll
          for (int each = 0; each < 2 * GROUPS; ++each) {
            const int g = each / 2, c = each % 2 * 2 + of;
            const int j = low + g * 16 + lane / 4 + c / 2 * 8;$ELEMENT
            s[g][n][c] = p;
            dp[g][n][c] = d;
          }
        }
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
      const int j = low + g * 16 + lane / 4 + 8 * r;
      if (j >= KEYS) continue;
      if (dk != nullptr) {
#pragma unroll
        for (int n = 0; n < DEPTH / 8; ++n)
          store_both<K_PAIRS>(dk + K_AT(b, j, kv), n * 8 + lane % 4 * 2, WIDTH,
                              d_key[g][n][2 * r] * float(SCALE), d_key[g][n][2 * r + 1] * float(SCALE));
      }
      if (dv != nullptr) {
#pragma unroll
        for (int n = 0; n < VALUE_DEPTH / 8; ++n)
          store_both<V_PAIRS>(dv + V_AT(b, j, kv), n * 8 + lane % 4 * 2, VALUE_WIDTH,
                              d_value[g][n][2 * r], d_value[g][n][2 * r + 1]);
      }
    })";

std::string with_element(std::string_view code) {
  constexpr std::string_view Name = "$ELEMENT";
  std::string out(code);
  return out.replace(out.find(Name), Name.size(), Element);
}

}  // namespace

void plan_backward_tiles(PlanBuilder& builder, const loop::Attention& a,
                         const AttentionArrays& arrays, Place rows) {
  const CallStep& step = builder.step();
  const DType dtype = builder.dtype(0);
  const bool tensors = multiplies_with_tensors(dtype, a.pass);
  const std::int64_t depth = tile_depth(a.width);
  const std::int64_t both = depth + tile_depth(a.value_width);
  plan_tile_pass(builder, a, arrays, {.lse = rows, .given = arrays.dy});
  std::vector<Parameter> in = tile_inputs(builder, a, arrays);
  in.push_back({arrays.dy, builder.dtype(3), "dy"});
  in.push_back({rows, DType::F32, "rows"});
  if (is_wanted(step, 0)) {
    const AttentionNeeds needs{.sums = depth, .scores = 2, .own = both, .other = both, .tile = 32};
    const std::int64_t heads = a.batch * a.heads;
    const AttentionBlock block = attention_block(dtype, tensors, heads, a.queries, needs);
    std::vector<Parameter> first = in;
    first.push_back({result(0), dtype, "dq", true});
    builder.launch(tile_blocks(heads, a.queries, block), AttentionBlock::threads, first,
                   fmt::format("{}  {}", own_queries(), with_element(RowsTiles)),
                   tile_names(builder, a, arrays, block), shared_bytes(block, needs));
  }
  if (!is_wanted(step, 1) && !is_wanted(step, 2)) return;
  const AttentionNeeds needs{.sums = both, .scores = 2, .own = both, .other = both, .tile = 32};
  const std::int64_t heads = a.batch * a.kv_heads;
  const AttentionBlock block = attention_block(dtype, tensors, heads, a.keys, needs);
  in.push_back({result(1), dtype, "dk", true});
  in.push_back({result(2), dtype, "dv", true});
  builder.launch(tile_blocks(heads, a.keys, block), AttentionBlock::threads, in,
                 with_element(ColumnsTiles), tile_names(builder, a, arrays, block),
                 shared_bytes(block, needs));
}

}  // namespace ricci::cuda
