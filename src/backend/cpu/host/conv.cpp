// Convolutions in plain loops and wide numbers, for what no library takes and as a check on it.
// Every result element is summed in one place, so rows of the result go to any thread.
#include <algorithm>
#include <array>
#include <vector>

#include "backend/cpu/host/kernels.h"
#include "backend/cpu/host/scratch.h"

namespace ricci::cpu {
namespace {

using Shape = std::array<std::int64_t, 4>;  // as images, whatever the array's own axes

// The results [first, last] a step apart that keep start + i·step inside [0, size).
struct Range {
  std::int64_t first;
  std::int64_t last;  // exclusive

  Range(std::int64_t start, std::int64_t step, std::int64_t size, std::int64_t count) {
    first = start >= 0 ? 0 : (-start + step - 1) / step;
    last = start >= size ? 0 : std::min(count, (size - 1 - start) / step + 1);
    first = std::min(first, last);
  }
};

// What conv and its gradients have in common. Products pair x[n, c, a, b], w[o, c', u, v] and
// y[n, o, i, j] with a = i·s + u·d - p and c = the group of o times w's channels plus c'.
struct Geometry {
  explicit Geometry(const loop::Convolution& r)
      : role(r),
        x{r.images, r.channels_in, r.size_in[0], r.size_in[1]},
        w{r.channels_out, r.channels_in / r.groups, r.kernel[0], r.kernel[1]},
        y{r.images, r.channels_out, r.size_out[0], r.size_out[1]} {}

  const loop::Convolution& role;
  Shape x;
  Shape w;
  Shape y;

  [[nodiscard]] std::int64_t group_outputs() const { return w[0] / role.groups; }
  [[nodiscard]] std::int64_t first_channel(std::int64_t o) const {
    return o / group_outputs() * w[1];
  }
  // The windows along an axis (0: rows, 1: columns) that tap t reads inside the image.
  [[nodiscard]] Range windows(std::size_t axis, std::int64_t tap) const {
    return {tap * role.dilation[axis] - role.padding[axis], role.stride[axis], x[2 + axis],
            y[2 + axis]};
  }
  [[nodiscard]] std::int64_t place(std::size_t axis, std::int64_t window, std::int64_t tap) const {
    return window * role.stride[axis] + tap * role.dilation[axis] - role.padding[axis];
  }
};

std::int64_t at(const Shape& dims, std::int64_t i, std::int64_t j, std::int64_t k) {
  return ((i * dims[1] + j) * dims[2] + k) * dims[3];
}

// A kernel with two operands and scratch for one row of sums a tile.
class ConvKernel {
 protected:
  ConvKernel(const HostArguments& call, Scratch& scratch)
      : call_(call),
        role_(call.as<loop::Convolution>()),
        left_(call, 0, scratch),
        right_(call, 1, scratch) {}

  // Calls `f(n, c, row, sums)` for every row of the result; `sums` start as zeros.
  template <class F>
  void for_each_row(const Shape& out, std::int64_t cost, const F& f) const {
    left_.pack(call_.pool);
    right_.pack(call_.pool);
    parallel_for(call_.pool, out[0] * out[1] * out[2], grain_for(cost * out[3]),
                 [&](std::int64_t begin, std::int64_t end) {
                   std::vector<double> sums(static_cast<std::size_t>(out[3]));
                   for (std::int64_t i = begin; i < end; ++i) {
                     std::ranges::fill(sums, 0.0);
                     f(i / out[2] / out[1], i / out[2] % out[1], i % out[2], sums.data());
                     write_numbers(call_.results[0], i * out[3], out[3], sums.data());
                   }
                 });
  }

  const HostArguments& call_;
  const loop::Convolution& role_;
  NumberOperand<double> left_;
  NumberOperand<double> right_;
};

class Conv : ConvKernel {
 public:
  Conv(const HostArguments& call, Scratch& scratch) : ConvKernel(call, scratch) {}

  void run() const {
    const Geometry g(role_);
    for_each_row(g.y, g.w[1] * g.w[2] * g.w[3],
                 [&](std::int64_t n, std::int64_t o, std::int64_t i, double* sums) {
                   for (std::int64_t c = 0; c < g.w[1]; ++c) {
                     for (std::int64_t u = 0; u < g.w[2]; ++u) {
                       const std::int64_t row = g.place(0, i, u);
                       if (row < 0 || row >= g.x[2]) continue;
                       const double* x = left_.data() + at(g.x, n, g.first_channel(o) + c, row);
                       const double* w = right_.data() + at(g.w, o, c, u);
                       for (std::int64_t v = 0; v < g.w[3]; ++v) {
                         const auto [first, last] = g.windows(1, v);
                         for (std::int64_t j = first; j < last; ++j) {
                           sums[j] += x[g.place(1, j, v)] * w[v];
                         }
                       }
                     }
                   }
                 });
  }
};

class BackwardInput : ConvKernel {
 public:
  BackwardInput(const HostArguments& call, Scratch& scratch) : ConvKernel(call, scratch) {}

  void run() const {
    const Geometry g(role_);
    const std::int64_t outputs = g.group_outputs();
    for_each_row(g.x, outputs * g.w[2] * g.w[3],
                 [&](std::int64_t n, std::int64_t channel, std::int64_t row, double* sums) {
                   const std::int64_t first_output = channel / g.w[1] * outputs;
                   for (std::int64_t o = first_output; o < first_output + outputs; ++o) {
                     for (std::int64_t u = 0; u < g.w[2]; ++u) {
                       const std::int64_t shifted = row - g.place(0, 0, u);
                       const std::int64_t i = shifted / role_.stride[0];
                       if (shifted < 0 || shifted % role_.stride[0] != 0 || i >= g.y[2]) continue;
                       const double* dy = left_.data() + at(g.y, n, o, i);
                       const double* w = right_.data() + at(g.w, o, channel % g.w[1], u);
                       for (std::int64_t v = 0; v < g.w[3]; ++v) {
                         const auto [first, last] = g.windows(1, v);
                         for (std::int64_t j = first; j < last; ++j) {
                           sums[g.place(1, j, v)] += dy[j] * w[v];
                         }
                       }
                     }
                   }
                 });
  }
};

class BackwardWeight : ConvKernel {
 public:
  BackwardWeight(const HostArguments& call, Scratch& scratch) : ConvKernel(call, scratch) {}

  void run() const {
    const Geometry g(role_);
    for_each_row(g.w, g.y[0] * g.y[2] * g.y[3],
                 [&](std::int64_t o, std::int64_t c, std::int64_t u, double* sums) {
                   for (std::int64_t n = 0; n < g.y[0]; ++n) {
                     const auto [first_row, last_row] = g.windows(0, u);
                     for (std::int64_t i = first_row; i < last_row; ++i) {
                       const double* x =
                           left_.data() + at(g.x, n, g.first_channel(o) + c, g.place(0, i, u));
                       const double* dy = right_.data() + at(g.y, n, o, i);
                       for (std::int64_t v = 0; v < g.w[3]; ++v) {
                         const auto [first, last] = g.windows(1, v);
                         for (std::int64_t j = first; j < last; ++j) {
                           sums[v] += x[g.place(1, j, v)] * dy[j];
                         }
                       }
                     }
                   }
                 });
  }
};

}  // namespace

HostKernel conv_image_kernel() noexcept { return kernel_of<Conv>(); }
HostKernel conv_image_gradient_kernel() noexcept { return kernel_of<BackwardInput>(); }
HostKernel conv_weight_gradient_kernel() noexcept { return kernel_of<BackwardWeight>(); }

}  // namespace ricci::cpu
