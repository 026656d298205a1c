// Attention without the matrix of scores: some lanes share a query (or, for the gradients of keys
// and values, a key) and go through the others in tiles that a block reads together. Every sum has
// one owner, so the bits are always the same.
#include <algorithm>

#include <fmt/format.h>

#include "backend/cuda/codegen/expression.h"
#include "backend/cuda/structured/attention_text.h"
#include "backend/cuda/structured/roles.h"

namespace ricci::cuda {
namespace {

constexpr std::int64_t WidestHead = 128;
constexpr std::int64_t RowThreads = 128;
constexpr std::int64_t Tile = 16;

struct Sizes {
  DType dtype = DType::F32;  // of q, k, v
  DType sum = DType::F32;
  std::int64_t lanes = 1;  // that share a row
  std::int64_t part = 1;   // numbers of a head each of them has

  explicit Sizes(const loop::Attention& a, DType q)
      : dtype(q), sum(q == DType::F64 ? DType::F64 : DType::F32) {
    const std::int64_t most = q == DType::F64 ? 16 : 32;
    const std::int64_t width = std::max(a.width, a.value_width);
    while (lanes * most < width) lanes *= 2;
    part = (width + lanes - 1) / lanes;
  }
};

// What all kernels begin with.
std::string common(const loop::Attention& a, const AttentionArrays& arrays, const Sizes& s,
                   DType mask) {
  std::string out = attention_names(a, arrays, {s.dtype, s.sum, mask, RowThreads / s.lanes, Tile});
  out += fmt::format("#define LANES {}\n#define PART {}\n", s.lanes, s.part);
  return out + R"(// Of the lanes of a row.
__device__ inline H together(H x) {
#pragma unroll
  for (int step = LANES / 2; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}
__device__ inline H dot(const H* own, const H* row) {
  H sum = 0;
#pragma unroll
  for (int d = 0; d < PART; ++d) sum = fma(own[d], row[d], sum);
  return together(sum);
}
// Rows [first, first + TILE) of an array of heads of a width, zero where there are none.
template <class At>
__device__ inline void read_tile(H (*tile)[LANES * PART], const T* from, i64 first, i64 rows, int width, At at) {
  for (int e = threadIdx.x; e < TILE * LANES * PART; e += blockDim.x) {
    const int r = e / (LANES * PART), d = e % (LANES * PART);
    tile[r][d] = first + r < rows && d < width ? read(from + at(first + r) + d) : H(0);
  }
}
)";
}

// A block has rows of one head.
constexpr std::string_view OwnQuery = R"(const int lane = threadIdx.x % LANES;
  const i64 per_block = blockDim.x / LANES;
  const i64 blocks = (QUERIES + per_block - 1) / per_block;
  const i64 h = blockIdx.x / blocks % HEADS, b = blockIdx.x / blocks / HEADS;
  const i64 kv = h / (HEADS / KV_HEADS);
  const i64 first = blockIdx.x % blocks * per_block;
  const i64 i = first + threadIdx.x / LANES;
  const bool real = i < QUERIES;
  __shared__ H keys[TILE][LANES * PART];
  __shared__ H values[TILE][LANES * PART];
  const auto key_at = [&](i64 j) { return K_AT(b, j, kv); };
  const auto value_at = [&](i64 j) { return V_AT(b, j, kv); };
  H query[PART];
#pragma unroll
  for (int d = 0; d < PART; ++d) {
    const int at = lane * PART + d;
    query[d] = real && at < WIDTH ? read(q + Q_AT(b, i, h) + at) : H(0);
  }
)";

constexpr std::string_view ForwardCode = R"(H sums[PART];
#pragma unroll
  for (int d = 0; d < PART; ++d) sums[d] = 0;
  H largest = H(-Infinity), total = 0;
  for (i64 j0 = KEYS_BEGIN; j0 < KEYS_END; j0 += TILE) {
    __syncthreads();
    read_tile(keys, k, j0, KEYS, WIDTH, key_at);
    read_tile(values, v, j0, KEYS, VALUE_WIDTH, value_at);
    __syncthreads();
    H scores[TILE];
    H most = largest;
#pragma unroll
    for (int t = 0; t < TILE; ++t) {
      const i64 j = j0 + t;
      H slope;
      H z = bent(dot(query, keys[t] + lane * PART), slope);
      if (real && j < KEYS && ALLOWED) {
        BIAS;
      } else {
        z = H(-Infinity);
      }
      scores[t] = z;
      most = most != most ? most : z != z || z > most ? z : most;
    }
    if (most == H(-Infinity)) continue;
    const H shrink = exp(largest - most);
    largest = most;
    total *= shrink;
#pragma unroll
    for (int d = 0; d < PART; ++d) sums[d] *= shrink;
#pragma unroll
    for (int t = 0; t < TILE; ++t) {
      if (scores[t] == H(-Infinity)) continue;
      const H p = exp(scores[t] - largest);
      if (p == 0) continue;
      total += p;
#pragma unroll
      for (int d = 0; d < PART; ++d) sums[d] = fma(p, values[t][lane * PART + d], sums[d]);
    }
  }
  if (!real) return;
  const bool none = largest == H(-Infinity);
  if (out != nullptr) {
#pragma unroll
    for (int d = 0; d < PART; ++d) {
      const int at = lane * PART + d;
      const H y = none ? H(0) : sums[d] / total;
      if (at < VALUE_WIDTH) out[OUT_AT(b, i, h) + at] = STORED_Y;
    }
  }
  if (lse != nullptr && lane == 0) {
    const H y = none ? H(-Infinity) : largest + log(total);
    lse[(b * HEADS + h) * QUERIES + i] = STORED_LSE;
  })";

// Pass 0 finds lse where it is not known, pass 1 Σ P dP where that is not, pass 2 the gradient of
// the query.
constexpr std::string_view RowsCode = R"(H given[PART], sums[PART];
#pragma unroll
  for (int d = 0; d < PART; ++d) {
    const int at = lane * PART + d;
    given[d] = real && at < VALUE_WIDTH ? read(dy + DY_AT(b, i, h) + at) : H(0);
    sums[d] = 0;
  }
  const i64 number = (b * HEADS + h) * QUERIES + i;
  H largest = H(-Infinity), total = 0, known = 0, mean = 0;
  if (KNOWN && real) known = KNOWN_LSE;
  if (KNOWN > 1 && real) mean = KNOWN_MEAN;
  for (int pass = KNOWN; pass < 3; ++pass) {
    for (i64 j0 = KEYS_BEGIN; j0 < KEYS_END; j0 += TILE) {
      __syncthreads();
      read_tile(keys, k, j0, KEYS, WIDTH, key_at);
      read_tile(values, v, j0, KEYS, VALUE_WIDTH, value_at);
      __syncthreads();
      for (int t = 0; t < TILE; ++t) {
        const i64 j = j0 + t;
        H slope;
        H z = bent(dot(query, keys[t] + lane * PART), slope);
        const H dp = dot(given, values[t] + lane * PART);
        if (!real || j >= KEYS || !(ALLOWED)) continue;
        BIAS;
        if (pass == 0) {
          if (z == H(-Infinity)) continue;
          const H most = largest != largest ? largest : z != z || z > largest ? z : largest;
          total = (largest == H(-Infinity) ? H(0) : total * exp(largest - most)) + exp(z - most);
          largest = most;
          continue;
        }
        if (known == H(-Infinity) || z == H(-Infinity)) continue;
        const H p = exp(z - known);
        if (p == 0) continue;
        if (pass == 1) {
          mean = fma(p, dp, mean);
          continue;
        }
        const H dr = p * (dp - mean) * slope * H(SCALE);
#pragma unroll
        for (int d = 0; d < PART; ++d) sums[d] = fma(dr, keys[t][lane * PART + d], sums[d]);
      }
    }
    if (pass == 0) known = largest == H(-Infinity) ? largest : largest + log(total);
  }
  if (!real) return;
  if (lane == 0) {
    rows[2 * number] = known;
    rows[2 * number + 1] = mean;
  }
  if (dq == nullptr) return;
#pragma unroll
  for (int d = 0; d < PART; ++d) {
    const int at = lane * PART + d;
    const H y = sums[d];
    if (at < WIDTH) dq[DQ_AT(b, i, h) + at] = STORED_Y;
  })";

constexpr std::string_view ColumnsCode = R"(const int lane = threadIdx.x % LANES;
  const i64 per_block = blockDim.x / LANES;
  const i64 blocks = (KEYS + per_block - 1) / per_block;
  const i64 kv = blockIdx.x / blocks % KV_HEADS, b = blockIdx.x / blocks / KV_HEADS;
  const i64 first = blockIdx.x % blocks * per_block;
  const i64 j = first + threadIdx.x / LANES;
  const bool real = j < KEYS;
  __shared__ H queries[TILE][LANES * PART];
  __shared__ H given[TILE][LANES * PART];
  H key[PART], value[PART], d_key[PART], d_value[PART];
#pragma unroll
  for (int d = 0; d < PART; ++d) {
    const int at = lane * PART + d;
    key[d] = real && at < WIDTH ? read(k + K_AT(b, j, kv) + at) : H(0);
    value[d] = real && at < VALUE_WIDTH ? read(v + V_AT(b, j, kv) + at) : H(0);
    d_key[d] = 0;
    d_value[d] = 0;
  }
  for (i64 h = kv * (HEADS / KV_HEADS); h < (kv + 1) * (HEADS / KV_HEADS); ++h) {
    const auto query_at = [&](i64 i) { return Q_AT(b, i, h); };
    const auto given_at = [&](i64 i) { return DY_AT(b, i, h); };
    for (i64 i0 = QUERIES_BEGIN; i0 < QUERIES_END; i0 += TILE) {
      __syncthreads();
      read_tile(queries, q, i0, QUERIES, WIDTH, query_at);
      read_tile(given, dy, i0, QUERIES, VALUE_WIDTH, given_at);
      __syncthreads();
      for (int t = 0; t < TILE; ++t) {
        const i64 i = i0 + t;
        H slope;
        H z = bent(dot(key, queries[t] + lane * PART), slope);
        const H dp = dot(value, given[t] + lane * PART);
        if (!real || i >= QUERIES || !(ALLOWED)) continue;
        BIAS;
        const i64 number = (b * HEADS + h) * QUERIES + i;
        const H known = rows[2 * number];
        if (known == H(-Infinity) || z == H(-Infinity)) continue;
        const H p = exp(z - known);
        if (p == 0) continue;
        const H dr = p * (dp - rows[2 * number + 1]) * slope * H(SCALE);
#pragma unroll
        for (int d = 0; d < PART; ++d) {
          d_value[d] = fma(p, given[t][lane * PART + d], d_value[d]);
          d_key[d] = fma(dr, queries[t][lane * PART + d], d_key[d]);
        }
      }
    }
  }
  if (!real) return;
#pragma unroll
  for (int d = 0; d < PART; ++d) {
    const int at = lane * PART + d;
    if (dk != nullptr && at < WIDTH) {
      const H y = d_key[d];
      dk[DK_AT(b, j, kv) + at] = STORED_Y;
    }
    if (dv != nullptr && at < VALUE_WIDTH) {
      const H y = d_value[d];
      dv[DV_AT(b, j, kv) + at] = STORED_Y;
    }
  })";

// An element of the bias for each thread, which goes through all that it was repeated to.
constexpr std::string_view BiasCode = R"(const i64 at_j = e % D3, at_i = e / D3 % D2;
    const i64 at_h = e / D3 / D2 % D1, at_b = e / D3 / D2 / D1;
    H sum = 0;
    for (i64 b = at_b; b < (D0 == 1 ? BATCH : at_b + 1); ++b)
      for (i64 h = at_h; h < (D1 == 1 ? HEADS : at_h + 1); ++h)
        for (i64 i = at_i; i < (D2 == 1 ? QUERIES : at_i + 1); ++i)
          for (i64 j = at_j; j < (D3 == 1 ? KEYS : at_j + 1); ++j) {
            const i64 number = (b * HEADS + h) * QUERIES + i, kv = h / (HEADS / KV_HEADS);
            const H known = rows[2 * number];
            if (known == H(-Infinity)) continue;
            H r = 0, dp = 0, slope;
            for (int d = 0; d < WIDTH; ++d)
              r = fma(read(q + Q_AT(b, i, h) + d), read(k + K_AT(b, j, kv) + d), r);
            for (int d = 0; d < VALUE_WIDTH; ++d)
              dp = fma(read(dy + DY_AT(b, i, h) + d), read(v + V_AT(b, j, kv) + d), dp);
            H z = bent(r, slope);
            BIAS;
            const H p = z == H(-Infinity) ? H(0) : exp(z - known);
            if (p != 0) sum += p * (dp - rows[2 * number + 1]);
          }
    dbias[e] = STORED_BIAS;)";

std::int64_t blocks_for(std::int64_t heads, std::int64_t rows, const Sizes& s) {
  const std::int64_t per_block = RowThreads / s.lanes;
  return heads * ((rows + per_block - 1) / per_block);
}

// What kernels of all passes are given.
struct Inputs {
  AttentionArrays arrays;
  std::vector<Parameter> parameters;
  std::string names;
};

Inputs inputs_of(PlanBuilder& builder, const loop::Attention& a, const Sizes& s) {
  const auto mask_at = static_cast<std::size_t>(std::max<std::int64_t>(a.mask_operand, 0));
  const DType mask = builder.dtype(mask_at);
  Inputs in{.arrays = attention_arrays(builder, a), .parameters = {}, .names = {}};
  const AttentionArrays& x = in.arrays;
  in.parameters = {
      {x.q, s.dtype, "q"}, {x.k, s.dtype, "k"}, {x.v, s.dtype, "v"}, {x.mask, mask, "mask"}};
  if (a.pass == loop::Pass::Backward) {
    in.parameters.push_back({x.dy, builder.dtype(3), "dy"});
  }
  in.names = common(a, x, s, mask) + stored_as("STORED_Y", s.dtype);
  return in;
}

void plan_forward(PlanBuilder& builder, const loop::Attention& a, const Sizes& s, Inputs in) {
  const CallStep& step = builder.step();
  const DType lse = step.results.size() > 1 ? step.results[1].type.dtype : s.sum;
  in.parameters.push_back({result(0), s.dtype, "out", true});
  in.parameters.push_back({result(step.results.size() > 1 ? 1 : 0), lse, "lse", true});
  builder.launch(blocks_for(a.batch * a.heads, a.queries, s), RowThreads, in.parameters,
                 std::string(OwnQuery) + "  " + std::string(ForwardCode),
                 in.names + stored_as("STORED_LSE", lse));
}

void plan_backward(PlanBuilder& builder, const loop::Attention& a, const Sizes& s, const Inputs& in,
                   Place rows) {
  const CallStep& step = builder.step();
  const int known = a.mean_operand >= 0 ? 2 : a.lse_operand >= 0 ? 1 : 0;
  const auto dtype_of = [&](std::int64_t operand) {
    return builder.dtype(static_cast<std::size_t>(std::max<std::int64_t>(operand, 0)));
  };
  const DType lse = dtype_of(a.lse_operand);
  const DType mean = dtype_of(a.mean_operand);
  std::vector<Parameter> first = in.parameters;
  first.push_back({in.arrays.lse, lse, "lse"});
  first.push_back({in.arrays.mean, mean, "means"});
  first.push_back({rows, s.sum, "rows", true});
  first.push_back({result(0), s.dtype, "dq", true});
  builder.launch(blocks_for(a.batch * a.heads, a.queries, s), RowThreads, first,
                 std::string(OwnQuery) + "  " + std::string(RowsCode),
                 in.names + fmt::format("#define KNOWN {}\n#define KNOWN_LSE H({})\n"
                                        "#define KNOWN_MEAN H({})\n",
                                        known, known > 0 ? from_stored(lse, "lse[number]") : "0",
                                        known > 1 ? from_stored(mean, "means[number]") : "0"));
  if (!is_wanted(step, 1) && !is_wanted(step, 2)) return;
  std::vector<Parameter> second = in.parameters;
  second.push_back({rows, s.sum, "rows"});
  second.push_back({result(1), s.dtype, "dk", true});
  second.push_back({result(2), s.dtype, "dv", true});
  builder.launch(blocks_for(a.batch * a.kv_heads, a.keys, s), RowThreads, second, ColumnsCode,
                 in.names);
}

void plan_bias_gradient(PlanBuilder& builder, const Sizes& s, Inputs in, Place rows) {
  const BufferView& bias = builder.step().results[3];
  const StaticDims d = bias.type.static_dims();
  in.parameters.push_back({rows, s.sum, "rows"});
  in.parameters.push_back({result(3), bias.type.dtype, "dbias", true});
  builder.for_each(
      *bias.type.numel(), in.parameters,
      "const i64 e = i;\n    {\n    " + std::string(BiasCode) + "\n    }",
      in.names + fmt::format("#define D0 {}LL\n#define D1 {}LL\n#define D2 {}LL\n"
                             "#define D3 {}LL\n#define STORED_BIAS ({})\n",
                             d[0], d[1], d[2], d[3], to_stored(bias.type.dtype, "sum")));
}

}  // namespace

bool serves_attention(const loop::Attention& a, std::span<const Type> operands) {
  const bool same =
      operands[1].dtype == operands[0].dtype && operands[2].dtype == operands[0].dtype;
  const std::int64_t widest = std::max(a.width, a.value_width);
  return widest >= 1 && widest <= WidestHead && is_float(operands[0].dtype) && same;
}

void plan_attention(PlanBuilder& builder, const loop::Attention& a) {
  const Sizes s(a, builder.dtype(0));
  const bool tiles = has_tiles(a, s.dtype);
  Inputs in = inputs_of(builder, a, s);
  if (a.pass == loop::Pass::Forward) {
    if (tiles) return plan_forward_tiles(builder, a, in.arrays);
    return plan_forward(builder, a, s, std::move(in));
  }
  const Place rows = builder.reserve(2 * a.batch * a.heads * a.queries * size_of(s.sum));
  if (tiles) {
    plan_backward_tiles(builder, a, in.arrays, rows);
  } else {
    plan_backward(builder, a, s, in, rows);
  }
  if (is_wanted(builder.step(), 3)) plan_bias_gradient(builder, s, std::move(in), rows);
}

}  // namespace ricci::cuda
