// Running totals along an axis, kept in wide numbers.
#include <array>
#include <cmath>
#include <limits>

#include "backend/cpu/host/element.h"
#include "backend/cpu/host/extremes.h"
#include "backend/cpu/host/kernels.h"
#include "backend/cpu/host/scratch.h"
#include "backend/cpu/host/simd.h"
#include "op/kinds.h"

namespace ricci::cpu {
namespace {

template <CumulativeKind Kind, class N>
RICCI_INLINE inline N combine(N total, N x) {
  switch (Kind) {  // known when it is compiled
    case CumulativeKind::Cumsum: return add_wrapping(total, x);
    case CumulativeKind::Cumprod: return mul_wrapping(total, x);
    case CumulativeKind::Cummax: return more_extreme(total, x, true);
    case CumulativeKind::Cummin: break;
  }
  return more_extreme(total, x, false);
}

template <CumulativeKind Kind, class T>
Wide<T> total_of_nothing() {
  switch (Kind) {
    case CumulativeKind::Cumsum: return Wide<T>(0);
    case CumulativeKind::Cumprod: return Wide<T>(1);
    case CumulativeKind::Cummax: return extreme_of_nothing<T>(true);
    case CumulativeKind::Cummin: break;
  }
  return extreme_of_nothing<T>(false);
}

// Calls `f.template operator()<Kind>()`.
template <class F>
void with_kind(CumulativeKind kind, const F& f) {
  switch (kind) {
    case CumulativeKind::Cumsum: return f.template operator()<CumulativeKind::Cumsum>();
    case CumulativeKind::Cumprod: return f.template operator()<CumulativeKind::Cumprod>();
    case CumulativeKind::Cummax: return f.template operator()<CumulativeKind::Cummax>();
    case CumulativeKind::Cummin: return f.template operator()<CumulativeKind::Cummin>();
  }
}

class Cumulate {
 public:
  Cumulate(const HostArguments& call, Scratch& scratch)
      : call_(call), role_(call.as<loop::Cumulative>()), x_(call, 0, scratch) {}

  void run() const {
    x_.pack(call_.pool);
    with_element_type(call_.operands[0].dtype, [&]<class T>() {
      with_kind(role_.kind, [&]<CumulativeKind Kind>() {
        constexpr bool orders = pick_of(Kind) != Pick::None;
        if constexpr (!(orders && ricci::detail::is_complex_type<T>)) cumulate<Kind, T>();
      });
    });
  }

 private:
  // A tile owns some columns of an outer index and walks down the axis with their totals.
  template <CumulativeKind Kind, class T>
  void cumulate() const {
    using N = Wide<T>;
    constexpr std::int64_t Columns = 64;
    const AxisSplit s = role_.x;
    if (s.inner == 1) return cumulate_rows<Kind, T>();
    const std::int64_t blocks = (s.inner + Columns - 1) / Columns;
    const std::int64_t cost = s.size * std::min(s.inner, Columns);
    parallel_for(call_.pool, s.outer * blocks, grain_for(cost),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; ++i) {
                     const std::int64_t first = i % blocks * Columns;
                     const std::int64_t columns = std::min(Columns, s.inner - first);
                     std::array<N, Columns> totals;
                     totals.fill(total_of_nothing<Kind, T>());
                     const std::int64_t top = i / blocks * s.size * s.inner + first;
                     walk<Kind, T>(s, top, columns, totals.data());
                   }
                 });
  }

  // Every row is a chain of sums, each of which waits for the one before it: several rows at a time
  // keep the machine busy. They lie a power of two apart often: more would not fit into a set of
  // the cache.
  template <CumulativeKind Kind, class T>
  void cumulate_rows() const {
    constexpr std::int64_t Together = 4;
    const std::int64_t size = role_.x.size;
    parallel_for(call_.pool, (role_.x.outer + Together - 1) / Together, grain_for(Together * size),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; ++i) {
                     const std::int64_t row = i * Together;
                     const std::int64_t rows = std::min(Together, role_.x.outer - row);
                     if (rows == Together) {
                       walk_rows<Kind, T, Together>(row * size);
                     } else {
                       for (std::int64_t r = row; r < row + rows; ++r)
                         walk_rows<Kind, T, 1>(r * size);
                     }
                   }
                 });
  }

  template <CumulativeKind Kind, class T, std::int64_t Rows>
  void walk_rows(std::int64_t first) const {
    using N = Wide<T>;
    const std::int64_t size = role_.x.size;
    const T* x = x_.as<T>() + first;
    T* out = call_.results[0].as<T>() + first;
    const bool exclusive = role_.exclusive;
    const bool from_end = role_.from_end;
    std::array<N, static_cast<std::size_t>(Rows)> totals;
    totals.fill(total_of_nothing<Kind, T>());
    for (std::int64_t i = 0; i < size; ++i) {
      const std::int64_t at = from_end ? size - 1 - i : i;
      for (std::int64_t r = 0; r < Rows; ++r) {
        N& total = totals[static_cast<std::size_t>(r)];
        const N before = total;
        total = combine<Kind>(before, load_as<N>(x + r * size + at));
        out[r * size + at] = element_cast<T>(exclusive ? before : total);
      }
    }
  }

  template <CumulativeKind Kind, class T>
  void walk(const AxisSplit& s, std::int64_t top, std::int64_t columns, Wide<T>* totals) const {
    using N = Wide<T>;
    const T* x = x_.as<T>() + top;
    T* out = call_.results[0].as<T>() + top;
    const std::int64_t step = role_.from_end ? -s.inner : s.inner;
    std::int64_t row = role_.from_end ? (s.size - 1) * s.inner : 0;
    const bool exclusive = role_.exclusive;
    vectorised([&]() RICCI_INLINE {
      for (std::int64_t i = 0; i < s.size; ++i, row += step) {
        for (std::int64_t c = 0; c < columns; ++c) {
          const N before = totals[c];
          const N after = combine<Kind>(before, load_as<N>(x + row + c));
          totals[c] = after;
          out[row + c] = element_cast<T>(exclusive ? before : after);
        }
      }
    });
  }

  const HostArguments& call_;
  const loop::Cumulative& role_;
  DenseOperand x_;
};

}  // namespace

HostKernel cumulative_kernel() noexcept { return kernel_of<Cumulate>(); }

}  // namespace ricci::cpu
