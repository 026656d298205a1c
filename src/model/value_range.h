// Counts of numbers in bins, and the range of codes that fits them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ricci {

/// A range of numbers; it holds 0.
struct NumberRange {
  double low = 0;
  double high = 0;
};

/// Numbers by size. Bins are alike and symmetric about 0; where a number lies outside of them they
/// double, and neighbours become one. Zeros are in no bin: every code says them exactly.
class NumberCounts {
 public:
  /// `half` bins on each side of 0, an even number; 0: only the range is kept.
  explicit NumberCounts(std::int64_t half) : half_(half) {}

  void add(double number);
  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] const NumberRange& seen() const { return seen_; }

  /// All but a share of the numbers on each side, or of the sizes.
  [[nodiscard]] NumberRange percentile(double share, bool symmetric) const;
  /// Least squared error with so many codes.
  [[nodiscard]] NumberRange least_squares(double codes, bool symmetric) const;
  /// Least divergence of what the codes say, `levels` of them for sizes.
  [[nodiscard]] NumberRange least_divergence(std::int64_t levels) const;

 private:
  void reach(int exponent);
  [[nodiscard]] double width() const;
  [[nodiscard]] double centre(std::size_t bin) const;
  [[nodiscard]] double quantile(double share) const;
  [[nodiscard]] std::vector<double> sizes() const;

  std::int64_t half_;
  int exponent_ = 0;  ///< bins end at ±2^exponent
  std::vector<std::int64_t> bins_;
  std::int64_t count_ = 0;
  std::int64_t zeros_ = 0;
  NumberRange seen_;
};

}  // namespace ricci
