// Batches in order: shuffled by a seed, made ahead of time by threads, and resumed exactly.
//
//   Loader batches(digits, {.batch = 64, .shuffle = 1, .steps = 600});
//   for (auto [i, batch] : enumerate(batches)) {
//     train(batch);
//     if (i % 100 == 99) save("run", train, batches);     // ricci/train/checkpoint.h
//   }
//
// With `steps` a loader gives so many batches, epoch after epoch; without it a loop is one epoch,
// and the next loop the next one. A loader remembers where it stands: a loop that was left, or a
// position that was restored, goes on with the batch that was not given yet. Which samples are in
// which batch depends on the data's size, `batch`, `shuffle` and `drop_last` alone: not on threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "ricci/data/dataset.h"

namespace ricci {

struct LoaderOptions {
  std::int64_t batch = 32;
  /// Draws an order anew for every epoch; absent: samples come in their order.
  std::optional<std::uint64_t> shuffle = {};
  /// Leaves out the batch at an epoch's end that is smaller than the others. What it would make is
  /// a program of its own for another shape.
  bool drop_last = false;
  /// How many batches there are, over as many epochs as it takes; absent: a loop is an epoch.
  std::optional<std::int64_t> steps = {};
  /// Threads that make batches ahead of time; 0: they are made when they are asked for.
  int threads = 1;
  /// How many batches are made or held ahead at most.
  std::int64_t prefetch = 4;
};

/// Where a loader stands: the batch that comes next.
struct DataPosition {
  std::int64_t epoch = 0;
  std::int64_t batch = 0;  ///< within the epoch
  std::int64_t step = 0;   ///< batches given so far, over all epochs
  // What the order was made of.
  std::int64_t samples = 0;
  std::int64_t batch_size = 0;
  std::optional<std::uint64_t> shuffle = {};
  bool drop_last = false;

  bool operator==(const DataPosition&) const = default;
  /// `epoch=2 batch=17 step=641 samples=20000 batch_size=64 shuffle=1 drop_last=0`
  [[nodiscard]] std::string to_text() const;
  /// UserError(parse) for any other text.
  [[nodiscard]] static DataPosition from_text(std::string_view text);
};

namespace detail {

/// All of a loader that does not depend on the type of batches.
class LoaderState {
 public:
  using Make = std::function<std::shared_ptr<const void>(std::span<const std::int64_t>)>;
  LoaderState(std::int64_t samples, Make make, LoaderOptions options, std::source_location where);
  ~LoaderState();
  LoaderState(const LoaderState&) = delete;
  LoaderState& operator=(const LoaderState&) = delete;

  /// Forgets that a round ended.
  void begin() noexcept;
  /// The next batch of this round; null when it is over.
  [[nodiscard]] std::shared_ptr<const void> next();
  [[nodiscard]] DataPosition position() const;
  void seek(const DataPosition& position);
  [[nodiscard]] std::int64_t batches_per_epoch() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace detail

/// A handle: copies share where they stand. One thread reads it at a time.
template <class Batch>
class Loader {
 public:
  explicit Loader(Dataset<Batch> data, LoaderOptions options = {},
                  std::source_location where = std::source_location::current()) {
    const std::int64_t count = data.size();
    state_ = std::make_shared<detail::LoaderState>(
        count,
        [data = std::move(data)](std::span<const std::int64_t> rows) {
          return std::make_shared<const Batch>(data.batch(rows));
        },
        options, where);
  }

  /// The next batch, or nothing at the end of a round: of the epoch, or of `steps`. What a sample
  /// throws in another thread is thrown here, and the position stays at its batch.
  [[nodiscard]] std::optional<Batch> next() {
    const std::shared_ptr<const void> made = state_->next();
    if (!made) return std::nullopt;
    return *static_cast<const Batch*>(made.get());
  }

  /// The batch that comes next. Within the body of a loop, its batch has been given.
  [[nodiscard]] DataPosition position() const { return state_->position(); }
  /// UserError(refused) for a position in other data, or in batches of other sizes.
  void seek(const DataPosition& position) { state_->seek(position); }
  [[nodiscard]] std::int64_t batches_per_epoch() const { return state_->batches_per_epoch(); }

  class iterator {
   public:
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::input_iterator_tag;
    explicit iterator(Loader* from) : from_(from) { ++*this; }
    [[nodiscard]] Batch& operator*() const { return *batch_; }
    iterator& operator++() {
      auto next = from_->next();
      batch_ = next ? std::make_shared<Batch>(std::move(*next)) : nullptr;
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return batch_ == nullptr; }

   private:
    Loader* from_;
    std::shared_ptr<Batch> batch_;
  };
  /// Gives the first batch of what is left of this round, or of the next one.
  [[nodiscard]] iterator begin() {
    state_->begin();
    return iterator(this);
  }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

 private:
  std::shared_ptr<detail::LoaderState> state_;
};

namespace detail {

template <class Range>
struct Enumerated {
  Range range;

  template <class It, class End>
  struct Iterator {
    It at;
    End end;
    std::int64_t number;
    [[nodiscard]] auto operator*() const {
      return std::pair<std::int64_t, decltype(*at)>(number, *at);
    }
    Iterator& operator++() {
      ++at;
      ++number;
      return *this;
    }
    bool operator==(std::default_sentinel_t) const { return at == end; }
  };

  [[nodiscard]] auto begin() {
    std::int64_t first = 0;
    if constexpr (requires { range.position().step; }) first = range.position().step;
    return Iterator<decltype(std::begin(range)), decltype(std::end(range))>{std::begin(range),
                                                                            std::end(range), first};
  }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }
};

}  // namespace detail

/// Pairs of a number and an element: `for (auto [i, batch] : enumerate(loader))`. It counts from 0,
/// and for a loader from the step it stands at, so that a resumed run goes on counting.
template <class Range>
[[nodiscard]] detail::Enumerated<Range> enumerate(Range&& range) {
  return {std::forward<Range>(range)};
}

}  // namespace ricci
