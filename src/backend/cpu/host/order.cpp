// Sorting, the largest few, and where the extremes are.
#include <array>
#include <cmath>

#include "backend/cpu/host/kernels.h"
#include "backend/cpu/host/scratch.h"
#include "backend/cpu/host/shared_sort.h"
#include "backend/cpu/host/simd.h"
#include "backend/cpu/host/sort_keys.h"

namespace ricci::cpu {
namespace {

// Rows along an axis, sorted whole or in their first elements only. A tile sorts some rows in room
// of its own; few long rows are sorted one after the other, each by all threads.
class OrderRows {
 public:
  OrderRows(const HostArguments& call, Scratch& scratch)
      : call_(call),
        descending_(call.as<loop::Sort>().descending),
        split_(call.as<loop::Sort>().x),
        kept_(call.as<loop::Sort>().kept),
        partial_(4 * kept_ < split_.size),
        shared_(!partial_ && split_.size >= LongRow && split_.size <= 0xFFFFFFFF &&
                split_.outer * split_.inner < FewRows),
        shares_(split_.size),
        rows_(split_.outer * split_.inner),
        room_(partial_ ? least_items_room(kept_) : 2 * split_.size),
        x_(call, 0, scratch) {
    const std::int64_t item = size_of(call.operands[0].dtype) <= 4 ? 8 : 16;
    items_ = scratch.take<std::byte>((shared_ ? 1 : rows_.tiles) * room_ * item);
    if (shared_) counts_ = scratch.take<SharedSort::Counts>(shares_.parts());
  }

  void run() const {
    x_.pack(call_.pool);
    with_element_type(call_.operands[0].dtype, [&]<class T>() {
      if constexpr (!ricci::detail::is_complex_type<T>) {
        check_internal(!has_narrow_key<T> || split_.size < (std::int64_t{1} << 32),
                       "a row is too long to be sorted");
        auto* items = reinterpret_cast<ItemOf<T>*>(items_);
        if (shared_) {
          for (std::int64_t row = 0; row < rows_.items; ++row) order_together<T>(row, items);
        } else {
          rows_.run(call_.pool, [&](std::int64_t row, std::int64_t tile) {
            order_row<T>(row, items + tile * room_);
          });
        }
      }
    });
  }

 private:
  static constexpr std::int64_t LongRow = 1 << 16;
  static constexpr std::int64_t FewRows = 16;

  [[nodiscard]] std::int64_t row_start(std::int64_t row, std::int64_t size) const {
    return row / split_.inner * size * split_.inner + row % split_.inner;
  }

  template <class T>
  void order_row(std::int64_t row, ItemOf<T>* room) const {
    const T* x = x_.as<T>() + row_start(row, split_.size);
    const auto item = [&](std::int64_t i) {
      return item_of(load_as<T>(x + i * split_.inner), i, descending_);
    };
    ItemOf<T>* sorted = room;
    if (partial_) {
      least_items(room, split_.size, kept_, item, [&](std::int64_t begin, std::uint64_t key) {
        return split_.inner == 1 ? next_below(x, begin, key) : begin;
      });
    } else {
      for (std::int64_t i = 0; i < split_.size; ++i) room[i] = item(i);
      sorted = sort_items(room, room + split_.size, static_cast<std::size_t>(split_.size));
    }
    write_row<T>(row, sorted, 0, kept_);
  }

  template <class T>
  void order_together(std::int64_t row, ItemOf<T>* room) const {
    const T* x = x_.as<T>() + row_start(row, split_.size);
    call_.pool.run(shares_.parts(), [&](std::int64_t part) {
      for (std::int64_t i = shares_.begin(part); i < shares_.end(part); ++i) {
        room[i] = item_of(load_as<T>(x + i * split_.inner), i, descending_);
      }
    });
    const ItemOf<T>* sorted = shares_.run(call_.pool, room, room + split_.size, counts_);
    call_.pool.run(shares_.parts(), [&](std::int64_t part) {
      write_row<T>(row, sorted, std::min(kept_, shares_.begin(part)),
                   std::min(kept_, shares_.end(part)));
    });
  }

  // Where the first run of a contiguous row from `begin` on starts that has a key below this one.
  template <class T>
  [[nodiscard]] std::int64_t next_below(const T* x, std::int64_t begin, std::uint64_t key) const {
    std::int64_t found = 0;
    vectorised([&, size = split_.size, descending = descending_,
                limit = static_cast<KeyOf<T>>(key)]() RICCI_INLINE {
      std::int64_t i = begin;
      for (; i + LeastItemsRun <= size; i += LeastItemsRun) {
        KeyOf<T> any = 0;
        for (std::int64_t j = 0; j < LeastItemsRun; ++j) {
          const KeyOf<T> here = ordered_key(load_as<T>(x + i + j), descending);
          any |= static_cast<KeyOf<T>>(here < limit ? 1 : 0);
        }
        if (any != 0) break;
      }
      found = i;
    });
    return found;
  }

  // Elements [begin, end) of a row's results.
  template <class T>
  void write_row(std::int64_t row, const ItemOf<T>* sorted, std::int64_t begin,
                 std::int64_t end) const {
    const T* x = x_.as<T>() + row_start(row, split_.size);
    const std::int64_t first = row_start(row, kept_);
    if (call_.results[0].data != nullptr) {
      T* values = call_.results[0].as<T>() + first;
      for (std::int64_t i = begin; i < end; ++i) {
        values[i * split_.inner] = x[position_of(sorted[i]) * split_.inner];
      }
    }
    if (call_.results[1].data == nullptr) return;
    with_element_type(call_.results[1].dtype, [&]<class I>() {
      I* indices = call_.results[1].as<I>() + first;
      for (std::int64_t i = begin; i < end; ++i) {
        indices[i * split_.inner] = element_cast<I>(position_of(sorted[i]));
      }
    });
  }

  const HostArguments& call_;
  bool descending_;
  AxisSplit split_;
  std::int64_t kept_;
  bool partial_;
  bool shared_;
  SharedSort shares_;
  Slots rows_;
  std::int64_t room_;
  DenseOperand x_;
  std::byte* items_;
  SharedSort::Counts* counts_ = nullptr;
};

// The first position of the extreme of a contiguous row: first what it is, then where.
template <class T>
std::int64_t extreme_position(const T* x, std::int64_t count, bool largest) {
  using N = std::conditional_t<is_any_float<T>, Number<T>, T>;
  constexpr std::int64_t Lanes = 16;
  std::array<N, Lanes> best;
  best.fill(load_as<N>(x));
  std::array<N, Lanes> nans{};
  const std::int64_t whole = count / Lanes * Lanes;
  const auto better = [largest](N a, N b) RICCI_INLINE { return largest ? a > b : a < b; };
  vectorised([&]() RICCI_INLINE {
    for (std::int64_t i = 0; i < whole; i += Lanes) {
      for (std::int64_t l = 0; l < Lanes; ++l) {
        const N v = load_as<N>(x + i + l);
        N& b = best[static_cast<std::size_t>(l)];
        b = better(v, b) ? v : b;
        if constexpr (std::is_floating_point_v<N>) {
          N& n = nans[static_cast<std::size_t>(l)];
          n = v != v ? N(1) : n;
        }
      }
    }
  });
  N extreme = best[0];
  bool has_nan = std::ranges::any_of(nans, [](N n) { return n != N(0); });
  for (const N b : best) extreme = better(b, extreme) ? b : extreme;
  for (std::int64_t i = whole; i < count; ++i) {
    const N v = load_as<N>(x + i);
    has_nan |= v != v;
    extreme = better(v, extreme) ? v : extreme;
  }
  for (std::int64_t i = 0;; ++i) {
    const N v = load_as<N>(x + i);
    if (has_nan ? v != v : v == extreme) return i;
  }
}

// The same of few elements, which are looked at one after the other.
constexpr std::int64_t ShortRow = 16;
template <class T>
std::int64_t first_extreme(const T* x, std::int64_t count, bool largest) {
  using N = std::conditional_t<is_any_float<T>, Number<T>, T>;
  N best = load_as<N>(x);
  std::int64_t where = 0;
  for (std::int64_t i = 1; i < count; ++i) {
    const N v = load_as<N>(x + i);
    // Bitwise, so that the loop has no branches.
    const bool better = (best == best) & ((v != v) | (largest ? v > best : v < best));
    best = better ? v : best;
    where = better ? i : where;
  }
  return where;
}

class ArgReduce {
 public:
  ArgReduce(const HostArguments& call, Scratch& scratch) : call_(call), x_(call, 0, scratch) {}

  void run() const {
    const AxisSplit s = call_.as<loop::ArgReduce>().x;
    const bool largest = call_.as<loop::ArgReduce>().largest;
    x_.pack(call_.pool);
    with_element_type(call_.operands[0].dtype, [&]<class T>() {
      if constexpr (!ricci::detail::is_complex_type<T>) {
        parallel_for(call_.pool, s.outer * s.inner, grain_for(s.size),
                     [&](std::int64_t begin, std::int64_t end) {
                       if (s.inner == 1) {
                         search_rows<T>(s.size, largest, begin, end);
                       } else {
                         search_columns<T>(s, largest, begin, end);
                       }
                     });
      }
    });
  }

 private:
  template <class T>
  void search_rows(std::int64_t size, bool largest, std::int64_t begin, std::int64_t end) const {
    constexpr std::int64_t Rows = 64;
    std::array<std::int64_t, Rows> where;
    for (std::int64_t first = begin; first < end; first += Rows) {
      const std::int64_t rows = std::min(Rows, end - first);
      const T* x = x_.as<T>() + first * size;
      for (std::int64_t r = 0; r < rows; ++r, x += size) {
        where[static_cast<std::size_t>(r)] =
            size <= ShortRow ? first_extreme(x, size, largest) : extreme_position(x, size, largest);
      }
      write_numbers(call_.results[0], first, rows, where.data());
    }
  }

  // Rows [begin, end), which lie beside each other: as many at a time as one slab holds.
  template <class T>
  void search_columns(const AxisSplit& s, bool largest, std::int64_t begin,
                      std::int64_t end) const {
    using N = std::conditional_t<is_any_float<T>, Number<T>, T>;
    constexpr std::int64_t Columns = 64;
    while (begin < end) {
      const std::int64_t column = begin % s.inner;
      const std::int64_t columns = std::min({end - begin, s.inner - column, Columns});
      const T* x = x_.as<T>() + begin / s.inner * s.size * s.inner + column;
      std::array<N, Columns> best;
      std::array<std::int64_t, Columns> where{};
      for (std::int64_t c = 0; c < columns; ++c)
        best[static_cast<std::size_t>(c)] = load_as<N>(x + c);
      for (std::int64_t i = 1; i < s.size; ++i) {
        for (std::int64_t c = 0; c < columns; ++c) {
          const N v = load_as<N>(x + i * s.inner + c);
          N& b = best[static_cast<std::size_t>(c)];
          const bool better = b == b && (v != v || (largest ? v > b : v < b));
          b = better ? v : b;
          std::int64_t& w = where[static_cast<std::size_t>(c)];
          w = better ? i : w;
        }
      }
      write_numbers(call_.results[0], begin, columns, where.data());
      begin += columns;
    }
  }

  const HostArguments& call_;
  DenseOperand x_;
};

}  // namespace

HostKernel sort_kernel() noexcept { return kernel_of<OrderRows>(); }
HostKernel arg_reduce_kernel() noexcept { return kernel_of<ArgReduce>(); }

}  // namespace ricci::cpu
