// Samples by number, and orders of them that take no memory.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ricci/array/array.h"
#include "ricci/array/tree.h"

// An order of 0 … n - 1 that takes no memory: where each of them goes is computed when it is asked.
//
//   const Permutation order(data.size(), seed);
//   order(0);                                    // which comes first

namespace ricci {

/// The same count and seed give the same order, on every machine. It is a Feistel network on the
/// bits of a number, walked until it is below the count: some ten nanoseconds a number.
class Permutation {
 public:
  Permutation(std::int64_t count, std::uint64_t seed);

  [[nodiscard]] std::int64_t size() const noexcept { return count_; }
  /// For i in [0, size).
  [[nodiscard]] std::int64_t operator()(std::int64_t i) const noexcept;

 private:
  static constexpr int Rounds = 8;
  [[nodiscard]] std::uint64_t once(std::uint64_t x) const noexcept;

  std::int64_t count_;
  int half_bits_ = 4;
  std::array<std::uint64_t, Rounds> keys_{};
};

}  // namespace ricci

// Samples by number: what a training loop draws its batches from.
//
//   struct Batch { Array x, y; };                    // any tree of arrays
//   const Dataset<Batch> digits = Batch{images, labels};  // samples lie along the first axes
//   auto [train, test] = digits.split(0.9);
//   const Batch one = train[17];                      // leaves without the first axis
//   const Batch some = train.batch({3, 1, 4});        // leaves with one
//   Dataset<Batch> small = train.take(1000).map([](const Batch& b) { return …; });
//
// A dataset is a handle on something that does not change; copies are cheap, and any number of
// threads may read one. Nothing is computed before a sample is asked for.

namespace ricci {

namespace detail {

/// The arrays of a tree, computed, with how many samples they have. UserError(shape) when they
/// disagree, or one has no first axis.
struct SampleArrays {
  SampleArrays(std::span<const Array> leaves, std::span<const std::string> names,
               std::source_location where);
  [[nodiscard]] std::vector<Array> gather(std::span<const std::int64_t> rows) const;

  std::vector<Tensor> tensors;
  std::int64_t count = 0;
};
[[nodiscard]] std::vector<Array> without_first_axis(std::span<const Array> leaves);
/// Samples as one batch. UserError(shape) when their arrays are of different types.
[[nodiscard]] std::vector<Array> stacked(std::span<const std::vector<Array>> samples,
                                         std::span<const std::string> names);
void require_rows(std::span<const std::int64_t> rows, std::int64_t count,
                  std::source_location where);
[[nodiscard]] std::int64_t count_for(double fraction, std::int64_t count);

}  // namespace detail

struct SplitOptions {
  /// Which samples go where is drawn by this seed; absent: the first ones come first.
  std::optional<std::uint64_t> shuffle = {};
};

template <class Batch>
class Dataset {
 public:
  /// The samples of these numbers as a batch.
  using Gather = std::function<Batch(std::span<const std::int64_t>)>;

  Dataset() : Dataset(0, [](std::span<const std::int64_t>) { return Batch{}; }) {}
  /// Arrays in memory, or mapped: sample i is the i-th slice of every leaf.
  Dataset(const Batch& all,  // NOLINT: a batch is a dataset
          std::source_location where = std::source_location::current()) {
    auto arrays = std::make_shared<const detail::SampleArrays>(leaves(all), leaf_names(all), where);
    count_ = arrays->count;
    gather_ = std::make_shared<const Gather>([all, arrays](std::span<const std::int64_t> rows) {
      return with_leaves(all, arrays->gather(rows));
    });
  }
  /// Samples that a function fetches. It is called from several threads at a time.
  Dataset(std::int64_t count, Gather gather)
      : gather_(std::make_shared<const Gather>(std::move(gather))), count_(count) {}

  [[nodiscard]] std::int64_t size() const noexcept { return count_; }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }

  /// UserError(index_out_of_range) for numbers there are no samples of.
  [[nodiscard]] Batch batch(std::span<const std::int64_t> rows,
                            std::source_location where = std::source_location::current()) const {
    detail::require_rows(rows, count_, where);
    return (*gather_)(rows);
  }
  [[nodiscard]] Batch batch(std::initializer_list<std::int64_t> rows,
                            std::source_location where = std::source_location::current()) const {
    return batch(std::span(rows.begin(), rows.size()), where);
  }
  [[nodiscard]] Batch sample(std::int64_t i,
                             std::source_location where = std::source_location::current()) const {
    const Batch one = batch({i}, where);
    return with_leaves(one, detail::without_first_axis(leaves(one)));
  }
  [[nodiscard]] Batch operator[](std::int64_t i) const { return sample(i); }
  /// Everything as one batch.
  [[nodiscard]] Batch all() const {
    std::vector<std::int64_t> rows(static_cast<std::size_t>(count_));
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int64_t>(i);
    return (*gather_)(rows);
  }

  /// The first n, or as many as there are.
  [[nodiscard]] Dataset take(std::int64_t n) const { return slice(0, n); }
  /// All but the first n.
  [[nodiscard]] Dataset skip(std::int64_t n) const { return slice(n, count_); }
  /// Those from `first` on, before `last`; both are moved to where there are samples.
  [[nodiscard]] Dataset slice(std::int64_t first, std::int64_t last) const {
    const auto within = [&](std::int64_t i) { return i < 0 ? 0 : i > count_ ? count_ : i; };
    const std::int64_t from = within(first);
    const std::int64_t to = within(last) < from ? from : within(last);
    return picked(to - from, [from](std::int64_t i) { return from + i; });
  }
  /// Those of these numbers, in this order.
  [[nodiscard]] Dataset select(std::vector<std::int64_t> rows,
                               std::source_location where = std::source_location::current()) const {
    detail::require_rows(rows, count_, where);
    const auto count = static_cast<std::int64_t>(rows.size());
    return picked(count, [rows = std::move(rows)](std::int64_t i) {
      return rows[static_cast<std::size_t>(i)];
    });
  }
  /// In an order drawn by a seed.
  [[nodiscard]] Dataset shuffle(std::uint64_t seed) const {
    return picked(count_, [order = Permutation(count_, seed)](std::int64_t i) { return order(i); });
  }
  /// So much of it, in [0, 1], and the rest.
  [[nodiscard]] std::pair<Dataset, Dataset> split(double fraction,
                                                  SplitOptions options = {}) const {
    const Dataset from = options.shuffle ? shuffle(*options.shuffle) : *this;
    const std::int64_t n = detail::count_for(fraction, count_);
    return {from.take(n), from.skip(n)};
  }

  /// f of every sample, when it is asked for: a tree of any type, of which samples agree in shape.
  template <class F>
  [[nodiscard]] auto map(F f) const {
    using R = std::decay_t<decltype(f(std::declval<const Batch&>()))>;
    return Dataset<R>(count_, [f = std::move(f), from = *this](std::span<const std::int64_t> rows) {
      std::vector<std::vector<Array>> samples;
      std::optional<R> shape;
      for (const std::int64_t i : rows) {
        R made = f(from.sample(i));
        samples.push_back(leaves(made));
        if (!shape) shape = std::move(made);
      }
      if (!shape) return f(from.batch(rows));
      return with_leaves(*shape, detail::stacked(samples, leaf_names(*shape)));
    });
  }
  /// f of every batch, when it is asked for: fewer and larger calls than `map`.
  template <class F>
  [[nodiscard]] auto map_batch(F f) const {
    using R = std::decay_t<decltype(f(std::declval<const Batch&>()))>;
    return Dataset<R>(count_, [f = std::move(f), from = *this](std::span<const std::int64_t> rows) {
      return R(f(from.batch(rows)));
    });
  }

 private:
  template <class Pick>
  [[nodiscard]] Dataset picked(std::int64_t count, Pick pick) const {
    return Dataset(count,
                   [gather = gather_, pick = std::move(pick)](std::span<const std::int64_t> rows) {
                     std::vector<std::int64_t> own(rows.begin(), rows.end());
                     for (std::int64_t& i : own) i = pick(i);
                     return (*gather)(own);
                   });
  }

  std::shared_ptr<const Gather> gather_;
  std::int64_t count_ = 0;
};

}  // namespace ricci
