// What attention and its backward op share: reading heads in any layout, one row of scores, and
// the scores as a graph.
#pragma once

#include <optional>
#include <vector>

#include "ricci/compiler/rule/eval.h"
#include "ricci/op/attention.h"

namespace ricci::rule {

/// q, k, v or out, read as [batch, sequence, head, width] whatever the layout.
struct HeadedReal {
  AttentionLayout layout;
  std::int64_t heads;
  std::int64_t width;  ///< of a head
  RealNd x;

  [[nodiscard]] std::size_t flat(std::int64_t b, std::int64_t s, std::int64_t h,
                                 std::int64_t d) const;
  [[nodiscard]] double at(std::int64_t b, std::int64_t s, std::int64_t h, std::int64_t d) const {
    return x.data[flat(b, s, h, d)];
  }
  [[nodiscard]] std::int64_t batch() const;
  [[nodiscard]] std::int64_t sequence() const;
};
[[nodiscard]] HeadedReal read_heads(const op::Attention& op, const RealNd& x, std::int64_t heads,
                                    std::int64_t width);

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
  /// `lse`, where it is known, takes the place of the row's own.
  [[nodiscard]] AttentionRow row(std::int64_t b, std::int64_t h, std::int64_t i,
                                 std::optional<double> lse = {}) const;
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

/// The operands of an expansion; mask and lse are invalid when there is none.
struct AttentionOperands {
  Value q;
  Value k;
  Value v;
  Value mask;
  Value lse;
};

/// The probabilities of an expansion, with heads in front: [batch, H, sequence, …].
struct AttentionGraph {
  Value q;
  Value k;        ///< heads repeated per group
  Value v;        ///< heads repeated per group
  Value bent;     ///< tanh(R/c); invalid without a softcap
  Value p;        ///< [batch, H, S_q, S_k]
  Value largest;  ///< [batch, H, S_q, 1], max Z; invalid when lse was given
  Value total;    ///< [batch, H, S_q, 1], Σ e^(Z - largest), 1 without an allowed key; invalid when
                  ///< lse was given
  double scale = 1;
};
[[nodiscard]] AttentionGraph attention_graph(const op::Attention& op, Graph& graph,
                                             const AttentionOperands& in);

/// To [batch, H, sequence, width], whatever the layout; key/value heads repeated per group.
[[nodiscard]] Value to_bhsd(const op::Attention& op, Value x, std::int64_t heads,
                            std::int64_t width);
/// Back to an operand's own layout and shape.
[[nodiscard]] Value from_bhsd(const op::Attention& op, Value x, const Dims& dims);
/// Sums the heads of each group: the reverse of repeating key/value heads.
[[nodiscard]] Value sum_groups(const op::Attention& op, Value x);

}  // namespace ricci::rule
