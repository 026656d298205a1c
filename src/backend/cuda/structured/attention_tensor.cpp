// Attention of small floats through tensor cores (mma.sync, sm_80 and newer): a warp has 16
// queries, or keys, a block four warps, and the others come in tiles that the block reads together.
// Products are of small floats, their sums in f32; weights are rounded before they meet the values.
// Every sum has one owner, so the bits are always the same.
#include <algorithm>

#include <fmt/format.h>

#include "backend/cuda/codegen/expression.h"
#include "backend/cuda/structured/attention_text.h"
#include "backend/cuda/structured/tensor_text.h"

namespace ricci::cuda {
namespace {

constexpr std::int64_t TensorRows = 64;  // of a block
constexpr std::int32_t TensorThreads = 128;
constexpr std::int64_t UnaskedShared = 48 * 1024;  // what a block has without asking

constexpr std::string_view TensorCode = R"(
__device__ inline unsigned both(float x, float y) {
  return unsigned(SMALLER(x).bits) | unsigned(SMALLER(y).bits) << 16;
}
__device__ inline float above(float a, float b) { return a != a ? a : b != b || b > a ? b : a; }
// Of the four lanes of a row.
__device__ inline float row_sum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}
__device__ inline float row_most(float x) {
  x = above(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return above(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
// Rows [first, first + COUNT) of an array of heads, zero where there are none. Is one of their
// numbers infinite, or none?
template <int COUNT, int WIDE, bool WHOLE, class At>
__device__ inline bool read_rows(T* to, const T* from, i64 first, i64 rows, int width, At at) {
  bool odd = false;
  const int many = WHOLE ? 8 : 1;
  for (int e = threadIdx.x; e < COUNT * (WIDE / many); e += 128) {
    const int r = e / (WIDE / many), d = e % (WIDE / many) * many;
    Pack<T, many> x;
#pragma unroll
    for (int j = 0; j < many; ++j) x.at[j].bits = 0;
    if (first + r < rows && d < width) x = *(const Pack<T, many>*)(from + at(first + r) + d);
#pragma unroll
    for (int j = 0; j < many; ++j) odd = odd || (x.at[j].bits & LARGEST) == LARGEST;
    *(Pack<T, many>*)(to + r * (WIDE + 8) + d) = x;
  }
  return odd;
}
// Products of the 16 rows of `own` with the rows of `tile`.
template <int WIDE>
__device__ inline void multiply_rows(float (*s)[4], const T* own, const T* tile) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int n = 0; n < TILE / 8; ++n)
#pragma unroll
    for (int c = 0; c < 4; ++c) s[n][c] = 0;
#pragma unroll
  for (int d = 0; d < WIDE; d += 16) {
    unsigned a[4];
    load_matrices(a, own + lane % 16 * (WIDE + 8) + d + lane / 16 * 8);
#pragma unroll
    for (int n = 0; n < TILE / 8; n += 2) {
      unsigned b[4];
      load_matrices(b, tile + (n * 8 + lane % 8 + lane / 16 * 8) * (WIDE + 8) + d + lane / 8 % 2 * 8);
      multiply_add(s[n], a, b[0], b[1]);
      multiply_add(s[n + 1], a, b[2], b[3]);
    }
  }
}
// Adds the rows of `tile`, weighted. A weight of zero takes nothing of its row, even where that has
// numbers that are infinite or none, `odd`: tensor cores would.
template <int WIDE>
__device__ inline void add_rows(float (*sums)[4], const float (*p)[4], const T* tile, bool odd) {
  const int lane = threadIdx.x % 32;
  if (odd) {
    float own[TILE / 8][4];
#pragma unroll
    for (int n = 0; n < TILE / 8; ++n)
#pragma unroll
      for (int c = 0; c < 4; ++c) own[n][c] = p[n][c];
    for (int j = 0; j < TILE; ++j) {
      const int from = lane / 4 * 4 + j % 8 / 2;
      const float x = __shfl_sync(0xffffffffu, own[j / 8][j % 2], from);
      const float y = __shfl_sync(0xffffffffu, own[j / 8][2 + j % 2], from);
#pragma unroll
      for (int n = 0; n < WIDE / 8; ++n)
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          const float value = to_float(tile[j * (WIDE + 8) + n * 8 + lane % 4 * 2 + c]);
          if (x != 0) sums[n][c] = fmaf(x, value, sums[n][c]);
          if (y != 0) sums[n][2 + c] = fmaf(y, value, sums[n][2 + c]);
        }
    }
    return;
  }
#pragma unroll
  for (int j = 0; j < TILE / 8; j += 2) {
    const unsigned a[4] = {both(p[j][0], p[j][1]), both(p[j][2], p[j][3]),
                           both(p[j + 1][0], p[j + 1][1]), both(p[j + 1][2], p[j + 1][3])};
#pragma unroll
    for (int n = 0; n < WIDE / 8; n += 2) {
      unsigned b[4];
      load_transposed(b, tile + (j * 8 + lane % 16) * (WIDE + 8) + n * 8 + lane / 16 * 8);
      multiply_add(sums[n], a, b[0], b[1]);
      multiply_add(sums[n + 1], a, b[2], b[3]);
    }
  }
}
template <int WIDE>
__device__ inline void clear(float (*sums)[4]) {
#pragma unroll
  for (int n = 0; n < WIDE / 8; ++n)
#pragma unroll
    for (int c = 0; c < 4; ++c) sums[n][c] = 0;
}
)";

constexpr std::string_view OwnQueries =
    R"(const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const i64 blocks = (QUERIES + ROWS - 1) / ROWS;
  const i64 h = blockIdx.x / blocks % HEADS, b = blockIdx.x / blocks / HEADS;
  const i64 kv = h / (HEADS / KV_HEADS);
  const i64 first = blockIdx.x % blocks * ROWS;
  const i64 row[2] = {first + warp * 16 + lane / 4, first + warp * 16 + lane / 4 + 8};
  __shared__ Pack<T, 8> query_room[ROWS * (DEPTH + 8) / 8];
  __shared__ Pack<T, 8> key_room[TILE * (DEPTH + 8) / 8];
  __shared__ Pack<T, 8> value_room[TILE * (VALUE_DEPTH + 8) / 8];
  T *const queries = query_room[0].at, *const keys = key_room[0].at, *const values = value_room[0].at;
  const auto query_at = [&](i64 i) { return Q_AT(b, i, h); };
  const auto key_at = [&](i64 j) { return K_AT(b, j, kv); };
  const auto value_at = [&](i64 j) { return V_AT(b, j, kv); };
  read_rows<ROWS, DEPTH, Q_WHOLE>(queries, q, first, QUERIES, WIDTH, query_at);
  const T* const own = queries + warp * 16 * (DEPTH + 8);
)";

constexpr std::string_view ForwardTensors = R"(float sums[VALUE_DEPTH / 8][4];
  clear<VALUE_DEPTH>(sums);
  float largest[2] = {H(-Infinity), H(-Infinity)}, total[2] = {0, 0};
  for (i64 j0 = KEYS_BEGIN; j0 < KEYS_END; j0 += TILE) {
    __syncthreads();
    read_rows<TILE, DEPTH, K_WHOLE>(keys, k, j0, KEYS, WIDTH, key_at);
    const bool odd = __syncthreads_or(
        read_rows<TILE, VALUE_DEPTH, V_WHOLE>(values, v, j0, KEYS, VALUE_WIDTH, value_at));
    float s[TILE / 8][4];
    multiply_rows<DEPTH>(s, own, keys);
    float most[2] = {largest[0], largest[1]};
#pragma unroll
    for (int n = 0; n < TILE / 8; ++n)
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const i64 i = row[c / 2], j = j0 + n * 8 + lane % 4 * 2 + c % 2;
        H slope;
        H z = bent(s[n][c], slope);
        if (i < QUERIES && j < KEYS && ALLOWED) {
          BIAS;
        } else {
          z = H(-Infinity);
        }
        s[n][c] = z;
        most[c / 2] = above(most[c / 2], z);
      }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      most[r] = row_most(most[r]);
      const float shrink = most[r] == H(-Infinity) ? 1.0f : exp(largest[r] - most[r]);
      largest[r] = most[r];
      total[r] *= shrink;
#pragma unroll
      for (int n = 0; n < VALUE_DEPTH / 8; ++n) {
        sums[n][2 * r] *= shrink;
        sums[n][2 * r + 1] *= shrink;
      }
    }
#pragma unroll
    for (int n = 0; n < TILE / 8; ++n)
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const H z = s[n][c];
        const H p = z == H(-Infinity) ? H(0) : exp(z - largest[c / 2]);
        total[c / 2] += p;
        s[n][c] = p;
      }
    add_rows<VALUE_DEPTH>(sums, s, values, odd);
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float all = row_sum(total[r]);
    const bool none = largest[r] == H(-Infinity);
    const i64 i = row[r];
    if (i >= QUERIES) continue;
    if (out != nullptr) {
#pragma unroll
      for (int e = 0; e < VALUE_DEPTH / 4; ++e) {
        const int at = e / 2 * 8 + lane % 4 * 2 + e % 2;
        const H y = none ? H(0) : sums[e / 2][2 * r + e % 2] / all;
        if (at < VALUE_WIDTH) out[OUT_AT(b, i, h) + at] = STORED_Y;
      }
    }
    if (lse != nullptr && lane % 4 == 0) {
      const H y = none ? H(-Infinity) : largest[r] + log(all);
      lse[(b * HEADS + h) * QUERIES + i] = STORED_LSE;
    }
  })";

// Pass 0 finds lse where it is not known, pass 1 Σ P dP, pass 2 the gradient of the query.
constexpr std::string_view RowsTensors =
    R"(__shared__ Pack<T, 8> given_room[ROWS * (VALUE_DEPTH + 8) / 8];
  const auto given_at = [&](i64 i) { return OUT_AT(b, i, h); };
  read_rows<ROWS, VALUE_DEPTH, DY_WHOLE>(given_room[0].at, dy, first, QUERIES, VALUE_WIDTH, given_at);
  const T* const given = given_room[0].at + warp * 16 * (VALUE_DEPTH + 8);
  float sums[DEPTH / 8][4];
  clear<DEPTH>(sums);
  float largest[2] = {H(-Infinity), H(-Infinity)}, total[2] = {0, 0}, known[2] = {0, 0}, mean[2] = {0, 0};
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const i64 number = (b * HEADS + h) * QUERIES + row[r];
    if (KNOWN && row[r] < QUERIES) known[r] = KNOWN_LSE;
  }
  for (int pass = KNOWN ? 1 : 0; pass < 3; ++pass) {
    for (i64 j0 = KEYS_BEGIN; j0 < KEYS_END; j0 += TILE) {
      __syncthreads();
      if (pass > 0) read_rows<TILE, VALUE_DEPTH, V_WHOLE>(values, v, j0, KEYS, VALUE_WIDTH, value_at);
      const bool odd = __syncthreads_or(read_rows<TILE, DEPTH, K_WHOLE>(keys, k, j0, KEYS, WIDTH, key_at));
      float s[TILE / 8][4], dp[TILE / 8][4];
      multiply_rows<DEPTH>(s, own, keys);
      if (pass > 0) multiply_rows<VALUE_DEPTH>(dp, given, values);
#pragma unroll
      for (int n = 0; n < TILE / 8; ++n)
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          const int r = c / 2;
          const i64 i = row[r], j = j0 + n * 8 + lane % 4 * 2 + c % 2;
          H slope;
          H z = bent(s[n][c], slope);
          s[n][c] = 0;
          if (i >= QUERIES || j >= KEYS || !(ALLOWED)) continue;
          BIAS;
          if (z == H(-Infinity)) continue;
          if (pass == 0) {
            const H most = above(largest[r], z);
            total[r] = (largest[r] == H(-Infinity) ? H(0) : total[r] * exp(largest[r] - most)) + exp(z - most);
            largest[r] = most;
            continue;
          }
          if (known[r] == H(-Infinity)) continue;
          const H p = exp(z - known[r]);
          if (p == 0) continue;
          if (pass == 1) {
            mean[r] = fmaf(p, dp[n][c], mean[r]);
          } else {
            s[n][c] = p * (dp[n][c] - mean[r]) * slope * H(SCALE);
          }
        }
      if (pass == 2) add_rows<DEPTH>(sums, s, keys, odd);
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (pass == 1) mean[r] = row_sum(mean[r]);
      if (pass != 0) continue;
      const H most = row_most(largest[r]);
      const H share = largest[r] == H(-Infinity) ? H(0) : total[r] * exp(largest[r] - most);
      const H all = row_sum(share);
      known[r] = most == H(-Infinity) ? most : most + log(all);
    }
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const i64 i = row[r];
    if (i >= QUERIES) continue;
    const i64 number = (b * HEADS + h) * QUERIES + i;
    if (lane % 4 == 0) {
      rows[2 * number] = known[r];
      rows[2 * number + 1] = mean[r];
    }
    if (dq == nullptr) continue;
#pragma unroll
    for (int e = 0; e < DEPTH / 4; ++e) {
      const int at = e / 2 * 8 + lane % 4 * 2 + e % 2;
      const H y = sums[e / 2][2 * r + e % 2];
      if (at < WIDTH) dq[Q_AT(b, i, h) + at] = STORED_Y;
    }
  })";

constexpr std::string_view ColumnsTensors =
    R"(const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const i64 blocks = (KEYS + ROWS - 1) / ROWS;
  const i64 kv = blockIdx.x / blocks % KV_HEADS, b = blockIdx.x / blocks / KV_HEADS;
  const i64 first = blockIdx.x % blocks * ROWS;
  const i64 row[2] = {first + warp * 16 + lane / 4, first + warp * 16 + lane / 4 + 8};
  __shared__ Pack<T, 8> key_room[ROWS * (DEPTH + 8) / 8];
  __shared__ Pack<T, 8> value_room[ROWS * (VALUE_DEPTH + 8) / 8];
  __shared__ Pack<T, 8> query_room[TILE * (DEPTH + 8) / 8];
  __shared__ Pack<T, 8> given_room[TILE * (VALUE_DEPTH + 8) / 8];
  __shared__ float stats[TILE][2];
  T *const queries = query_room[0].at, *const given = given_room[0].at;
  const auto key_at = [&](i64 j) { return K_AT(b, j, kv); };
  const auto value_at = [&](i64 j) { return V_AT(b, j, kv); };
  read_rows<ROWS, DEPTH, K_WHOLE>(key_room[0].at, k, first, KEYS, WIDTH, key_at);
  read_rows<ROWS, VALUE_DEPTH, V_WHOLE>(value_room[0].at, v, first, KEYS, VALUE_WIDTH, value_at);
  const T* const own_keys = key_room[0].at + warp * 16 * (DEPTH + 8);
  const T* const own_values = value_room[0].at + warp * 16 * (VALUE_DEPTH + 8);
  float d_key[DEPTH / 8][4], d_value[VALUE_DEPTH / 8][4];
  clear<DEPTH>(d_key);
  clear<VALUE_DEPTH>(d_value);
  for (i64 h = kv * (HEADS / KV_HEADS); h < (kv + 1) * (HEADS / KV_HEADS); ++h) {
    const auto query_at = [&](i64 i) { return Q_AT(b, i, h); };
    const auto given_at = [&](i64 i) { return OUT_AT(b, i, h); };
    for (i64 i0 = QUERIES_BEGIN; i0 < QUERIES_END; i0 += TILE) {
      __syncthreads();
      const bool odd_query = read_rows<TILE, DEPTH, Q_WHOLE>(queries, q, i0, QUERIES, WIDTH, query_at);
      const bool odd_given = read_rows<TILE, VALUE_DEPTH, DY_WHOLE>(given, dy, i0, QUERIES, VALUE_WIDTH, given_at);
      for (int e = threadIdx.x; e < 2 * TILE; e += 128) {
        const bool real = i0 + e / 2 < QUERIES;
        stats[e / 2][e % 2] = real ? rows[2 * ((b * HEADS + h) * QUERIES + i0) + e] : 0.0f;
      }
      const bool odd = __syncthreads_or(odd_query || odd_given);
      float s[TILE / 8][4], dp[TILE / 8][4];
      multiply_rows<DEPTH>(s, own_keys, queries);
      multiply_rows<VALUE_DEPTH>(dp, own_values, given);
#pragma unroll
      for (int n = 0; n < TILE / 8; ++n)
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          const int t = n * 8 + lane % 4 * 2 + c % 2;
          const i64 j = row[c / 2], i = i0 + t;
          H slope;
          H z = bent(s[n][c], slope);
          const H d = dp[n][c];
          s[n][c] = 0;
          dp[n][c] = 0;
          if (j >= KEYS || i >= QUERIES || !(ALLOWED)) continue;
          BIAS;
          const H known = stats[t][0];
          if (known == H(-Infinity) || z == H(-Infinity)) continue;
          const H p = exp(z - known);
          if (p == 0) continue;
          s[n][c] = p;
          dp[n][c] = p * (d - stats[t][1]) * slope * H(SCALE);
        }
      add_rows<VALUE_DEPTH>(d_value, s, given, odd);
      add_rows<DEPTH>(d_key, dp, queries, odd);
    }
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const i64 j = row[r];
    if (j >= KEYS) continue;
    if (dk != nullptr) {
#pragma unroll
      for (int e = 0; e < DEPTH / 4; ++e) {
        const int at = e / 2 * 8 + lane % 4 * 2 + e % 2;
        const H y = d_key[e / 2][2 * r + e % 2];
        if (at < WIDTH) dk[K_AT(b, j, kv) + at] = STORED_Y;
      }
    }
    if (dv != nullptr) {
#pragma unroll
      for (int e = 0; e < VALUE_DEPTH / 4; ++e) {
        const int at = e / 2 * 8 + lane % 4 * 2 + e % 2;
        const H y = d_value[e / 2][2 * r + e % 2];
        if (at < VALUE_WIDTH) dv[V_AT(b, j, kv) + at] = STORED_Y;
      }
    }
  })";

std::int64_t whole_sixteens(std::int64_t width) { return (width + 15) / 16 * 16; }

// The most others at a time that shared memory has room for beside the rows of the block, of which
// there are `own` arrays of keys' width and `own_values` of values'.
std::int64_t tensor_tile(const loop::Attention& a, std::int64_t own, std::int64_t own_values) {
  const std::int64_t key = 2 * (whole_sixteens(a.width) + 8);
  const std::int64_t value = 2 * (whole_sixteens(a.value_width) + 8);
  std::int64_t tile = 64;
  while (tile > 16 &&
         TensorRows * (own * key + own_values * value) + tile * (key + value + 8) > UnaskedShared) {
    tile /= 2;
  }
  return tile;
}

// May eight numbers of a head be read at once?
bool reads_whole(const CallStep& step, std::size_t operand, const Place& place,
                 const loop::HeadStrides& s, std::int64_t width) {
  const auto whole = [](std::int64_t n) { return n % 8 == 0; };
  const bool lies_well =
      place.in != Place::In::Operand || whole(step.operands[operand].layout.offset);
  return lies_well && whole(width) && whole(s.batch) && whole(s.position) && whole(s.head);
}

std::string tensor_names(const PlanBuilder& builder, const loop::Attention& a,
                         const AttentionArrays& arrays, std::int64_t tile) {
  const CallStep& step = builder.step();
  const DType dtype = builder.dtype(0);
  const DType mask =
      a.mask_operand >= 0 ? builder.dtype(static_cast<std::size_t>(a.mask_operand)) : dtype;
  const bool half = dtype == DType::F16;
  std::string out = attention_names(a, {dtype, DType::F32, mask, TensorRows, tile});
  out +=
      fmt::format("#define ROWS {}\n#define DEPTH {}\n#define VALUE_DEPTH {}\n"
                  "#define SMALL \"{}\"\n#define SMALLER {}\n#define LARGEST {}\n",
                  TensorRows, whole_sixteens(a.width), whole_sixteens(a.value_width),
                  half ? "f16" : "bf16", half ? "to_f16" : "to_bf16", half ? "0x7c00" : "0x7f80");
  out += fmt::format("#define Q_WHOLE {}\n#define K_WHOLE {}\n#define V_WHOLE {}\n",
                     reads_whole(step, 0, arrays.q, a.q, a.width),
                     reads_whole(step, 1, arrays.k, a.k, a.width),
                     reads_whole(step, 2, arrays.v, a.v, a.value_width));
  out += stored_as("STORED_Y", dtype);
  return out;
}

std::int64_t tensor_blocks(std::int64_t heads, std::int64_t rows) {
  return heads * ((rows + TensorRows - 1) / TensorRows);
}

std::vector<Parameter> tensor_inputs(const PlanBuilder& builder, const loop::Attention& a,
                                     const AttentionArrays& arrays) {
  const DType dtype = builder.dtype(0);
  const DType mask =
      a.mask_operand >= 0 ? builder.dtype(static_cast<std::size_t>(a.mask_operand)) : dtype;
  return {{arrays.q, dtype, "q"},
          {arrays.k, dtype, "k"},
          {arrays.v, dtype, "v"},
          {arrays.mask, mask, "mask"}};
}

}  // namespace

// In f16 the gradient of a score may be too large or too small to be rounded before it is
// multiplied.
bool has_tensor_attention(const loop::Attention& a, DType dtype) {
  const bool forward = a.pass == loop::Pass::Forward;
  constexpr std::int64_t Fewest = 16;  // fewer queries fill no tile
  return (dtype == DType::BF16 || (dtype == DType::F16 && forward)) && a.queries >= Fewest;
}

void plan_tensor_forward(PlanBuilder& builder, const loop::Attention& a,
                         const AttentionArrays& arrays) {
  const CallStep& step = builder.step();
  const bool has_lse = step.results.size() > 1;
  const DType lse = has_lse ? step.results[1].type.dtype : DType::F32;
  std::vector<Parameter> in = tensor_inputs(builder, a, arrays);
  in.push_back({result(0), builder.dtype(0), "out", true});
  in.push_back({result(has_lse ? 1 : 0), lse, "lse", true});
  std::string names = tensor_names(builder, a, arrays, tensor_tile(a, 1, 0));
  names += stored_as("STORED_LSE", lse);
  names += SmallTensorText;
  names += TensorCode.substr(1);
  std::string code(OwnQueries);
  // Without a second result its pointer is that of the first.
  if (!has_lse) code += "  lse = nullptr;\n";
  builder.launch(tensor_blocks(a.batch * a.heads, a.queries), TensorThreads, in,
                 fmt::format("{}  {}", code, ForwardTensors), names);
}

void plan_tensor_backward(PlanBuilder& builder, const loop::Attention& a,
                          const AttentionArrays& arrays, Place rows) {
  const CallStep& step = builder.step();
  const DType dtype = builder.dtype(0);
  const bool known = a.lse_operand >= 0;
  const DType lse = known ? builder.dtype(static_cast<std::size_t>(a.lse_operand)) : dtype;
  std::string names = tensor_names(builder, a, arrays, tensor_tile(a, 1, 1));
  names +=
      fmt::format("#define DY_WHOLE {}\n", reads_whole(step, 3, arrays.dy, a.out, a.value_width));
  names += SmallTensorText;
  names += TensorCode.substr(1);
  std::vector<Parameter> in = tensor_inputs(builder, a, arrays);
  in.push_back({arrays.dy, builder.dtype(3), "dy"});
  std::vector<Parameter> first = in;
  first.push_back({arrays.lse, lse, "lse"});
  first.push_back({rows, DType::F32, "rows", true});
  first.push_back({result(0), dtype, "dq", true});
  builder.launch(tensor_blocks(a.batch * a.heads, a.queries), TensorThreads, first,
                 fmt::format("{}  {}", OwnQueries, RowsTensors),
                 fmt::format("#define KNOWN {}\n#define KNOWN_LSE H({})\n", known,
                             known ? from_stored(lse, "lse[number]") : "0") +
                     names);
  if (!is_wanted(step, 1) && !is_wanted(step, 2)) return;
  in.push_back({rows, DType::F32, "rows"});
  in.push_back({result(1), dtype, "dk", true});
  in.push_back({result(2), dtype, "dv", true});
  builder.launch(tensor_blocks(a.batch * a.kv_heads, a.keys), TensorThreads, in,
                 std::string(ColumnsTensors), names);
}

}  // namespace ricci::cuda
