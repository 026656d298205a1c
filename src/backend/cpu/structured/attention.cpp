#include "backend/cpu/structured/attention.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "ricci/support/checked.h"
#include "ricci/type/tensor.h"

#include "backend/cpu/kernels/vector_kernels.h"

namespace ricci::cpu {
namespace {

constexpr float Infinity = std::numeric_limits<float>::infinity();
constexpr std::int64_t QueryBlock = ScoreKernels::Queries;
constexpr std::int64_t KeyBlock = 64;
constexpr std::int64_t AlignedFloats = 16;  // floats: 64 bytes
// Forward tiles with heads up to this wide work on the stack, which stays in the cache.
constexpr std::int64_t StackHead = 128;
constexpr std::int64_t StackFloats = (2 * StackHead + KeyBlock) * QueryBlock;

std::int64_t rounded_up(std::int64_t n) {
  return (n + AlignedFloats - 1) / AlignedFloats * AlignedFloats;
}

// Blocks of keys and queries are in the nearest caches already: copying them into the order of
// packed products costs a fifth more than it gains.
void multiply(const Product<float>& p) { vector_kernels().f32.blocks(p); }

std::int64_t forward_tile(const loop::Attention& a) {
  return rounded_up((a.width + a.value_width + KeyBlock) * QueryBlock);
}

// A mask's key is allowed when its number is at least one half.
bool is_allowed(DType dtype, const void* mask, std::int64_t index) {
  return with_element_type(dtype, [&]<class T>() {
    const T x = static_cast<const T*>(mask)[index];
    if constexpr (std::is_same_v<T, std::complex<float>> ||
                  std::is_same_v<T, std::complex<double>>) {
      return x.real() >= typename T::value_type(0.5);
    } else {
      return static_cast<double>(x) >= 0.5;
    }
  });
}

}  // namespace

AttentionPlan::AttentionPlan(const loop::Attention& role, DType mask_dtype)
    : role_(role),
      mask_dtype_(mask_dtype),
      group_(role.heads / role.kv_heads),
      scale_(static_cast<float>(role.scale)),
      cap_(static_cast<float>(role.cap)) {}

std::int64_t AttentionPlan::blocks() const { return (role_.queries + QueryBlock - 1) / QueryBlock; }

AttentionPlan::Block AttentionPlan::block(std::int64_t batch, std::int64_t head,
                                          std::int64_t index) const {
  Block b{.batch = batch, .head = head, .first = index * QueryBlock};
  b.count = std::min(QueryBlock, role_.queries - b.first);
  b.key1 = role_.keys;
  const std::int64_t newest = b.first + role_.keys - role_.queries;  // of the first query
  const bool window = role_.mask.kind == MaskKind::Kind::SlidingWindow;
  if (window || role_.mask.kind == MaskKind::Kind::Causal) {
    b.key1 = std::min(role_.keys, newest + b.count);
  }
  if (window && newest > role_.mask.window) {
    b.key0 = (newest - role_.mask.window) / KeyBlock * KeyBlock;
  }
  return b;
}

// Transposed to [width, QueryBlock]; lanes without a query are 0.
void AttentionPlan::pack_rows(const float* rows, const loop::HeadStrides& at, std::int64_t width,
                              const Block& b, float factor, float* packed) {
  vector_kernels().f32.panels.turn(rows + at.at(b.batch, b.first, b.head), at.position, b.count,
                                   width, packed, QueryBlock, QueryBlock);
  if (factor == 1.0F) return;
  for (std::int64_t i = 0; i < width * QueryBlock; ++i) packed[i] *= factor;
}

void AttentionPlan::mask_scores(const AttentionOperands& in, const Block& b, std::int64_t key,
                                std::int64_t keys, float* s) const {
  using Kind = MaskKind::Kind;
  if (role_.mask.kind == Kind::None) return;
  if (role_.mask.kind == Kind::Causal || role_.mask.kind == Kind::SlidingWindow) {
    const std::int64_t newest = b.first + role_.keys - role_.queries;
    for (std::int64_t j = 0; j < keys; ++j) {
      float* row = s + j * QueryBlock;
      const std::int64_t first = std::clamp<std::int64_t>(key + j - newest, 0, QueryBlock);
      std::fill_n(row, first, -Infinity);
      if (role_.mask.kind == Kind::Causal) continue;
      const std::int64_t end =
          std::clamp<std::int64_t>(key + j - newest + role_.mask.window + 1, 0, QueryBlock);
      std::fill(row + end, row + QueryBlock, -Infinity);
    }
    return;
  }
  const auto& stride = role_.mask_strides;
  for (std::int64_t j = 0; j < keys; ++j) {
    for (std::int64_t i = 0; i < b.count; ++i) {
      const std::int64_t at = b.batch * stride[0] + b.head * stride[1] + (b.first + i) * stride[2] +
                              (key + j) * stride[3];
      float& score = s[j * QueryBlock + i];
      if (role_.mask.kind == Kind::Bias) {
        score += static_cast<const float*>(in.mask)[at];
      } else if (!is_allowed(mask_dtype_, in.mask, at)) {
        score = -Infinity;
      }
    }
  }
}

void AttentionPlan::scores(const AttentionOperands& in, const Block& b, std::int64_t key,
                           std::int64_t keys, const float* packed_q, float* s, float* slope) const {
  const VectorKernels& kernels = vector_kernels();
  multiply({.m = keys,
            .n = QueryBlock,
            .k = role_.width,
            .a = in.k + role_.k.at(b.batch, key, kv_head(b.head)),
            .a_row = role_.k.position,
            .a_column = 1,
            .b = packed_q,
            .b_row = QueryBlock,
            .c = s,
            .c_row = QueryBlock});
  if (cap_ > 0) kernels.scores.cap(s, keys, cap_, slope);
  mask_scores(in, b, key, keys, s);
}

std::int64_t AttentionPlan::forward_scratch_bytes() const {
  const std::int64_t tile = forward_tile(role_);
  if (tile <= StackFloats) return 0;
  const std::int64_t tiles = checked_mul(checked_mul(role_.batch, role_.heads), blocks());
  return checked_mul(checked_mul(tiles, tile), sizeof(float));
}

void AttentionPlan::forward_block(const AttentionOperands& in, const Block& b, float* out,
                                  float* lse, float* scratch) const {
  const VectorKernels& kernels = vector_kernels();
  float* packed_q = scratch;
  float* s = packed_q + role_.width * QueryBlock;
  float* sum = s + KeyBlock * QueryBlock;  // [QueryBlock, width]
  const std::int64_t width = role_.value_width;
  alignas(64) float maximum[QueryBlock];
  alignas(64) float total[QueryBlock] = {};
  alignas(64) float correction[QueryBlock];
  std::fill_n(maximum, QueryBlock, -Infinity);
  std::fill_n(sum, b.count * width, 0.0F);
  pack_rows(in.q, role_.q, role_.width, b, scale_, packed_q);
  for (std::int64_t key = b.key0; key < b.key1; key += KeyBlock) {
    const std::int64_t keys = std::min(KeyBlock, b.key1 - key);
    scores(in, b, key, keys, packed_q, s, nullptr);
    kernels.scores.take(s, keys, maximum, total, correction);
    for (std::int64_t i = 0; key > b.key0 && i < b.count; ++i) {
      float* row = sum + i * width;
      const float factor = correction[i];
      if (factor == 1.0F) continue;
      for (std::int64_t d = 0; d < width; ++d) row[d] *= factor;
    }
    multiply({.m = b.count,
              .n = width,
              .k = keys,
              .a = s,
              .a_row = 1,
              .a_column = QueryBlock,
              .b = in.v + role_.v.at(b.batch, key, kv_head(b.head)),
              .b_row = role_.v.position,
              .c = sum,
              .c_row = width,
              .accumulate = true});
  }
  for (std::int64_t i = 0; i < b.count; ++i) {
    const bool none = total[i] == 0.0F;  // no allowed key: a zero row
    if (out != nullptr) {
      float* to = out + role_.out.at(b.batch, b.first + i, b.head);
      const float factor = none ? 0.0F : 1.0F / total[i];
      for (std::int64_t d = 0; d < width; ++d) to[d] = none ? 0.0F : sum[i * width + d] * factor;
    }
    if (lse != nullptr) {
      lse[(b.batch * role_.heads + b.head) * role_.queries + b.first + i] =
          none ? -Infinity : maximum[i] + std::log(total[i]);
    }
  }
}

void AttentionPlan::forward(ThreadPool& pool, const AttentionOperands& in, float* out, float* lse,
                            void* scratch) const {
  const std::int64_t tile_size = forward_tile(role_);
  const std::int64_t heads = role_.batch * role_.heads;
  pool.run(heads * blocks(), [&](std::int64_t tile) {
    // The last blocks of a causal mask see most keys: they go first.
    const std::int64_t index = blocks() - 1 - tile / heads;
    const std::int64_t at = tile % heads;
    const Block b = block(at / role_.heads, at % role_.heads, index);
    if (tile_size > StackFloats) {
      return forward_block(in, b, out, lse, static_cast<float*>(scratch) + tile * tile_size);
    }
    alignas(64) float space[StackFloats];
    forward_block(in, b, out, lse, space);
  });
}

// For one block of queries: everything about all its keys, transposed as in ScoreKernels.
struct AttentionPlan::Workspace {
  float* packed_q = nullptr;
  float* packed_dy = nullptr;
  float* p = nullptr;      // [keys, QueryBlock]
  float* dp = nullptr;     // the same
  float* slope = nullptr;  // the same; null without a cap

  static std::int64_t size(const AttentionPlan& plan) {
    const std::int64_t block = checked_mul(plan.role_.keys, QueryBlock);
    const std::int64_t width = plan.role_.width + plan.role_.value_width;
    return rounded_up(width * QueryBlock + (plan.cap_ > 0 ? 3 : 2) * block);
  }
  Workspace(const AttentionPlan& plan, float* scratch)
      : packed_q(scratch),
        packed_dy(packed_q + plan.role_.width * QueryBlock),
        p(packed_dy + plan.role_.value_width * QueryBlock),
        dp(p + plan.role_.keys * QueryBlock) {
    if (plan.cap_ > 0) slope = dp + plan.role_.keys * QueryBlock;
  }
};

// Scores become probabilities.
void AttentionPlan::probabilities(const Block& b, const float* lse, const Workspace& w) const {
  const ScoreKernels& kernels = vector_kernels().scores;
  const std::int64_t keys = b.key1 - b.key0;
  float* s = w.p + b.key0 * QueryBlock;
  alignas(64) float shift[QueryBlock] = {};
  if (lse != nullptr) {
    const float* own = lse + (b.batch * role_.heads + b.head) * role_.queries + b.first;
    // Without an allowed key every score is -inf, and so stays -inf less +inf: the row is 0.
    for (std::int64_t i = 0; i < b.count; ++i) shift[i] = own[i] == -Infinity ? Infinity : own[i];
    kernels.exp_shifted(s, keys, shift);
    return;
  }
  alignas(64) float total[QueryBlock] = {};
  alignas(64) float correction[QueryBlock];
  std::fill_n(shift, QueryBlock, -Infinity);
  kernels.take(s, keys, shift, total, correction);
  for (float& t : total) t = t == 0.0F ? 0.0F : 1.0F / t;
  for (std::int64_t j = 0; j < keys; ++j) {
    for (std::int64_t i = 0; i < QueryBlock; ++i) s[j * QueryBlock + i] *= total[i];
  }
}

void AttentionPlan::add_bias_gradient(const Block& b, std::int64_t key, std::int64_t keys,
                                      const float* dz, float* dbias) const {
  const auto& stride = role_.mask_strides;
  for (std::int64_t i = 0; i < b.count; ++i) {
    for (std::int64_t j = 0; j < keys; ++j) {
      dbias[b.batch * stride[0] + b.head * stride[1] + (b.first + i) * stride[2] +
            (key + j) * stride[3]] += dz[j * QueryBlock + i];
    }
  }
}

void AttentionPlan::backward_block(const AttentionOperands& in, const Block& b, const float* dy,
                                   const AttentionStatistics& known, const AttentionGradients& d,
                                   const Workspace& w) const {
  const VectorKernels& kernels = vector_kernels();
  const std::int64_t kv = kv_head(b.head);
  pack_rows(in.q, role_.q, role_.width, b, scale_, w.packed_q);
  pack_rows(dy, role_.out, role_.value_width, b, 1.0F, w.packed_dy);
  for (std::int64_t key = b.key0; key < b.key1; key += KeyBlock) {
    const std::int64_t keys = std::min(KeyBlock, b.key1 - key);
    const std::int64_t at = key * QueryBlock;
    scores(in, b, key, keys, w.packed_q, w.p + at, w.slope != nullptr ? w.slope + at : nullptr);
    multiply({.m = keys,  // dP = dy vᵀ
              .n = QueryBlock,
              .k = role_.value_width,
              .a = in.v + role_.v.at(b.batch, key, kv),
              .a_row = role_.v.position,
              .a_column = 1,
              .b = w.packed_dy,
              .b_row = QueryBlock,
              .c = w.dp + at,
              .c_row = QueryBlock});
  }
  probabilities(b, known.lse, w);
  alignas(64) float mean[QueryBlock] = {};
  const std::int64_t all = b.key1 - b.key0;
  if (known.mean != nullptr) {
    std::copy_n(known.mean + (b.batch * role_.heads + b.head) * role_.queries + b.first, b.count,
                mean);
  } else {
    kernels.scores.add_products(w.p + b.key0 * QueryBlock, w.dp + b.key0 * QueryBlock, all, mean);
  }
  const float* q_rows = in.q + role_.q.at(b.batch, b.first, b.head);
  const float* dy_rows = dy + role_.out.at(b.batch, b.first, b.head);
  for (std::int64_t key = b.key0; key < b.key1; key += KeyBlock) {
    const std::int64_t keys = std::min(KeyBlock, b.key1 - key);
    const float* p = w.p + key * QueryBlock;
    float* ds = w.dp + key * QueryBlock;
    if (d.dbias != nullptr) {
      kernels.scores.gradient(p, ds, keys, mean, 1.0F, nullptr);
      add_bias_gradient(b, key, keys, ds, d.dbias);
      for (std::int64_t i = 0; i < keys * QueryBlock; ++i) {
        ds[i] *= scale_ * (w.slope != nullptr ? w.slope[key * QueryBlock + i] : 1.0F);
      }
    } else {
      kernels.scores.gradient(p, ds, keys, mean, scale_,
                              w.slope != nullptr ? w.slope + key * QueryBlock : nullptr);
    }
    const std::int64_t at_kv = role_.k.at(b.batch, key, kv);
    Product<float> to_keys{.m = keys, .k = b.count, .a_row = QueryBlock, .a_column = 1};
    to_keys.accumulate = true;
    if (d.dv != nullptr) {
      to_keys.n = role_.value_width, to_keys.a = p;
      to_keys.b = dy_rows, to_keys.b_row = role_.out.position;
      to_keys.c = d.dv + role_.v.at(b.batch, key, kv), to_keys.c_row = role_.v.position;
      multiply(to_keys);
    }
    if (d.dk != nullptr) {
      to_keys.n = role_.width, to_keys.a = ds;
      to_keys.b = q_rows, to_keys.b_row = role_.q.position;
      to_keys.c = d.dk + at_kv, to_keys.c_row = role_.k.position;
      multiply(to_keys);
    }
    if (d.dq != nullptr) {
      multiply({.m = b.count,
                .n = role_.width,
                .k = keys,
                .a = ds,
                .a_row = 1,
                .a_column = QueryBlock,
                .b = in.k + at_kv,
                .b_row = role_.k.position,
                .c = d.dq + role_.q.at(b.batch, b.first, b.head),
                .c_row = role_.q.position,
                .accumulate = true});
    }
  }
}

std::int64_t AttentionPlan::backward_scratch_bytes() const {
  const std::int64_t tiles = checked_mul(role_.batch, role_.kv_heads);
  return checked_mul(checked_mul(tiles, Workspace::size(*this)), sizeof(float));
}

// A tile owns its batch's and key/value head's dk and dv, so nothing is added from two threads. A
// bias that repeats along batches or heads is owned by a tile that covers all of them.
void AttentionPlan::backward(ThreadPool& pool, const AttentionOperands& in, const float* dy,
                             const AttentionStatistics& known, const AttentionGradients& d,
                             void* scratch) const {
  const bool bias = d.dbias != nullptr;
  const bool join_batches = bias && role_.mask_strides[0] == 0;
  const bool join_heads = bias && role_.mask_strides[1] == 0;
  const std::int64_t batch_tiles =
      join_batches ? std::min<std::int64_t>(role_.batch, 1) : role_.batch;
  const std::int64_t head_tiles = join_heads ? 1 : role_.kv_heads;
  if (bias) {
    const std::int64_t sizes[4] = {role_.batch, role_.heads, role_.queries, role_.keys};
    std::int64_t count = 1;
    for (std::size_t i = 0; i < 4; ++i) {
      if (role_.mask_strides[i] != 0 || sizes[i] == 0) count *= sizes[i];
    }
    std::fill_n(d.dbias, count, 0.0F);
  }
  const auto clear = [&](float* x, const loop::HeadStrides& h, std::int64_t width,
                         std::int64_t batch, std::int64_t head, std::int64_t length) {
    for (std::int64_t s = 0; x != nullptr && s < length; ++s) {
      std::fill_n(x + h.at(batch, s, head), width, 0.0F);
    }
  };
  const auto run = [&](std::int64_t batch, std::int64_t kv, const Workspace& w) {
    clear(d.dk, role_.k, role_.width, batch, kv, role_.keys);
    clear(d.dv, role_.v, role_.value_width, batch, kv, role_.keys);
    for (std::int64_t head = kv * group_; head < (kv + 1) * group_; ++head) {
      clear(d.dq, role_.q, role_.width, batch, head, role_.queries);
      for (std::int64_t i = 0; i < blocks(); ++i) {
        backward_block(in, block(batch, head, i), dy, known, d, w);
      }
    }
  };
  pool.run(batch_tiles * head_tiles, [&](std::int64_t tile) {
    const Workspace w(*this, static_cast<float*>(scratch) + tile * Workspace::size(*this));
    const std::int64_t b0 = tile / head_tiles;
    const std::int64_t h0 = tile % head_tiles;
    for (std::int64_t b = b0; b < (join_batches ? role_.batch : b0 + 1); ++b) {
      for (std::int64_t h = h0; h < (join_heads ? role_.kv_heads : h0 + 1); ++h) run(b, h, w);
    }
  });
}

}  // namespace ricci::cpu
