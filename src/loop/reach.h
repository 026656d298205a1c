// The places a walk over axes can reach, as long as they are numbers at all.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "ricci/compiler/loop/layout.h"
#include "ricci/support/checked.h"

namespace ricci::loop {

class Reach {
 public:
  explicit Reach(std::int64_t start) : low_(start), high_(start) {}
  /// None of `dims` is 0, and there is a stride for each.
  Reach(const Layout& layout, std::span<const std::int64_t> dims) : Reach(layout.offset) {
    for (std::size_t axis = 0; axis < dims.size(); ++axis) add(layout.strides[axis], dims[axis]);
  }
  void add(std::int64_t stride, std::int64_t count) {
    std::optional<std::int64_t>& end = stride < 0 ? low_ : high_;
    const std::optional<std::int64_t> far = try_mul(stride, count - 1);
    end = end && far ? try_add(*end, *far) : std::nullopt;
  }
  void move(std::optional<std::int64_t> by) {
    low_ = low_ && by ? try_add(*low_, *by) : std::nullopt;
    high_ = high_ && by ? try_add(*high_, *by) : std::nullopt;
  }
  /// Of a walk that is known.
  [[nodiscard]] std::int64_t low() const { return *low_; }
  [[nodiscard]] std::int64_t high() const { return *high_; }
  [[nodiscard]] bool is_known() const { return low_ && high_; }
  [[nodiscard]] bool is_inside(std::int64_t elements) const {
    return is_known() && *low_ >= 0 && *high_ < elements;
  }

 private:
  std::optional<std::int64_t> low_;
  std::optional<std::int64_t> high_;
};

}  // namespace ricci::loop
