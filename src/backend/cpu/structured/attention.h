// Attention and its derivative in f32 without the matrix of scores: blocks of queries against
// blocks of keys, with running maxima and totals. Blocks in which everything is masked are skipped.
//
//   const AttentionPlan plan(role, mask_dtype);
//   plan.forward(pool, {q, k, v, mask_data}, out, lse, scratch);
//   plan.backward(pool, {q, k, v, mask_data}, dy, {lse, mean}, {dq, dk, dv, dbias}, scratch);
//
// How work is cut depends on shapes alone. Plans are immutable.
#pragma once

#include <array>
#include <cstdint>

#include "ricci/compiler/device/thread_pool.h"
#include "ricci/compiler/loop/call.h"
#include "ricci/type/dtype.h"
#include "ricci/type/type.h"

namespace ricci::cpu {

struct AttentionOperands {
  const float* q = nullptr;
  const float* k = nullptr;
  const float* v = nullptr;
  const void* mask = nullptr;  ///< of the plan's mask dtype; null without one
};

/// Results nobody wants are null.
struct AttentionGradients {
  float* dq = nullptr;
  float* dk = nullptr;
  float* dv = nullptr;
  float* dbias = nullptr;
};

/// What is known of every query before its gradient; null: it is found.
struct AttentionStatistics {
  const float* lse = nullptr;   ///< forward's
  const float* mean = nullptr;  ///< Σ P dP
};

class AttentionPlan {
 public:
  /// Operands are row-major.
  explicit AttentionPlan(const loop::Attention& role, DType mask_dtype = DType::F32);

  [[nodiscard]] std::int64_t forward_scratch_bytes() const;
  /// `lse` may be null.
  void forward(ThreadPool& pool, const AttentionOperands& in, float* out, float* lse,
               void* scratch) const;

  [[nodiscard]] std::int64_t backward_scratch_bytes() const;
  void backward(ThreadPool& pool, const AttentionOperands& in, const float* dy,
                const AttentionStatistics& known, const AttentionGradients& d, void* scratch) const;

 private:
  /// A block of queries of one head.
  struct Block {
    std::int64_t batch = 0;
    std::int64_t head = 0;
    std::int64_t first = 0;  ///< query
    std::int64_t count = 0;
    std::int64_t key0 = 0;  ///< keys it may see, in whole blocks but for the last
    std::int64_t key1 = 0;
  };
  /// Scratch of a backward tile.
  struct Workspace;

  [[nodiscard]] Block block(std::int64_t batch, std::int64_t head, std::int64_t index) const;
  [[nodiscard]] std::int64_t blocks() const;
  [[nodiscard]] std::int64_t kv_head(std::int64_t head) const { return head / group_; }
  static void pack_rows(const float* rows, const loop::HeadStrides& at, std::int64_t width,
                        const Block& b, float factor, float* packed);
  /// Scores of a block of keys: scaled, capped, biased, -inf where masked; `slope` may be null.
  void scores(const AttentionOperands& in, const Block& b, std::int64_t key, std::int64_t keys,
              const float* packed_q, float* s, float* slope) const;
  void mask_scores(const AttentionOperands& in, const Block& b, std::int64_t key, std::int64_t keys,
                   float* s) const;
  void forward_block(const AttentionOperands& in, const Block& b, float* out, float* lse,
                     float* scratch) const;
  void backward_block(const AttentionOperands& in, const Block& b, const float* dy,
                      const AttentionStatistics& known, const AttentionGradients& d,
                      const Workspace& w) const;
  void probabilities(const Block& b, const float* lse, const Workspace& w) const;
  void add_bias_gradient(const Block& b, std::int64_t key, std::int64_t keys, const float* dz,
                         float* dbias) const;

  loop::Attention role_;
  DType mask_dtype_;
  std::int64_t group_;  ///< query heads to a key/value head
  float scale_;
  float cap_;  ///< 0: none
};

}  // namespace ricci::cpu
