// Pooling in plain loops.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ricci/op/conv.h"

#include "backend/cpu/host/extremes.h"
#include "backend/cpu/host/kernels.h"
#include "backend/cpu/host/scratch.h"

namespace ricci::cpu {
namespace {

using Shape = std::span<const std::int64_t>;

// Calls `f(position in the plane)` for the places of window (i, j) inside the image, row-major.
template <class Op, class F>
void for_each_in_window(const Op& op, Shape x, std::int64_t i, std::int64_t j, const F& f) {
  const auto first = [&](std::size_t axis, std::int64_t window) {
    return window * op.stride[axis] - op.padding[axis];
  };
  const std::int64_t last_row = std::min(x[2], first(0, i) + op.kernel_size[0]);
  const std::int64_t last_column = std::min(x[3], first(1, j) + op.kernel_size[1]);
  for (std::int64_t row = std::max<std::int64_t>(0, first(0, i)); row < last_row; ++row) {
    for (std::int64_t c = std::max<std::int64_t>(0, first(1, j)); c < last_column; ++c) {
      f(row * x[3] + c);
    }
  }
}

// The place of a window's first maximum; a NaN counts as larger than everything.
template <class Op>
std::int64_t first_maximum(const Op& op, Shape dims, const double* plane, std::int64_t i,
                           std::int64_t j) {
  std::int64_t best = -1;
  for_each_in_window(op, dims, i, j, [&](std::int64_t here) {
    const bool better = best < 0 || (!std::isnan(plane[best]) &&
                                     (std::isnan(plane[here]) || plane[here] > plane[best]));
    if (better) best = here;
  });
  return best;
}

double pooled(const op::Pool& op, Shape dims, const double* plane, std::int64_t i, std::int64_t j) {
  const auto fold = [&](double start, const auto& f) {
    for_each_in_window(op, dims, i, j, [&](std::int64_t at) { start = f(start, plane[at]); });
    return start;
  };
  const auto add = [](double a, double b) { return a + b; };
  constexpr double Inf = std::numeric_limits<double>::infinity();
  switch (op.kind) {
    case ReduceKind::Sum: return fold(0, add);
    case ReduceKind::Prod: return fold(1, [](double a, double b) { return a * b; });
    case ReduceKind::Max:
      return fold(-Inf, [](double a, double b) { return more_extreme(a, b, true); });
    case ReduceKind::Min:
      return fold(Inf, [](double a, double b) { return more_extreme(a, b, false); });
    case ReduceKind::Mean: {
      const double whole = static_cast<double>(op.kernel_size[0] * op.kernel_size[1]);
      const double inside = fold(0, [](double n, double) { return n + 1; });
      return fold(0, add) / (op.count_include_pad ? whole : inside);
    }
    case ReduceKind::Any:
    case ReduceKind::All:
    case ReduceKind::LogSumExp: break;
  }
  throw InternalError("windows are not pooled by this reduction");
}

class Pool {
 public:
  Pool(const HostCall& call, Scratch& scratch) : call_(call), x_(call, 0, scratch) {}

  void run() const {
    x_.pack(call_.pool);
    const auto& op = *call_.op.as<op::Pool>();
    const Shape x = call_.operands[0].dims;
    const Shape y = call_.results[0].dims;
    const std::int64_t cost = op.kernel_size[0] * op.kernel_size[1] * y[3];
    parallel_for(call_.pool, y[0] * y[1] * y[2], grain_for(cost),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t row = begin; row < end; ++row) {
                     const double* plane = x_.data() + row / y[2] * x[2] * x[3];
                     for (std::int64_t j = 0; j < y[3]; ++j) {
                       const double value = pooled(op, x, plane, row % y[2], j);
                       write_numbers(call_.results[0], row * y[3] + j, 1, &value);
                     }
                   }
                 });
  }

 private:
  const HostCall& call_;
  NumberOperand<double> x_;
};

// Windows may share an element, so a tile owns whole planes and sums them in wide numbers.
class MaxPool2dBackward {
 public:
  MaxPool2dBackward(const HostCall& call, Scratch& scratch)
      : call_(call),
        x_(call, 0, scratch),
        dy_(call, 1, scratch),
        sums_(scratch.take<double>(count_of(call.operands[0].dims))) {}

  void run() const {
    x_.pack(call_.pool);
    dy_.pack(call_.pool);
    const auto& op = *call_.op.as<op::MaxPool2dBackward>();
    const Shape x = call_.operands[0].dims;
    const Shape y = call_.operands[1].dims;
    const std::int64_t plane = x[2] * x[3];
    parallel_for(
        call_.pool, x[0] * x[1], grain_for(plane), [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t p = begin; p < end; ++p) {
            double* sums = sums_ + p * plane;
            const double* dy = dy_.data() + p * y[2] * y[3];
            std::fill_n(sums, plane, 0.0);
            for (std::int64_t i = 0; i < y[2]; ++i) {
              for (std::int64_t j = 0; j < y[3]; ++j) {
                sums[first_maximum(op, x, x_.data() + p * plane, i, j)] += dy[i * y[3] + j];
              }
            }
            write_numbers(call_.results[0], p * plane, plane, sums);
          }
        });
  }

 private:
  const HostCall& call_;
  NumberOperand<double> x_;
  NumberOperand<double> dy_;
  double* sums_;
};

class MaxPool2dSelect {
 public:
  MaxPool2dSelect(const HostCall& call, Scratch& scratch)
      : call_(call), x_(call, 0, scratch), v_(call, 1, scratch) {}

  void run() const {
    x_.pack(call_.pool);
    v_.pack(call_.pool);
    const auto& op = *call_.op.as<op::MaxPool2dSelect>();
    const Shape x = call_.operands[0].dims;
    const Shape y = call_.results[0].dims;
    const std::int64_t plane = x[2] * x[3];
    with_float_type(call_.results[0].dtype, [&]<class T>() {
      T* out = call_.results[0].as<T>();
      parallel_for(call_.pool, y[0] * y[1], grain_for(plane),
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t p = begin; p < end; ++p) {
                       for (std::int64_t i = 0; i < y[2] * y[3]; ++i) {
                         const std::int64_t from =
                             first_maximum(op, x, x_.data() + p * plane, i / y[3], i % y[3]);
                         out[p * y[2] * y[3] + i] = v_.as<T>()[p * plane + from];
                       }
                     }
                   });
    });
  }

 private:
  const HostCall& call_;
  NumberOperand<double> x_;
  DenseOperand v_;
};

}  // namespace

HostKernel pool_kernel() noexcept { return kernel_of<Pool>(); }
HostKernel max_pool2d_backward_kernel() noexcept { return kernel_of<MaxPool2dBackward>(); }
HostKernel max_pool2d_select_kernel() noexcept { return kernel_of<MaxPool2dSelect>(); }

}  // namespace ricci::cpu
