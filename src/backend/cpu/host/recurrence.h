// What recurrences over time share. Columns of a state are independent: a unit of work is a block
// of them with its state at hand. A derivative keeps a state every √S steps and computes those
// between them again, so that its room does not grow with steps times states.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "backend/cpu/kernels/vector_kernels.h"

namespace ricci::cpu {

template <class N>
[[nodiscard]] const RecurrenceKernels<N>& recurrence_kernels() {
  if constexpr (std::is_same_v<N, float>) {
    return vector_kernels().recurrence_f32;
  } else {
    return vector_kernels().recurrence_f64;
  }
}

/// Blocks of columns.
[[nodiscard]] inline std::int64_t column_blocks(std::int64_t columns) {
  return (columns + RecurrenceColumns - 1) / RecurrenceColumns;
}

/// Steps in chunks, of about the square root of their number where no length is given.
struct Chunks {
  std::int64_t steps;
  std::int64_t length;
  std::int64_t count;

  explicit Chunks(std::int64_t all)
      : steps(all),
        length(std::max<std::int64_t>(
            1, static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(all)))))),
        count((all + length - 1) / length) {}
  Chunks(std::int64_t all, std::int64_t each)
      : steps(all), length(each), count((all + each - 1) / each) {}
  [[nodiscard]] std::int64_t first(std::int64_t k) const { return k * length; }
  [[nodiscard]] std::int64_t size(std::int64_t k) const {
    return std::min(length, steps - first(k));
  }
};

/// Items whose sums have one target, dealt out to so few parts that each can have sums of its own.
struct Parts {
  static constexpr std::int64_t Most = 16;
  std::int64_t items;
  std::int64_t count;

  explicit Parts(std::int64_t all) : items(all), count(std::min(all, Most)) {}
  [[nodiscard]] std::int64_t begin(std::int64_t part) const { return part * items / count; }
  [[nodiscard]] std::int64_t end(std::int64_t part) const { return begin(part + 1); }
};

}  // namespace ricci::cpu
