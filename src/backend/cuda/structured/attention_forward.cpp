// The forward pass of attention: the keys come in tiles, whose values are on their way while scores
// are computed, and the next keys while values are added.
#include <algorithm>

#include <fmt/format.h>

#include "backend/cuda/codegen/expression.h"
#include "backend/cuda/structured/attention_tiles.h"

namespace ricci::cuda {
namespace {

// Rows are queries of one head; or, where there are few of them, of all heads that share keys, so
// that those are read once. The longest rows come first where the order of queries makes them
// differ. Of few rows several blocks have a part of the keys each.
constexpr std::string_view OwnQueries =
    R"(const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int block = int(blockIdx.x) / SPLITS, split = int(blockIdx.x) % SPLITS;
#if TOGETHER
  const i64 kv = block % int(KV_HEADS), b = block / int(KV_HEADS);
  const int first = 0, row_count = int(HEADS / KV_HEADS) * QUERIES;
  const auto head_of = [&](int row) { return kv * (HEADS / KV_HEADS) + row / QUERIES; };
  const auto query_of = [&](int row) { return row % QUERIES; };
#else
  const int blocks = (QUERIES + ROWS - 1) / ROWS, all_heads = int(BATCH * HEADS);
  const int part = ORDERED ? blocks - 1 - block / all_heads : block % blocks;
  const int head = ORDERED ? block % all_heads : block / blocks;
  const i64 own_head = head % int(HEADS), b = head / int(HEADS), kv = own_head / (HEADS / KV_HEADS);
  const int first = part * ROWS, row_count = QUERIES;
  const auto head_of = [&](int) { return own_head; };
  const auto query_of = [&](int row) { return row; };
#endif
  const int low = first + OWN_ROW(warp);
  const int low_query = TOGETHER ? 0 : SEEN_LOW(low), high_query = TOGETHER ? QUERIES - 1 : SEEN_HIGH(low);
  const int all_begin = int(KEYS_BEGIN), all_end = int(KEYS_END);
  const int share = (all_end - all_begin + TILE * SPLITS - 1) / (TILE * SPLITS) * TILE;
  const int begin = all_begin + split * share, end = begin + share < all_end ? begin + share : all_end;
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  S* const queries = (S*)shared_memory;
  const S* const own = queries + OWN_ROWS(warp) * (DEPTH + PAD);
  const auto query_at = [&](i64 row) { return Q_AT(b, query_of(int(row)), head_of(int(row))); };
  const auto key_at = [&](i64 j) { return K_AT(b, j, kv); };
  const auto value_at = [&](i64 j) { return V_AT(b, j, kv); };
)";

// Scores become weights; the sums so far shrink where a larger score is found.
constexpr std::string_view Weigh = R"(
#pragma unroll
      for (int g = 0; g < GROUPS; ++g)
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          float most = largest[g][r];
#pragma unroll
          for (int n = 0; n < TILE / 8; ++n) most = fmaxf(most, fmaxf(s[g][n][2 * r], s[g][n][2 * r + 1]));
          most = row_most(most);
          const float from = most == -float(Infinity) ? 0.0f : most * STEEP;
          const float shrink = near_exp2(fmaf(largest[g][r], STEEP, -from));
          largest[g][r] = most;
          total[g][r] *= shrink;
#pragma unroll
          for (int n = 0; n < VALUE_DEPTH / 8; ++n) {
            sums[g][n][2 * r] *= shrink;
            sums[g][n][2 * r + 1] *= shrink;
          }
#pragma unroll
          for (int n = 0; n < TILE / 8; ++n)
#pragma unroll
            for (int c = 2 * r; c < 2 * r + 2; ++c) {
              const float p = near_exp2(fmaf(s[g][n][c], STEEP, -from));
              s[g][n][c] = p;
              total[g][r] += p;
            }
        })";

// Where an element is: a row of its own, or a column, is a query.
constexpr std::string_view QueryInRow =
    R"(const int row = low + g * GROUP_ROWS + lane / 4 + c / 2 * 8, j = j0 + n * 8 + lane % 4 * 2 + c % 2;
              const int i = query_of(row);
              const i64 h = head_of(row);
              const bool real = row < row_count && j < KEYS;)";

constexpr std::string_view QueryInColumn =
    R"(const int j = low + g * GROUP_ROWS + lane / 4 + c / 2 * 8, i = i0 + n * 8 + lane % 4 * 2 + c % 2;
              const bool real = j < KEYS && i < QUERIES;)";

constexpr std::string_view Mask = R"(
#pragma unroll
        for (int g = 0; g < GROUPS; ++g)
#pragma unroll
          for (int n = 0; n < TILE / 8; ++n)
#pragma unroll
            for (int c = 0; c < 4; ++c) {
              $PLACE
              float z = s[g][n][c];
#if !PLAIN
              float slope;
              z = bent_score(z, slope);
              KEEP_SLOPE(slope);
#endif
              if (real && ALLOWED) {
                BIAS;
              } else {
                z = -float(Infinity);
              }
#if !PLAIN
              z *= float(LOG2E);
#endif
              s[g][n][c] = z;
            })";

// $WEIGH and $MASK stand for texts above.
constexpr std::string_view ForwardTiles =
    R"(S *const keys = queries + ROWS * (DEPTH + PAD), *const values = keys + TILE * (DEPTH + PAD);
  S* const room = values + TILE * (VALUE_DEPTH + PAD);
  float sums[GROUPS][VALUE_DEPTH / 8][4], largest[GROUPS][2], total[GROUPS][2];
  for (bool with_care = false;; with_care = true) {
    clear<VALUE_DEPTH>(sums);
#pragma unroll
    for (int g = 0; g < GROUPS; ++g)
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        largest[g][r] = -float(Infinity);
        total[g][r] = 0;
      }
    __syncthreads();
    begin_rows<ROWS, DEPTH, Q_WHOLE, !TOGETHER>(queries, q, first, row_count, WIDTH, Q_STEP, query_at);
    if (begin < end) begin_rows<TILE, DEPTH, K_WHOLE, true>(keys, k, begin, KEYS, WIDTH, K_STEP, key_at);
    for (int j0 = begin; j0 < end; j0 += TILE) {
      arrived();
      __syncthreads();
      begin_rows<TILE, VALUE_DEPTH, V_WHOLE, true>(values, v, j0, KEYS, VALUE_WIDTH, V_STEP, value_at);
      const bool some = WARPGROUPS || (low < row_count && !(NONE_ALLOWED(low_query, high_query, j0, j0 + TILE - 1)));
      Scores s;
      if (some) multiply_rows<DEPTH>(s, own, keys);
      arrived();
      __syncthreads();
      if (j0 + TILE < end) begin_rows<TILE, DEPTH, K_WHOLE, true>(keys, k, j0 + TILE, KEYS, WIDTH, K_STEP, key_at);
      if (!some) continue;
      if (!PLAIN || j0 + TILE > KEYS || !(ALL_ALLOWED(low_query, high_query, j0, j0 + TILE - 1))) {$MASK
      }$WEIGH
      if (with_care) {
        add_rows_with_care<VALUE_DEPTH>(sums, s, values);
      } else {
        add_rows<VALUE_DEPTH>(sums, s, values, room);
      }
    }
    if (with_care || !__syncthreads_or(has_none<VALUE_DEPTH>(sums))) break;
  }
#pragma unroll
  for (int g = 0; g < GROUPS; ++g)
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float all = row_sum(total[g][r]);
      // The largest leaves out scores that are NaN; the sum does not, and has 1 for the largest.
      const bool none = all == 0;
      const float part_of = none ? 0.0f : 1 / all;
      const float known = largest[g][r] * float(STEEP / LOG2E) + log(all);
      const int row = low + g * GROUP_ROWS + lane / 4 + 8 * r, i = query_of(row);
      const i64 h = head_of(row), number = (b * HEADS + h) * QUERIES + i;
      const bool real = row < row_count;
$RESULT
    })";

constexpr std::string_view Results = R"(      if (!real) continue;
      if (out != nullptr) {
#pragma unroll
        for (int n = 0; n < VALUE_DEPTH / 8; ++n)
          store_both<OUT_PAIRS>(out + OUT_AT(b, i, h), n * 8 + lane % 4 * 2, VALUE_WIDTH,
                                none ? 0.0f : sums[g][n][2 * r] * part_of,
                                none ? 0.0f : sums[g][n][2 * r + 1] * part_of);
      }
      if (lse != nullptr && lane % 4 == 0) {
        const float y = none ? -float(Infinity) : known;
        lse[number] = STORED_LSE;
      })";

// What a part of the keys gives: sums of values, of weights, and the power of 2 they are to be
// weighed by.
constexpr std::string_view Parts = R"(      if (!real) continue;
      float* const to = parts + (number * SPLITS + split) * (VALUE_WIDTH + 2);
#pragma unroll
      for (int e = 0; e < VALUE_DEPTH / 4; ++e) {
        const int at = e / 2 * 8 + lane % 4 * 2 + e % 2;
        if (at < VALUE_WIDTH) to[at] = sums[g][e / 2][2 * r + e % 2];
      }
      if (lane % 4 == 0) {
        to[VALUE_WIDTH] = all;
        to[VALUE_WIDTH + 1] = none ? -float(Infinity) : all != all ? all : largest[g][r] * STEEP;
      })";

// A number of a result for each thread.
constexpr std::string_view TogetherCode = R"(const i64 number = i / VALUE_WIDTH;
    const int at = int(i % VALUE_WIDTH);
    const i64 query = number % QUERIES, h = number / QUERIES % HEADS, b = number / QUERIES / HEADS;
    const float* const from = parts + number * SPLITS * (VALUE_WIDTH + 2);
    float most = -float(Infinity), all = 0, sum = 0;
    bool odd = false;
    for (int n = 0; n < SPLITS; ++n) {
      const float power = from[n * (VALUE_WIDTH + 2) + VALUE_WIDTH + 1];
      odd = odd || power != power;
      most = fmaxf(most, power);
    }
    const bool none = most == -float(Infinity) && !odd;
    for (int n = 0; n < SPLITS; ++n) {
      const float* const part = from + n * (VALUE_WIDTH + 2);
      const float weight = none ? 0.0f : near_exp2(part[VALUE_WIDTH + 1] - most);
      if (weight == 0) continue;
      all = fmaf(weight, part[VALUE_WIDTH], all);
      sum = fmaf(weight, part[at], sum);
    }
    if (out != nullptr) out[OUT_AT(b, query, h) + at] = as_stored(none ? 0.0f : sum / all);
    if (lse != nullptr && at == 0) {
      const float y = none ? -float(Infinity) : most / float(LOG2E) + log(all);
      lse[number] = STORED_LSE;
    })";

// Σ P dP of a query is what it gives times the gradient of that.
constexpr std::string_view Beginnings = R"(      float mean = 0;
#pragma unroll
      for (int e = 0; e < VALUE_DEPTH / 4; ++e) {
        const int at = e / 2 * 8 + lane % 4 * 2 + e % 2;
        if (real && !none && at < VALUE_WIDTH)
          mean = fmaf(sums[g][e / 2][2 * r + e % 2] * part_of, read(dy + DY_AT(b, i, h) + at), mean);
      }
      mean = row_sum(mean);
      if (real && lane % 4 == 0) {
        lse[2 * number] = none ? -float(Infinity) : known;
        lse[2 * number + 1] = mean;
      })";

}  // namespace

std::string_view own_queries() { return OwnQueries; }

std::string with(std::string text, std::string_view name, std::string_view words) {
  return text.replace(text.find(name), name.size(), words);
}

std::string masked_scores(bool queries_in_rows) {
  return with(std::string(Mask), "$PLACE", queries_in_rows ? QueryInRow : QueryInColumn);
}

namespace {

std::int64_t forward_blocks(const loop::Attention& a, const AttentionBlock& block) {
  if (block.together) return a.batch * a.kv_heads;
  return tile_blocks(a.batch * a.heads, a.queries, block);
}

// Few queries are rows of one block, and few blocks leave parts of the keys to others.
AttentionBlock forward_block(const PlanBuilder& builder, const loop::Attention& a,
                             const AttentionNeeds& needs, bool gradient) {
  const bool tensors = multiplies_with_tensors(builder.dtype(0), a.pass);
  AttentionBlock block = attention_block(builder, tensors, a.batch * a.heads, a.queries, needs);
  block.together = a.heads / a.kv_heads * a.queries <= block.rows();
  if (gradient) return block;
  constexpr std::int64_t FewTiles = 4;      // fewer are not worth a block
  constexpr std::int64_t MostBlocks = 528;  // four for each of a large GPU's multiprocessors
  const std::int64_t tiles = (a.keys + block.tile - 1) / block.tile;
  const std::int64_t blocks = forward_blocks(a, block);
  if (blocks > 0 && blocks < MostBlocks / 4) {
    block.splits = std::clamp<std::int64_t>(tiles / FewTiles, 1, MostBlocks / blocks);
  }
  return block;
}

// What is stored where, and the text that does so.
struct Ending {
  std::string_view text;
  std::vector<Parameter> to;
};

Ending ending(const PlanBuilder& builder, const ForwardResults& to, bool in_parts, Place parts) {
  if (in_parts) return {Parts, {{parts, DType::F32, "parts", true}}};
  const Parameter lse{to.lse, to.lse_dtype, "lse", true};
  if (to.given) return {Beginnings, {{*to.given, builder.dtype(3), "dy"}, lse}};
  return {Results, {{to.out, builder.dtype(0), "out", true}, lse}};
}

}  // namespace

void plan_tile_pass(PlanBuilder& builder, const loop::Attention& a, const AttentionArrays& arrays,
                    const ForwardResults& to) {
  const std::int64_t depth = tile_depth(a.width);
  const std::int64_t value_depth = tile_depth(a.value_width);
  const AttentionNeeds needs{
      .sums = value_depth, .own = depth, .other = depth + value_depth, .overlaps = false};
  const AttentionBlock block = forward_block(builder, a, needs, to.given.has_value());
  const bool in_parts = block.splits > 1;
  const std::int64_t numbers = a.batch * a.heads * a.queries;
  const std::int64_t part_bytes = block.splits * (a.value_width + 2) * std::int64_t{sizeof(float)};
  const Place parts = in_parts ? builder.reserve(numbers * part_bytes) : Place{};
  const Ending end = ending(builder, to, in_parts, parts);
  const std::string names =
      tile_names(builder, a, arrays, block) + stored_as("STORED_LSE", to.lse_dtype);
  // Without a second result its pointer is that of the first.
  const std::string no_lse = to.has_lse ? "" : "lse = nullptr;\n  ";
  std::vector<Parameter> in = tile_inputs(builder, a, arrays);
  in.insert(in.end(), end.to.begin(), end.to.end());
  builder.launch(
      forward_blocks(a, block) * block.splits, AttentionBlock::threads, in,
      fmt::format(
          "{}  {}{}", OwnQueries, in_parts ? "" : no_lse,
          with(with(with(std::string(ForwardTiles), "$MASK", masked_scores(true)), "$WEIGH", Weigh),
               "$RESULT", end.text)),
      names, room_of(block, needs));
  if (!in_parts) return;
  const std::vector<Parameter> all = {{parts, DType::F32, "parts"},
                                      {to.out, builder.dtype(0), "out", true},
                                      {to.lse, to.lse_dtype, "lse", true}};
  builder.for_each(numbers * a.value_width, all, no_lse + std::string(TogetherCode), names);
}

void plan_forward_tiles(PlanBuilder& builder, const loop::Attention& a,
                        const AttentionArrays& arrays) {
  const CallStep& step = builder.step();
  const bool has_lse = step.results.size() > 1;
  plan_tile_pass(builder, a, arrays,
                 {.out = result(0),
                  .lse = result(has_lse ? 1 : 0),
                  .has_lse = has_lse,
                  .lse_dtype = has_lse ? step.results[1].type.dtype : DType::F32});
}

}  // namespace ricci::cuda
