// Adding slices or elements to the places indices name. Every place of the result belongs to one
// tile, and what is added to it comes in the order of the operand: no atomics, the same bits on any
// number of threads.
#include <algorithm>
#include <array>
#include <cstring>

#include "backend/cpu/host/element.h"
#include "backend/cpu/host/indices.h"
#include "backend/cpu/host/kernels.h"
#include "backend/cpu/host/simd.h"

namespace ricci::cpu {
namespace {

// out[c] = Σ_i rows[order[i]][c], starting from 0.
template <class T>
void add_rows(T* out, const T* rows, std::int64_t row_size, const std::int64_t* order,
              std::int64_t count, std::int64_t width) {
  const T* first = rows + order[0] * row_size;
  const T* second = rows + order[1] * row_size;
  vectorised([&]() RICCI_INLINE {
    for (std::int64_t c = 0; c < width; ++c) {
      out[c] = add_wrapping(add_wrapping(T{}, first[c]), second[c]);
    }
    for (std::int64_t i = 2; i < count; ++i) {
      const T* row = rows + order[i] * row_size;
      for (std::int64_t c = 0; c < width; ++c) out[c] = add_wrapping(out[c], row[c]);
    }
  });
}

// out[c] = Σ_i rows[order[i]][c] for `count` rows. Long sums are made of blocks.
template <class T>
void sum_rows(T* out, const T* rows, std::int64_t row_size, const std::int64_t* order,
              std::int64_t count, std::int64_t width) {
  constexpr std::int64_t Columns = 64;
  constexpr std::int64_t Block = 64;
  using N = Number<T>;
  if (count == 1) {
    const T* row = rows + order[0] * row_size;
    // A sum starts from 0, which makes 0.0 of -0.0.
    for (std::int64_t c = 0; c < width; ++c) {
      out[c] = element_cast<T>(add_wrapping(N{}, element_cast<N>(row[c])));
    }
    return;
  }
  // A few rows of the numbers they are summed in are added where the result is.
  if constexpr (std::is_same_v<N, T>) {
    if (count <= Block) return add_rows(out, rows, row_size, order, count, width);
  }
  for (std::int64_t at = 0; at < width; at += Columns) {
    const std::int64_t columns = std::min(Columns, width - at);
    std::array<N, Columns> total{};
    for (std::int64_t first = 0; first < count; first += Block) {
      std::array<N, Columns> part{};
      const std::int64_t last = std::min(count, first + Block);
      vectorised([&]() RICCI_INLINE {
        for (std::int64_t i = first; i < last; ++i) {
          const T* row = rows + order[i] * row_size + at;
          N* sums = part.data();
          for (std::int64_t c = 0; c < columns; ++c) {
            sums[c] = add_wrapping(sums[c], element_cast<N>(row[c]));
          }
        }
      });
      if (first == 0) {
        total = part;
      } else {
        for (std::size_t c = 0; c < Columns; ++c) total[c] = add_wrapping(total[c], part[c]);
      }
    }
    for (std::int64_t c = 0; c < columns; ++c) {
      out[at + c] = element_cast<T>(total[static_cast<std::size_t>(c)]);
    }
  }
}

// What a result takes in the numbers it is summed in.
std::int64_t wide_bytes(const ArrayView& result) {
  return with_element_type(result.dtype, [&]<class T>() -> std::int64_t {
    return count_of(result.dims) * static_cast<std::int64_t>(sizeof(Wide<T>));
  });
}

// out[o, r, t] = Σ_{k: indices[k] = r} updates[o, k, t]: the updates of a row are found by a
// counting sort, then every row of the result is written once, summed or zero.
class ScatterRows {
  // Rows of a few elements: to find what is added to each costs more than to add it.
  static constexpr std::int64_t Few = 8;
  static constexpr std::int64_t RowsAhead = 8;

 public:
  ScatterRows(const HostArguments& call, Scratch& scratch)
      : call_(call),
        split_(call.as<loop::Scatter>().out),
        empty_(count_of(call.results[0].dims) == 0),
        count_(call.as<loop::Scatter>().added),
        narrow_(!empty_ && split_.inner <= Few),
        repeated_(narrow_ && is_one_element(call.operands[0])),
        parts_(narrow_ ? parts_of_slab() : 1),
        indices_(call, 1, scratch),
        starts_(scratch.take<std::int64_t>(empty_ || narrow_ ? 0 : split_.size + 1)),
        order_(scratch.take<std::int64_t>(narrow_ ? 0 : count_)),
        sums_(scratch.take<std::byte>(narrow_ ? wide_bytes(call.results[0]) * parts_ : 0)) {
    if (!repeated_) updates_.emplace(call, 0, scratch);
  }

  void run() const {
    indices_.read(split_.size);
    if (empty_) return;
    if (updates_) updates_->pack(call_.pool);
    if (!narrow_) sort_by_row();
    with_element_type(call_.results[0].dtype, [&]<class T>() {
      if constexpr (!std::is_same_v<T, bool>) narrow_ ? write_slabs<T>() : write_rows<T>();
    });
  }

 private:
  static bool is_one_element(const ArrayView& v) {
    for (std::size_t a = 0; a < v.dims.size(); ++a) {
      if (v.dims[a] != 1 && v.strides[a] != 0) return false;
    }
    return true;
  }

  // Into how many parts the updates of an o are cut, each with sums of its own: many, where there
  // are few o, but the sums stay few beside the updates.
  [[nodiscard]] std::int64_t parts_of_slab() const {
    constexpr std::int64_t MostParts = 8;
    constexpr std::int64_t UpdatesPerPart = 1 << 14;
    constexpr std::int64_t UpdatesPerSum = 2;
    const std::int64_t wanted = MostParts / std::max<std::int64_t>(split_.outer, 1);
    const std::int64_t worth =
        std::min(count_ * split_.inner / UpdatesPerPart, count_ / (UpdatesPerSum * split_.size));
    return std::clamp<std::int64_t>(worth, 1, std::max<std::int64_t>(wanted, 1));
  }

  // All rows of an o at once, in numbers wide enough for any number of updates; then the parts of
  // each are added up in their order.
  template <class T>
  void write_slabs() const {
    using N = Wide<T>;
    const std::int64_t size = split_.size * split_.inner;
    const std::int64_t all = split_.outer * size;
    auto* const sums = reinterpret_cast<N*>(sums_);
    const std::int64_t each = (count_ + parts_ - 1) / parts_;
    parallel_for(call_.pool, split_.outer * parts_, grain_for(size + each * split_.inner),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; ++i) {
                     const std::int64_t part = i % parts_;
                     const std::int64_t o = i / parts_;
                     N* const own = sums + part * all + o * size;
                     std::fill_n(own, size, N{});
                     add_slab<N, T>(own, o, std::min(count_, part * each),
                                    std::min(count_, (part + 1) * each));
                     if (parts_ == 1) write_numbers(call_.results[0], o * size, size, own);
                   }
                 });
    if (parts_ == 1) return;
    parallel_for(call_.pool, all, grain_for(parts_), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t part = 1; part < parts_; ++part) {
        const N* const more = sums + part * all;
        for (std::int64_t i = begin; i < end; ++i) sums[i] = add_wrapping(sums[i], more[i]);
      }
      write_numbers(call_.results[0], begin, end - begin, sums + begin);
    });
  }

  // The updates [begin, end) of an o.
  template <class N, class T>
  void add_slab(N* sums, std::int64_t o, std::int64_t begin, std::int64_t end) const {
    const std::int64_t width = split_.inner;
    const std::int64_t* const indices = indices_.data();
    if (begin == end) return;
    if (repeated_) {
      const auto update = element_cast<N>(*call_.operands[0].as<T>());
      for (std::int64_t k = begin; k < end; ++k) {
        N* const row = sums + indices[k] * width;
        for (std::int64_t t = 0; t < width; ++t) row[t] = add_wrapping(row[t], update);
      }
      return;
    }
    const T* const updates = updates_->template as<T>() + o * count_ * width;
    if (width == 1) {
      for (std::int64_t k = begin; k < end; ++k) {
        N& sum = sums[indices[k]];
        sum = add_wrapping(sum, element_cast<N>(updates[k]));
      }
      return;
    }
    for (std::int64_t k = begin; k < end; ++k) {
      N* const row = sums + indices[k] * width;
      for (std::int64_t t = 0; t < width; ++t) {
        row[t] = add_wrapping(row[t], element_cast<N>(updates[k * width + t]));
      }
    }
  }

  // order_[starts_[r] … starts_[r + 1]) are the k with indices[k] = r, ascending.
  void sort_by_row() const {
    const std::int64_t* indices = indices_.data();
    std::fill_n(starts_, split_.size + 1, 0);
    for (std::int64_t k = 0; k < count_; ++k) ++starts_[indices[k] + 1];
    for (std::int64_t r = 0; r < split_.size; ++r) starts_[r + 1] += starts_[r];
    for (std::int64_t k = 0; k < count_; ++k) order_[starts_[indices[k]]++] = k;
    for (std::int64_t r = split_.size; r > 0; --r) starts_[r] = starts_[r - 1];
    if (split_.size > 0) starts_[0] = 0;
  }

  template <class T>
  void write_rows() const {
    constexpr std::int64_t LongestPiece = 1 << 14;
    const std::int64_t rows = split_.outer * split_.size;
    const std::int64_t piece = std::min(split_.inner, LongestPiece);
    if (piece == 0) return;
    const std::int64_t pieces = (split_.inner + piece - 1) / piece;
    parallel_for(
        call_.pool, rows * pieces, grain_for(piece),
        [&](std::int64_t begin, std::int64_t end) { write_pieces<T>(begin, end, piece, pieces); });
  }

  // Where most rows get nothing, a tile is filled with zeros in one go and its sums are written
  // over them while they are in the cache.
  template <class T>
  void write_pieces(std::int64_t begin, std::int64_t end, std::int64_t piece,
                    std::int64_t pieces) const {
    const auto first_of = [&](std::int64_t i) {
      return i / pieces * split_.inner + i % pieces * piece;
    };
    T* const out = call_.results[0].as<T>();
    const bool few = 2 * count_ < split_.size;
    if (few) zero(out + first_of(begin), out + first_of(end));
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = i / pieces;
      const std::int64_t first = i % pieces * piece;
      const std::int64_t r = row % split_.size;
      const std::int64_t added = starts_[r + 1] - starts_[r];
      const std::int64_t length = std::min(piece, split_.inner - first);
      T* const to = out + first_of(i);
      if (added > 0) {
        const T* updates =
            updates_->template as<T>() + row / split_.size * count_ * split_.inner + first;
        const std::int64_t ahead = std::min(count_, starts_[r + 1] + RowsAhead);
        for (std::int64_t k = starts_[r] + RowsAhead; k < ahead; ++k) {
          prefetch(updates + order_[k] * split_.inner, length);
        }
        sum_rows(to, updates, split_.inner, order_ + starts_[r], added, length);
      } else if (!few) {
        zero(to, to + length);
      }
    }
  }

  // Rows that are added soon lie anywhere: what is asked for now is there by then.
  template <class T>
  static void prefetch(const T* row, std::int64_t length) {
    constexpr std::int64_t Line = 64;
    constexpr std::int64_t MostBytes = 8 * Line;
    const auto* bytes = reinterpret_cast<const char*>(row);
    const std::int64_t count = std::min(length * static_cast<std::int64_t>(sizeof(T)), MostBytes);
    for (std::int64_t at = 0; at < count; at += Line) __builtin_prefetch(bytes + at);
  }

  template <class T>
  static void zero(T* begin, T* end) {
    std::memset(static_cast<void*>(begin), 0, static_cast<std::size_t>(end - begin) * sizeof(T));
  }

  const HostArguments& call_;
  AxisSplit split_;
  bool empty_;  ///< rows without elements, of which there may be any number
  std::int64_t count_;
  bool narrow_;
  bool repeated_;  ///< narrow, and all updates are one element
  std::int64_t parts_;
  IndexOperand indices_;
  std::optional<DenseOperand> updates_;
  std::int64_t* starts_;
  std::int64_t* order_;
  std::byte* sums_;
};

// out[o, indices[o, k, t], t] += updates[o, k, t], summed in wide numbers: nobody knows how many
// elements meet. A tile owns some columns t of an o.
class ScatterEach {
 public:
  ScatterEach(const HostArguments& call, Scratch& scratch)
      : call_(call),
        to_(call.as<loop::Scatter>().out),
        from_{to_.outer, call.as<loop::Scatter>().added, to_.inner},
        indices_(call, 1, scratch),
        updates_(call, 0, scratch),
        sums_(scratch.take<std::byte>(wide_bytes(call.results[0]))) {}

  void run() const {
    indices_.read(to_.size);
    if (count_of(call_.results[0].dims) == 0) return;
    updates_.pack(call_.pool);
    with_element_type(call_.results[0].dtype, [&]<class T>() {
      if constexpr (!std::is_same_v<T, bool>) scatter<T>();
    });
  }

 private:
  template <class T>
  void scatter() const {
    using N = Wide<T>;
    constexpr std::int64_t Columns = 64;
    if (to_.inner == 1 && to_.size <= LongestLine) return scatter_lines<T>();
    auto* sums = reinterpret_cast<N*>(sums_);
    if (to_.inner == 1) return scatter_long_lines<T>(sums);
    const std::int64_t blocks = (to_.inner + Columns - 1) / Columns;
    parallel_for(call_.pool, to_.outer * blocks, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t o = i / blocks;
        const std::int64_t first = i % blocks * Columns;
        const std::int64_t last = std::min(to_.inner, first + Columns);
        N* slab = sums + o * to_.size * to_.inner;
        for (std::int64_t r = 0; r < to_.size; ++r) {
          std::fill(slab + r * to_.inner + first, slab + r * to_.inner + last, N{});
        }
        for (std::int64_t k = 0; k < from_.size; ++k) {
          const std::int64_t row = (o * from_.size + k) * from_.inner;
          for (std::int64_t t = first; t < last; ++t) {
            N& sum = slab[indices_.data()[row + t] * to_.inner + t];
            sum = add_wrapping(sum, element_cast<N>(updates_.as<T>()[row + t]));
          }
        }
      }
    });
    parallel_for(call_.pool, count_of(call_.results[0].dims), grain_for(1),
                 [&](std::int64_t begin, std::int64_t end) {
                   write_numbers(call_.results[0], begin, end - begin, sums + begin);
                 });
  }

  // Along the last axis: the sums of a line stay in the nearest cache.
  template <class T>
  void scatter_lines() const {
    using N = Wide<T>;
    T* const out = call_.results[0].as<T>();
    parallel_for(call_.pool, to_.outer, grain_for(to_.size + from_.size),
                 [&](std::int64_t begin, std::int64_t end) {
                   std::array<N, LongestLine> sums;
                   vectorised([&]() RICCI_INLINE {
                     for (std::int64_t o = begin; o < end; ++o) {
                       add_line(updates_.as<T>(), o, sums.data());
                       for (std::int64_t r = 0; r < to_.size; ++r) {
                         out[o * to_.size + r] = element_cast<T>(sums[static_cast<std::size_t>(r)]);
                       }
                     }
                   });
                 });
  }

  template <class T, class N>
  void scatter_long_lines(N* sums) const {
    parallel_for(call_.pool, to_.outer, grain_for(to_.size + from_.size),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t o = begin; o < end; ++o) {
                     add_line(updates_.as<T>(), o, sums + o * to_.size);
                   }
                   write_numbers(call_.results[0], begin * to_.size, (end - begin) * to_.size,
                                 sums + begin * to_.size);
                 });
  }

  template <class T, class N>
  RICCI_INLINE void add_line(const T* updates, std::int64_t o, N* sums) const {
    for (std::int64_t r = 0; r < to_.size; ++r) sums[r] = N{};
    for (std::int64_t k = o * from_.size; k < (o + 1) * from_.size; ++k) {
      N& sum = sums[indices_.data()[k]];
      sum = add_wrapping(sum, element_cast<N>(updates[k]));
    }
  }

  static constexpr std::int64_t LongestLine = 2048;
  const HostArguments& call_;
  AxisSplit to_;
  AxisSplit from_;
  IndexOperand indices_;
  DenseOperand updates_;
  std::byte* sums_;
};

}  // namespace

HostKernel scatter_kernel() noexcept { return kernel_of<ScatterRows>(); }
HostKernel scatter_each_kernel() noexcept { return kernel_of<ScatterEach>(); }

}  // namespace ricci::cpu
