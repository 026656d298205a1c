// What the sequences of a generator have behind them: keys and values by place, or states, in
// memory that stays where it is until it is too small. Every sequence has a row of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "ricci/type/type.h"

namespace ricci::serve {

/// Memory that is zero, and taken when it is looked at.
class ZeroedBytes {
 public:
  ZeroedBytes() = default;
  explicit ZeroedBytes(std::size_t size);
  [[nodiscard]] std::byte* data() const noexcept { return data_.get(); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  struct Free {
    void operator()(std::byte* p) const noexcept;
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_ = 0;
};

class Past {
 public:
  using Types = std::function<std::vector<Type>(std::int64_t rows, std::int64_t places)>;
  explicit Past(const Types& types);

  /// Room for so many rows of so many places; what rows hold stays, as far as `filled` says.
  void reserve(std::int64_t rows, std::int64_t places, std::span<const std::int64_t> filled);
  [[nodiscard]] std::int64_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::int64_t places() const noexcept { return places_; }
  [[nodiscard]] std::int64_t bytes() const noexcept;

  [[nodiscard]] std::size_t leaves() const noexcept { return leaves_.size(); }
  /// A leaf from a row on.
  [[nodiscard]] std::byte* data(std::size_t leaf, std::int64_t row) const noexcept;
  /// Bytes that a step gives for a leaf, for every row with `next` new places.
  [[nodiscard]] std::size_t given_bytes(std::size_t leaf, std::int64_t next) const noexcept;
  /// Puts what a step gave for a row behind the `first` places there are, or in their place.
  void take(std::size_t leaf, std::int64_t row, std::int64_t first, std::int64_t count,
            const std::byte* given) const;
  /// As if nothing had been there.
  void clear(std::int64_t row, std::int64_t filled) const;

 private:
  struct Leaf {
    bool grows = false;    // has an axis of places
    std::size_t unit = 0;  // bytes of a place, or of a row
    ZeroedBytes bytes;
  };
  [[nodiscard]] std::size_t row_bytes(const Leaf& leaf) const noexcept {
    return leaf.grows ? leaf.unit * static_cast<std::size_t>(places_) : leaf.unit;
  }

  std::vector<Leaf> leaves_;
  std::int64_t rows_ = 0, places_ = 0;
};

}  // namespace ricci::serve
