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

  template <CumulativeKind Kind, class T>
  void walk(const AxisSplit& s, std::int64_t top, std::int64_t columns, Wide<T>* totals) const {
    using N = Wide<T>;
    const T* x = x_.as<T>() + top;
    T* out = call_.results[0].as<T>() + top;
    const std::int64_t step = role_.from_end ? -s.inner : s.inner;
    std::int64_t row = role_.from_end ? (s.size - 1) * s.inner : 0;
    const bool exclusive = role_.exclusive;
    if (columns == 1) {
      N total = totals[0];
      for (std::int64_t i = 0; i < s.size; ++i, row += step) {
        const N after = combine<Kind>(total, load_as<N>(x + row));
        out[row] = element_cast<T>(exclusive ? total : after);
        total = after;
      }
      return;
    }

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
