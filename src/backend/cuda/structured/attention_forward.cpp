// The forward pass of attention: the keys come in tiles, whose values are on their way while scores
// are computed, and the next keys while values are added.
#include <fmt/format.h>

#include "backend/cuda/codegen/expression.h"
#include "backend/cuda/structured/attention_tiles.h"

namespace ricci::cuda {
namespace {

// The longest rows first where the order of queries makes them differ.
constexpr std::string_view OwnQueries =
    R"(const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int blocks = (QUERIES + ROWS - 1) / ROWS, all_heads = int(BATCH * HEADS);
  const int part = ORDERED ? blocks - 1 - int(blockIdx.x) / all_heads : int(blockIdx.x) % blocks;
  const int head = ORDERED ? int(blockIdx.x) % all_heads : int(blockIdx.x) / blocks;
  const i64 h = head % int(HEADS), b = head / int(HEADS), kv = h / (HEADS / KV_HEADS);
  const int first = part * ROWS, low = first + warp * 16 * GROUPS, high = low + 16 * GROUPS - 1;
  const int begin = int(KEYS_BEGIN), end = int(KEYS_END);
  extern __shared__ __align__(16) unsigned char shared_memory[];
  S* const queries = (S*)shared_memory;
  const S* const own = queries + warp * 16 * GROUPS * (DEPTH + PAD);
  const auto query_at = [&](i64 i) { return Q_AT(b, i, h); };
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

constexpr std::string_view Mask = R"(
#pragma unroll
        for (int g = 0; g < GROUPS; ++g)
#pragma unroll
          for (int n = 0; n < TILE / 8; ++n)
#pragma unroll
            for (int c = 0; c < 4; ++c) {
              const int i = low + g * 16 + lane / 4 + c / 2 * 8, j = j0 + n * 8 + lane % 4 * 2 + c % 2;
              float z = s[g][n][c];
#if !PLAIN
              float slope;
              z = bent_score(z, slope);
#endif
              if (i < QUERIES && j < KEYS && ALLOWED) {
                BIAS;
              } else {
                z = -float(Infinity);
              }
#if !PLAIN
              z *= float(LOG2E);
#endif
              s[g][n][c] = z;
            })";

// $WEIGH and $MASK stand for the texts above.
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
    begin_rows<ROWS, DEPTH, Q_WHOLE>(queries, q, first, QUERIES, WIDTH, query_at);
    if (begin < end) begin_rows<TILE, DEPTH, K_WHOLE>(keys, k, begin, KEYS, WIDTH, key_at);
    for (int j0 = begin; j0 < end; j0 += TILE) {
      arrived();
      __syncthreads();
      begin_rows<TILE, VALUE_DEPTH, V_WHOLE>(values, v, j0, KEYS, VALUE_WIDTH, value_at);
      const bool some = !(NONE_ALLOWED(low, high, j0, j0 + TILE - 1));
      Scores s;
      if (some) multiply_rows<DEPTH>(s, own, keys);
      arrived();
      __syncthreads();
      if (j0 + TILE < end) begin_rows<TILE, DEPTH, K_WHOLE>(keys, k, j0 + TILE, KEYS, WIDTH, key_at);
      if (!some) continue;
      if (!PLAIN || j0 + TILE > KEYS || !(ALL_ALLOWED(low, high, j0, j0 + TILE - 1))) {$MASK
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
      const bool none = largest[g][r] == -float(Infinity);
      const float part_of = none ? 0.0f : 1 / all;
      const float known = largest[g][r] * float(STEEP / LOG2E) + log(all);
      const int i = low + g * 16 + lane / 4 + 8 * r;
      const i64 number = (b * HEADS + h) * QUERIES + i;
      const bool real = i < QUERIES;
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

// Σ P dP of a query is what it gives times the gradient of that.
constexpr std::string_view Beginnings = R"(      float mean = 0;
#pragma unroll
      for (int e = 0; e < VALUE_DEPTH / 4; ++e) {
        const int at = e / 2 * 8 + lane % 4 * 2 + e % 2;
        if (real && !none && at < VALUE_WIDTH)
          mean = fmaf(sums[g][e / 2][2 * r + e % 2] * part_of, read(dy + OUT_AT(b, i, h) + at), mean);
      }
      mean = row_sum(mean);
      if (real && lane % 4 == 0) {
        lse[2 * number] = none ? -float(Infinity) : known;
        lse[2 * number + 1] = mean;
      })";

std::string with(std::string text, std::string_view name, std::string_view words) {
  return text.replace(text.find(name), name.size(), words);
}

}  // namespace

std::string_view own_queries() { return OwnQueries; }

void plan_tile_pass(PlanBuilder& builder, const loop::Attention& a, const AttentionArrays& arrays,
                    const ForwardResults& to) {
  const std::int64_t heads = a.batch * a.heads;
  const DType dtype = builder.dtype(0);
  const std::int64_t depth = tile_depth(a.width);
  const std::int64_t value_depth = tile_depth(a.value_width);
  const AttentionNeeds needs{
      .sums = value_depth, .own = depth, .other = depth + value_depth, .overlaps = false};
  const AttentionBlock block =
      attention_block(dtype, multiplies_with_tensors(dtype, a.pass), heads, a.queries, needs);
  std::vector<Parameter> in = tile_inputs(builder, a, arrays);
  if (to.gradient) {
    in.push_back({arrays.dy, builder.dtype(3), "dy"});
  } else {
    in.push_back({to.out, dtype, "out", true});
  }
  in.push_back({to.lse, to.lse_dtype, "lse", true});
  std::string code(OwnQueries);
  // Without a second result its pointer is that of the first.
  if (!to.has_lse) code += "  lse = nullptr;\n";
  code += "  ";
  code += with(with(with(std::string(ForwardTiles), "$MASK", Mask), "$WEIGH", Weigh), "$RESULT",
               to.gradient ? Beginnings : Results);
  builder.launch(tile_blocks(heads, a.queries, block), AttentionBlock::threads, in, code,
                 tile_names(builder, a, arrays, block) + stored_as("STORED_LSE", to.lse_dtype),
                 shared_bytes(block, needs));
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
