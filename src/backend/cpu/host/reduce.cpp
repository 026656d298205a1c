// Reductions of any kind along any axes: the operand is brought into rows of what is combined, and
// every row is combined in wide numbers.
#include "ricci/op/reduce.h"

#include <algorithm>
#include <cmath>

#include "backend/cpu/host/extremes.h"
#include "backend/cpu/host/kernels.h"
#include "backend/cpu/host/scratch.h"
#include "op/kinds.h"

namespace ricci::cpu {
namespace {

// Kept axes first, then the reduced ones, both in their order.
OwnedView rows_of(const HostCall& call) {
  const auto& axes = call.op.as<op::Reduce>()->axes;
  const std::size_t rank = call.operands[0].dims.size();
  std::array<std::size_t, OwnedView::MostAxes> perm{};
  std::size_t next = 0;
  const auto is_reduced = [&](std::size_t a) {
    return std::ranges::any_of(axes, [&](Axis x) { return x.index() == a; });
  };
  for (const bool reduced : {false, true}) {
    for (std::size_t a = 0; a < rank; ++a) {
      if (is_reduced(a) == reduced) perm[next++] = a;
    }
  }
  return OwnedView(call.operands[0]).permute([&](std::size_t k) { return perm[k]; });
}

double log_sum_exp_of(const double* xs, std::int64_t count) {
  double m = extreme_of_nothing<double>(true);
  for (std::int64_t i = 0; i < count; ++i) m = more_extreme(m, xs[i], true);
  if (std::isnan(m) || std::isinf(m)) return m;
  double total = 0;
  for (std::int64_t i = 0; i < count; ++i) total += std::exp(xs[i] - m);
  return m + std::log(total);
}

template <class N, class F>
N fold(N start, const N* xs, std::int64_t count, const F& f) {
  for (std::int64_t i = 0; i < count; ++i) start = f(start, xs[i]);
  return start;
}

// What `start` is for max and min depends on the dtype, so it is handed in.
template <class N>
N combine(ReduceKind kind, const N* xs, std::int64_t count, N extreme_start) {
  constexpr bool IsComplex = ricci::detail::is_complex_type<N>;
  switch (kind) {
    case ReduceKind::Sum: return fold(N{}, xs, count, add_wrapping<N>);
    case ReduceKind::Prod: return fold(N(1), xs, count, mul_wrapping<N>);
    case ReduceKind::Mean:
      if constexpr (!std::is_same_v<N, std::int64_t>) {
        return fold(N{}, xs, count, add_wrapping<N>) / static_cast<double>(count);
      }
      break;
    case ReduceKind::Max:
    case ReduceKind::Min:
      if constexpr (!IsComplex) {
        const bool largest = pick_of(kind) == Pick::Largest;
        return fold(extreme_start, xs, count,
                    [&](N best, N x) { return more_extreme(best, x, largest); });
      }
      break;
    case ReduceKind::Any: return N(std::any_of(xs, xs + count, [](N x) { return x != N(0); }));
    case ReduceKind::All: return N(std::all_of(xs, xs + count, [](N x) { return x != N(0); }));
    case ReduceKind::LogSumExp:
      if constexpr (std::is_same_v<N, double>) return log_sum_exp_of(xs, count);
      break;
  }
  throw InternalError("this reduction is not defined for these numbers");
}

template <class N>
class Reduce {
 public:
  Reduce(const HostCall& call, Scratch& scratch)
      : call_(call), rows_(rows_of(call)), x_(rows_.view(), scratch) {}

  void run() const {
    x_.pack(call_.pool);
    const ReduceKind kind = call_.op.as<op::Reduce>()->op;
    const std::int64_t rows = count_of(call_.results[0].dims);
    const std::int64_t width = row_width();
    const N start = extreme_start(pick_of(kind) == Pick::Largest);
    parallel_for(call_.pool, rows, grain_for(width), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const N value = combine(kind, x_.data() + i * width, width, start);
        write_numbers(call_.results[0], i, 1, &value);
      }
    });
  }

 private:
  [[nodiscard]] std::int64_t row_width() const {
    std::int64_t width = 1;
    for (const Axis a : call_.op.as<op::Reduce>()->axes) width *= call_.operands[0].dims[a.index()];
    return width;
  }
  [[nodiscard]] N extreme_start(bool largest) const {
    return with_element_type(call_.operands[0].dtype, [&]<class T>() -> N {
      if constexpr (std::is_same_v<Wide<T>, N>) {
        return extreme_of_nothing<T>(largest);
      } else {
        return {};
      }
    });
  }

  const HostCall& call_;
  OwnedView rows_;
  NumberOperand<N> x_;
};

}  // namespace

HostKernel reduce_kernel() noexcept { return kernel_of_number_class<Reduce>(); }

}  // namespace ricci::cpu
