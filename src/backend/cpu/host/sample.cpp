// Drawing ids from logits, with the reference's arithmetic in its order.
#include <cmath>
#include <numeric>

#include "backend/cpu/host/kernels.h"
#include "backend/cpu/host/scratch.h"
#include "backend/cpu/host/sort_keys.h"
#include "support/philox.h"

namespace ricci::cpu {
namespace {

// K holds every logit exactly: float, or double for f64.
template <class K>
class Sample {
 public:
  Sample(const HostArguments& call, Scratch& scratch)
      : call_(call), role_(call.as<loop::Sample>()), width_(role_.width), rows_(role_.rows) {
    logits_ = scratch.take<double>(rows_.tiles * width_);
    weights_ = scratch.take<double>(rows_.tiles * width_);
    if (is_cut()) items_ = scratch.take<ItemOf<K>>(rows_.tiles * room());
  }

  void run() const {
    const PhiloxStream stream = this->stream();
    rows_.run(call_.pool, [&](std::int64_t r, std::int64_t tile) {
      const Row row{logits_ + tile * width_, weights_ + tile * width_,
                    is_cut() ? items_ + tile * room() : nullptr};
      read_numbers(call_.operands[0], r * width_, width_, row.logits);
      const std::int64_t id = draw(row, stream.uniform24(static_cast<std::uint64_t>(r)));
      write_numbers(call_.results[0], r, 1, &id);
    });
  }

 private:
  struct Row {
    double* logits;
    double* weights;
    ItemOf<K>* items;
  };

  [[nodiscard]] bool is_cut() const { return role_.top_k > 0 || role_.top_p < 1; }
  [[nodiscard]] std::int64_t room() const { return least_items_room(width_); }

  [[nodiscard]] PhiloxStream stream() const {
    return {call_.seed, stream_key(call_, role_.key, role_.key_operand)};
  }

  // The first largest logit; the first NaN, when there is one.
  [[nodiscard]] std::int64_t largest(const double* logits) const {
    std::int64_t best = 0;
    for (std::int64_t i = 0; i < width_; ++i) {
      if (std::isnan(logits[i])) return i;
      if (logits[best] < logits[i]) best = i;
    }
    return best;
  }

  void weigh_all(const Row& row, double top) const {
    for (std::int64_t i = 0; i < width_; ++i) {
      row.weights[i] = std::exp((row.logits[i] - top) / role_.temperature);
    }
  }

  // Weights of the top_k largest, cut to the fewest that hold top_p of their mass.
  void weigh_likely(const Row& row, double top) const {
    const auto item = [&](std::int64_t i) {
      return item_of(static_cast<K>(row.logits[i]), i, true);
    };
    const std::int64_t kept = role_.top_k > 0 ? std::min(role_.top_k, width_) : width_;
    const ItemOf<K>* order = row.items;
    if (kept < width_) {
      least_items(row.items, width_, kept, item,
                  [](std::int64_t begin, std::uint64_t /*key*/) { return begin; });
    } else {
      for (std::int64_t i = 0; i < width_; ++i) row.items[i] = item(i);
      order = sort_items(row.items, row.items + width_, static_cast<std::size_t>(width_));
    }
    std::fill_n(row.weights, width_, 0.0);
    double total = 0;
    for (std::int64_t i = 0; i < kept; ++i) {
      const std::int64_t id = position_of(order[i]);
      row.weights[id] = std::exp((row.logits[id] - top) / role_.temperature);
      total += row.weights[id];
    }
    if (role_.top_p >= 1) return;
    double mass = 0;
    for (std::int64_t i = 0; i < kept; ++i) {
      double& w = row.weights[position_of(order[i])];
      if (mass >= role_.top_p * total) w = 0;
      mass += w;
    }
  }

  // The first id whose cumulative probability exceeds u.
  [[nodiscard]] std::int64_t draw(const Row& row, double u) const {
    const std::int64_t best = largest(row.logits);
    const double top = row.logits[best];
    if (role_.temperature == 0 || !std::isfinite(top)) return best;
    if (is_cut()) {
      weigh_likely(row, top);
    } else {
      weigh_all(row, top);
    }
    const double total = std::accumulate(row.weights, row.weights + width_, 0.0);
    double cumulative = 0;
    std::int64_t last = 0;  // rounding may leave the sum at u·total
    for (std::int64_t i = 0; i < width_; ++i) {
      if (row.weights[i] > 0) last = i;
      cumulative += row.weights[i];
      if (cumulative > u * total) return last;
    }
    return last;
  }

  const HostArguments& call_;
  const loop::Sample& role_;
  std::int64_t width_;
  Slots rows_;
  double* logits_ = nullptr;
  double* weights_ = nullptr;
  ItemOf<K>* items_ = nullptr;
};

}  // namespace

HostKernel sample_kernel() noexcept { return kernel_of_float<Sample>(); }

}  // namespace ricci::cpu
