// What attention and its backward op share: reading heads in any layout, and one row of scores.
#pragma once

#include <vector>

#include "ricci/op/attention.h"
#include "ricci/rule/eval.h"

namespace ricci::rule {

/// q, k or v, read as [batch, sequence, head, width] whatever the layout.
struct HeadedReal {
  AttentionLayout layout;
  std::int64_t heads;
  std::int64_t head_dim;
  RealNd x;

  [[nodiscard]] std::size_t flat(std::int64_t b, std::int64_t s, std::int64_t h,
                                 std::int64_t d) const;
  [[nodiscard]] double at(std::int64_t b, std::int64_t s, std::int64_t h, std::int64_t d) const {
    return x.data[flat(b, s, h, d)];
  }
  [[nodiscard]] std::int64_t batch() const;
  [[nodiscard]] std::int64_t sequence() const;
};
[[nodiscard]] HeadedReal read_heads(const op::Attention& op, const RealNd& x, std::int64_t heads);

/// One query's probabilities over keys.
struct AttentionRow {
  std::vector<double> p;      ///< 0 where a key is not allowed
  std::vector<double> slope;  ///< dZ/dR: 1 - tanh²(R/c) with a softcap, else 1
  double lse = 0;
};

class AttentionScores {
 public:
  /// Reads q, k, v from operands 0 to 2 and the mask, if any, from `mask_index`.
  AttentionScores(const op::Attention& op, EvalContext& c, std::size_t mask_index);
  /// The mask is read when the mask kind has one. `attention` must outlive this.
  AttentionScores(const op::Attention& attention, const RealNd& q_heads, const RealNd& k_heads,
                  const RealNd& v_heads, RealNd mask);
  [[nodiscard]] AttentionRow row(std::int64_t b, std::int64_t h, std::int64_t i) const;
  [[nodiscard]] std::int64_t kv_head(std::int64_t h) const {
    return h / (op_.num_heads / op_.num_kv_heads.value_or(op_.num_heads));
  }

 private:
  [[nodiscard]] bool allowed(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const;
  const op::Attention& op_;
  RealNd mask_;

 public:
  HeadedReal q;
  HeadedReal k;
  HeadedReal v;
  double scale;
};

}  // namespace ricci::rule
