// The ops that carry series through their bodies, and the order their operands and results are in.
#pragma once

#include <vector>

#include "ricci/compiler/rule/series.h"
#include "ricci/op/control.h"

namespace ricci::rule {

[[nodiscard]] SeriesResults series(const op::If& op, const SeriesContext& c);
[[nodiscard]] SeriesResults series(const op::Scan& op, const SeriesContext& c);
[[nodiscard]] SeriesResults series(const op::While& op, const SeriesContext& c);
[[nodiscard]] SeriesResults series(const op::Checkpoint& op, const SeriesContext& c);

/// Where values and coefficients are when each of several groups is its values, then the
/// coefficients of the first, those of the second, ….
class SeriesLayout {
 public:
  /// `ends`: one past the last value of each group.
  SeriesLayout(std::vector<std::size_t> degrees, const std::vector<std::size_t>& ends);

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// How many values and coefficients group g has.
  [[nodiscard]] std::size_t group_size(std::size_t g) const { return group_sizes_[g]; }
  [[nodiscard]] const std::vector<std::size_t>& degrees() const noexcept { return degrees_; }
  [[nodiscard]] std::size_t value(std::size_t k) const { return values_[k]; }
  /// j from 1
  [[nodiscard]] std::size_t coefficient(std::size_t k, std::size_t j) const {
    return firsts_[k] + j - 1;
  }

  /// For each value, then for each coefficient, in a list of this layout what `of(k, j)` gives;
  /// j = 0 is the value.
  template <class F>
  [[nodiscard]] auto arranged(F&& of) const {
    std::vector<decltype(of(std::size_t{0}, std::size_t{0}))> out(size_);
    for (std::size_t k = 0; k < degrees_.size(); ++k) {
      out[value(k)] = of(k, 0);
      for (std::size_t j = 1; j <= degrees_[k]; ++j) out[coefficient(k, j)] = of(k, j);
    }
    return out;
  }
  /// The same, taking them from a list of another layout of the same values.
  [[nodiscard]] std::vector<Value> arranged(std::span<const Value> list,
                                            const SeriesLayout& from) const;
  /// The inverse.
  [[nodiscard]] SeriesResults split(std::span<const Value> list) const;

 private:
  std::vector<std::size_t> degrees_;
  std::vector<std::size_t> values_;
  std::vector<std::size_t> firsts_;
  std::vector<std::size_t> group_sizes_;
  std::size_t size_ = 0;
};

/// Operands `first`, … and their coefficients; where the layout has more, zeros.
[[nodiscard]] std::vector<Value> arranged_operands(const SeriesContext& c,
                                                   const SeriesLayout& layout,
                                                   std::size_t first = 0);

/// A body that takes its inputs and gives its outputs in other layouts than one group.
[[nodiscard]] std::shared_ptr<const Graph> with_layouts(const Graph& body, const BodySeries& over,
                                                        const SeriesLayout& in,
                                                        const SeriesLayout& out, Graph& outer);

/// How many coefficients the inputs of a loop's body have: all, for carries that get any.
[[nodiscard]] std::vector<std::size_t> loop_degrees(const SeriesContext& c, const Graph& body,
                                                    std::size_t carries);

}  // namespace ricci::rule
