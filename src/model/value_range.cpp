#include "model/value_range.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ricci {

void NumberCounts::add(double number) {
  ++count_;
  seen_.low = std::min(seen_.low, number);
  seen_.high = std::max(seen_.high, number);
  if (half_ == 0) return;
  if (number == 0) {
    ++zeros_;
    return;
  }
  int exponent = 0;
  (void)std::frexp(number, &exponent);  // |number| < 2^exponent
  if (bins_.empty() || exponent > exponent_) reach(exponent);
  const double at = std::floor(std::ldexp(number, -exponent_) * static_cast<double>(half_));
  ++bins_[static_cast<std::size_t>(static_cast<std::int64_t>(at) + half_)];
}

void NumberCounts::reach(int exponent) {
  const auto size = static_cast<std::size_t>(2 * half_);
  if (bins_.empty()) {
    bins_.assign(size, 0);
    exponent_ = exponent;
    return;
  }
  constexpr int MostShift = 40;  // more bits than bins have
  const int shift = std::min(exponent - exponent_, MostShift);
  std::vector<std::int64_t> wider(size, 0);
  for (std::size_t b = 0; b < size; ++b) {
    // Towards minus infinity, as the bins are counted.
    const std::int64_t at = (static_cast<std::int64_t>(b) - half_) >> shift;
    wider[static_cast<std::size_t>(at + half_)] += bins_[b];
  }
  bins_ = std::move(wider);
  exponent_ = exponent;
}

double NumberCounts::width() const {
  return std::ldexp(1.0 / static_cast<double>(half_), exponent_);
}

double NumberCounts::centre(std::size_t bin) const {
  return (static_cast<double>(static_cast<std::int64_t>(bin) - half_) + 0.5) * width();
}

// The number below which a share of all lies, interpolated within its bin.
double NumberCounts::quantile(double share) const {
  const double wanted = share * static_cast<double>(count_);
  double below = 0;
  for (std::size_t b = 0; b < bins_.size(); ++b) {
    // Zeros lie between the two halves.
    if (static_cast<std::int64_t>(b) == half_) {
      if (below + static_cast<double>(zeros_) >= wanted && wanted > below) return 0;
      below += static_cast<double>(zeros_);
    }
    const auto here = static_cast<double>(bins_[b]);
    if (here > 0 && below + here >= wanted) {
      const double within = std::clamp((wanted - below) / here, 0.0, 1.0);
      const double at = centre(b) + (within - 0.5) * width();
      return std::clamp(at, seen_.low, seen_.high);
    }
    below += here;
  }
  return seen_.high;
}

// How many numbers have a size in each bin.
std::vector<double> NumberCounts::sizes() const {
  const auto half = static_cast<std::size_t>(half_);
  std::vector<double> out(half, 0);
  for (std::size_t i = 0; i < half; ++i) {
    out[i] = static_cast<double>(bins_[half + i] + bins_[half - 1 - i]);
  }
  return out;
}

NumberRange NumberCounts::percentile(double share, bool symmetric) const {
  if (bins_.empty()) return seen_;
  if (!symmetric) {
    return {std::min(0.0, quantile(1 - share)), std::max(0.0, quantile(share))};
  }
  const double wanted = share * static_cast<double>(count_);
  auto below = static_cast<double>(zeros_);
  const std::vector<double> all = sizes();
  const double largest = std::max(-seen_.low, seen_.high);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] > 0 && below + all[i] >= wanted) {
      const double within = std::clamp((wanted - below) / all[i], 0.0, 1.0);
      const double size = std::min(largest, (static_cast<double>(i) + within) * width());
      return {-size, size};
    }
    below += all[i];
  }
  return {-largest, largest};
}

NumberRange NumberCounts::least_squares(double codes, bool symmetric) const {
  if (bins_.empty()) return seen_;
  NumberRange full = seen_;
  if (symmetric) {
    full.high = std::max(-full.low, full.high);
    full.low = -full.high;
  }
  // Rounding errs by a step²/12 inside the range, and by the distance outside.
  const auto error = [&](const NumberRange& range) {
    const double step = (range.high - range.low) / (codes - 1);
    double total = 0;
    for (std::size_t b = 0; b < bins_.size(); ++b) {
      if (bins_[b] == 0) continue;
      const double x = centre(b);
      const double outside = std::max({range.low - x, x - range.high, 0.0});
      total += static_cast<double>(bins_[b]) * (outside > 0 ? outside * outside : step * step / 12);
    }
    return total;
  };
  constexpr int Steps = 100;
  NumberRange best = full;
  double least = error(best);
  const auto take = [&](const NumberRange& range) {
    const double e = error(range);
    if (e >= least) return;
    least = e;
    best = range;
  };
  for (int i = Steps; i >= 1; --i) {
    const double share = static_cast<double>(i) / Steps;
    take({full.low * share, full.high * share});
  }
  if (symmetric) return best;
  for (int i = Steps; i >= 1; --i) take({full.low * i / Steps, best.high});
  for (int i = Steps; i >= 1; --i) take({best.low, full.high * i / Steps});
  return best;
}

namespace {

// Σ p·log(p/q) of counts, where q says the first `bins` in `levels` steps and p has what is larger
// in its last bin.
double divergence(std::span<const double> counts, std::size_t bins, std::size_t levels) {
  double beyond = 0;
  for (std::size_t i = bins; i < counts.size(); ++i) beyond += counts[i];
  double total_p = beyond;
  double total_q = 0;
  for (std::size_t i = 0; i < bins; ++i) total_p += counts[i];
  std::vector<double> q(bins, 0);
  for (std::size_t level = 0; level < levels; ++level) {
    const std::size_t first = level * bins / levels;
    const std::size_t last = (level + 1) * bins / levels;
    double sum = 0;
    std::size_t taken = 0;
    for (std::size_t i = first; i < last; ++i) {
      sum += counts[i];
      taken += counts[i] > 0 ? 1 : 0;
    }
    total_q += sum;
    for (std::size_t i = first; i < last; ++i) {
      if (counts[i] > 0) q[i] = sum / static_cast<double>(taken);
    }
  }
  if (total_q == 0) return std::numeric_limits<double>::infinity();
  double out = 0;
  for (std::size_t i = 0; i < bins; ++i) {
    const double p = (counts[i] + (i + 1 == bins ? beyond : 0)) / total_p;
    if (p == 0) continue;
    // What is said by nothing counts as very unlikely, not as impossible.
    const double said = std::max(q[i] / total_q, 1e-9);
    out += p * std::log(p / said);
  }
  return out;
}

}  // namespace

NumberRange NumberCounts::least_divergence(std::int64_t levels) const {
  if (bins_.empty()) return seen_;
  const std::vector<double> counts = sizes();
  const double largest = std::max(-seen_.low, seen_.high);
  const auto used = std::min(counts.size(), static_cast<std::size_t>(std::ceil(largest / width())));
  double best = largest;
  double least = std::numeric_limits<double>::infinity();
  const auto steps = static_cast<std::size_t>(levels);
  for (std::size_t bins = used; bins >= steps; --bins) {
    const double d = divergence(std::span(counts).first(used), bins, steps);
    if (d >= least) continue;
    least = d;
    best = bins == used ? largest : static_cast<double>(bins) * width();
  }
  return {std::max(seen_.low, -best), std::min(seen_.high, best)};
}

}  // namespace ricci
