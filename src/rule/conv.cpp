// Convolutions and pooling.
#include "ricci/op/conv.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "rule/tables/eval_rules.h"
#include "rule/window_taps.h"

namespace ricci::rule {
namespace {

using Index4 = std::array<std::int64_t, 4>;

template <class F>
void for_each_index4(const StaticDims& dims, F&& f) {
  for_each_index(dims, [&](const StaticDims& i) { f(Index4{i[0], i[1], i[2], i[3]}); });
}

// Conv and its two gradients are sums of the same products: calls f(x index, w index, y index) for
// every tap (c, u…) of every window (n, o, i…) that lies inside the image.
template <class Op, class F>
void for_each_product(const Op& op, const StaticDims& x, const StaticDims& w, const StaticDims& y,
                      F&& f) {
  const std::int64_t group_outputs = w[0] / op.groups;
  StaticDims taps = w;
  taps[0] = 1;
  StaticDims at_x(x.size());
  StaticDims at_w(w.size());
  for_each_index(y, [&](const StaticDims& at_y) {
    const std::int64_t first_channel = at_y[1] / group_outputs * w[1];
    for_each_index(taps, [&](const StaticDims& tap) {
      at_x[0] = at_y[0];
      at_x[1] = first_channel + tap[1];
      for (std::size_t a = 2; a < x.size(); ++a) {
        at_x[a] = at_y[a] * op.stride[a - 2] + tap[a] * op.dilation[a - 2] - op.padding[a - 2];
        if (at_x[a] < 0 || at_x[a] >= x[a]) return;
      }
      at_w = tap;
      at_w[0] = at_y[1];
      f(at_x, at_w, at_y);
    });
  });
}

// Calls f(row, column) for the positions of window (i, j) that lie inside the image, row-major.
template <class Op, class F>
void for_each_in_window(const Op& op, const StaticDims& x, std::int64_t i, std::int64_t j, F&& f) {
  const TapRange rows = taps_inside(op, 0, x[2], i);
  const TapRange columns = taps_inside(op, 1, x[3], j);
  for (std::int64_t u = rows.first; u < rows.last; ++u) {
    for (std::int64_t v = columns.first; v < columns.last; ++v) {
      f(i * op.stride[0] + u - op.padding[0], j * op.stride[1] + v - op.padding[1]);
    }
  }
}

// The place of a window's first maximum; a NaN counts as larger than everything, and -inf is as
// good as any value when there is no better.
template <class Op>
Index4 first_maximum(const Op& op, const RealNd& x, const Index4& window) {
  const auto [n, c, i, j] = window;
  Index4 best{-1, -1, -1, -1};
  for_each_in_window(op, x.dims, i, j, [&](std::int64_t row, std::int64_t column) {
    const Index4 here{n, c, row, column};
    const bool better = best[0] < 0 || (!std::isnan(x.at(best)) &&
                                        (std::isnan(x.at(here)) || x.at(here) > x.at(best)));
    if (better) best = here;
  });
  return best;
}

double combine(const op::Pool& op, const std::vector<double>& values) {
  const auto fold = [&](double start, auto&& f) {
    double total = start;
    for (const double v : values) total = f(total, v);
    return total;
  };
  constexpr double Inf = std::numeric_limits<double>::infinity();
  switch (op.kind) {
    case ReduceKind::Prod: return fold(1, [](double a, double b) { return a * b; });
    case ReduceKind::Max:
      return fold(-Inf, [](double a, double b) { return eval_binary(BinaryKind::Max, a, b); });
    case ReduceKind::Min:
      return fold(Inf, [](double a, double b) { return eval_binary(BinaryKind::Min, a, b); });
    case ReduceKind::Sum:
    case ReduceKind::Mean:
    case ReduceKind::Any:
    case ReduceKind::All:
    case ReduceKind::LogSumExp: break;
  }
  throw InternalError("windows are not pooled by this reduction");
}

// Calls f(first, second, result) with the numbers of a product's operands and zeros for its result.
template <class F>
void eval_products(EvalContext& c, F&& f) {
  with_number_class(c.dtype(0), [&]<class N>() {
    const Nd<N> a = c.numbers<N>(0);
    const Nd<N> b = c.numbers<N>(1);
    Nd<N> out(c.result_dims(0));
    f(a, b, out);
    c.give(0, out);
  });
}

}  // namespace

// y[n, o, i, j] = Σ_{c,u,v} x[n, G(o)·C_in/groups + c, i·s + u·d - p, j·s + v·d - p]
//                         · w[o, c, u, v]
void eval(const op::Conv& op, EvalContext& c) {
  eval_products(c, [&](const auto& x, const auto& w, auto& y) {
    for_each_product(op, x.dims, w.dims, y.dims,
                     [&](const StaticDims& at_x, const StaticDims& at_w, const StaticDims& at_y) {
                       y.at(at_y) += x.at(at_x) * w.at(at_w);
                     });
  });
}

// dx[n, c, a, b] = Σ dy[n, o, i, j] · w[o, c', u, v] over a = i·s + u·d - p, b = j·s + v·d - p
void eval(const op::Conv2dBackwardInput& op, EvalContext& c) {
  eval_products(c, [&](const auto& dy, const auto& w, auto& dx) {
    for_each_product(op, dx.dims, w.dims, dy.dims,
                     [&](const StaticDims& at_x, const StaticDims& at_w, const StaticDims& at_y) {
                       dx.at(at_x) += dy.at(at_y) * w.at(at_w);
                     });
  });
}

// dw[o, c, u, v] = Σ_{n,i,j} x[n, G(o)·C_in/groups + c, i·s + u·d - p, j·s + v·d - p]
//                          · dy[n, o, i, j]
void eval(const op::Conv2dBackwardWeight& op, EvalContext& c) {
  eval_products(c, [&](const auto& x, const auto& dy, auto& dw) {
    for_each_product(op, x.dims, dw.dims, dy.dims,
                     [&](const StaticDims& at_x, const StaticDims& at_w, const StaticDims& at_y) {
                       dw.at(at_w) += x.at(at_x) * dy.at(at_y);
                     });
  });
}

namespace {

// Sum or mean over the positions of a window.
template <class N>
void eval_summed_windows(const op::Pool& op, EvalContext& c) {
  const Nd<N> x = c.numbers<N>(0);
  Nd<N> y(c.result_dims(0));
  const auto whole =
      static_cast<double>(op.kernel_size[0]) * static_cast<double>(op.kernel_size[1]);
  for_each_index4(y.dims, [&](const Index4& at) {
    N total{};
    double count = 0;
    for_each_in_window(op, x.dims, at[2], at[3], [&](std::int64_t row, std::int64_t column) {
      total += x.at({at[0], at[1], row, column});
      ++count;
    });
    if (op.kind == ReduceKind::Mean) total /= op.count_include_pad ? whole : count;
    y.at(at) = total;
  });
  c.give(0, y);
}

}  // namespace

// y[n, c, i, j] = kind over the x[n, c, i·s + u - p, j·s + v - p] inside the image
void eval(const op::Pool& op, EvalContext& c) {
  if (op.kind == ReduceKind::Sum || op.kind == ReduceKind::Mean) {
    if (is_complex(c.dtype(0))) return eval_summed_windows<std::complex<double>>(op, c);
    return eval_summed_windows<double>(op, c);
  }
  const RealNd x = c.real(0);
  RealNd y(c.result_dims(0));
  for_each_index4(y.dims, [&](const Index4& at) {
    std::vector<double> values;
    for_each_in_window(op, x.dims, at[2], at[3], [&](std::int64_t row, std::int64_t column) {
      values.push_back(x.at({at[0], at[1], row, column}));
    });
    y.at(at) = combine(op, values);
  });
  c.give(0, y);
}

// dx[first maximum of window] += dy[window]
void eval(const op::MaxPool2dBackward& op, EvalContext& c) {
  const RealNd x = c.real(0);
  const RealNd dy = c.real(1);
  RealNd dx(x.dims);
  for_each_index4(dy.dims, [&](const Index4& at) { dx.at(first_maximum(op, x, at)) += dy.at(at); });
  c.give(0, dx);
}

// out[window] = v[first maximum of x in window]
void eval(const op::MaxPool2dSelect& op, EvalContext& c) {
  const RealNd x = c.real(0);
  c.give_moved(0, [&](const StaticDims& i) -> EvalContext::Source {
    return {1, flat_index(x.dims, first_maximum(op, x, {i[0], i[1], i[2], i[3]}))};
  });
}

}  // namespace ricci::rule
