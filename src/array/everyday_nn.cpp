// Products, and what networks are made of.
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "ricci/array/create.h"
#include "ricci/array/everyday.h"
#include "ricci/array/ops.h"

#include "array/node.h"
#include "array/wide.h"

namespace ricci {

namespace {

// The sizes of images [..., C, H, W].
struct Image {
  Dims before;
  std::int64_t channels, height, width;
};
Image image_of(const Array& x, const char* what, Here where) {
  if (x.rank() < 3) {
    detail::refuse(ErrorCode::Shape, "shape", fmt::format("'{}' of {}", what, x.type().to_string()),
                   "images are [..., channels, height, width]", where);
  }
  return {Dims(x.shape().begin(), x.shape().end() - 3), x.dim(-3).value(), x.dim(-2).value(),
          x.dim(-1).value()};
}
[[noreturn]] void refuse_factor(const char* what, const Array& x, std::int64_t r, Here where) {
  detail::refuse(ErrorCode::Shape, "shape",
                 fmt::format("'{}' of {} by {}", what, x.type().to_string(), r),
                 "channels (or height and width, backwards) are multiples of the factor", where);
}
// The axes behind `before` in another order.
Array with_tail(const Array& x, const Image& image, const Dims& apart,
                const std::vector<std::int64_t>& order, const Dims& joined, Here where) {
  Dims shape = image.before;
  shape.insert(shape.end(), apart.begin(), apart.end());
  const auto first = static_cast<std::int64_t>(image.before.size());
  Axes perm;
  for (std::int64_t a = 0; a < first; ++a) perm.emplace_back(a);
  for (const std::int64_t a : order) perm.emplace_back(first + a);
  Dims out = image.before;
  out.insert(out.end(), joined.begin(), joined.end());
  return reshape(transpose(reshape(x, shape, where), perm, where), out, where);
}

}  // namespace

Array pixel_shuffle(const Array& x, std::int64_t r, Here where) {
  const Image i = image_of(x, "pixel_shuffle", where);
  if (r < 1 || i.channels % (r * r) != 0) refuse_factor("pixel_shuffle", x, r, where);
  const std::int64_t c = i.channels / (r * r);
  return with_tail(x, i, {c, r, r, i.height, i.width}, {0, 3, 1, 4, 2},
                   {c, i.height * r, i.width * r}, where);
}
Array pixel_unshuffle(const Array& x, std::int64_t r, Here where) {
  const Image i = image_of(x, "pixel_unshuffle", where);
  if (r < 1 || i.height % r != 0 || i.width % r != 0) {
    refuse_factor("pixel_unshuffle", x, r, where);
  }
  return with_tail(x, i, {i.channels, i.height / r, r, i.width / r, r}, {0, 2, 4, 1, 3},
                   {i.channels * r * r, i.height / r, i.width / r}, where);
}

Array addmm(const Array& x, const Array& a, const Array& b, Here where) {
  return add(x, matmul(a, b, where), where);
}
Array vecdot(const Array& a, const Array& b, std::int64_t axis, Here where) {
  return sum(mul(conj(a, where), b, where), axis, false, where);
}

namespace {

// How to multiply matrices from one to another, and the number of products of numbers in it.
struct Chain {
  double cost = 0;
  std::size_t split = 0;
};
Array product_of(const std::vector<Array>& m, const std::vector<std::vector<Chain>>& best,
                 std::size_t from, std::size_t to, Here where) {
  if (from == to) return m[from];
  const std::size_t split = best[from][to].split;
  return matmul(product_of(m, best, from, split, where), product_of(m, best, split + 1, to, where),
                where);
}

}  // namespace

Array multi_dot(const std::vector<Array>& matrices, Here where) {
  const std::size_t n = matrices.size();
  if (n == 0) {
    detail::refuse(ErrorCode::Attr, "multi_dot", "'multi_dot' of no matrix", "give it one or more",
                   where);
  }
  // sizes[i] rows of matrix i; vectors at the ends have one.
  std::vector<double> sizes;
  for (const Array& m : matrices) {
    sizes.push_back(m.rank() < 2 ? 1.0 : static_cast<double>(m.dim(-2).value()));
  }
  const Array& last = matrices.back();
  sizes.push_back(last.rank() < 2 ? 1.0 : static_cast<double>(last.dim(-1).value()));
  std::vector<std::vector<Chain>> best(n, std::vector<Chain>(n));
  for (std::size_t length = 1; length < n; ++length) {
    for (std::size_t from = 0; from + length < n; ++from) {
      Chain& chain = best[from][from + length];
      chain.cost = std::numeric_limits<double>::infinity();
      for (std::size_t split = from; split < from + length; ++split) {
        const double cost = best[from][split].cost + best[split + 1][from + length].cost +
                            sizes[from] * sizes[split + 1] * sizes[from + length + 1];
        if (cost < chain.cost) chain = {cost, split};
      }
    }
  }
  return product_of(matrices, best, 0, n - 1, where);
}
Array cdist(const Array& a, const Array& b, Here where) {
  const auto of = [&](const Array& x, const Array& y) {
    return norm(sub(expand_dims(x, -2, where), expand_dims(y, -3, where), where), -1, false, where);
  };
  return detail::in_wide(where, of, a, b);
}
Array pairwise_distance(const Array& a, const Array& b, double eps, Here where) {
  const auto of = [&](const Array& x, const Array& y) {
    return norm(add(sub(x, y, where), eps, where), -1, false, where);
  };
  return detail::in_wide(where, of, a, b);
}
Array logdet(const Array& a, Here where) {
  const auto [sign, size] = slogdet(a, where);
  return ricci::where(lt(sign, 0, where), NAN, size, where);
}

namespace {

Array pool1d(const Array& x, std::int64_t window, std::int64_t stride, std::int64_t padding,
             bool largest, Here where) {
  const Array image = expand_dims(x, -2, where);
  const PoolOptions options{.stride = Pair(1, stride == 0 ? window : stride),
                            .padding = Pair(0, padding)};
  const Array pooled = largest ? max_pool2d(image, {1, window}, options, where)
                               : avg_pool2d(image, {1, window}, options, where);
  return squeeze(pooled, -2, where);
}

}  // namespace

Array max_pool1d(const Array& x, std::int64_t window, std::int64_t stride, std::int64_t padding,
                 Here where) {
  return pool1d(x, window, stride, padding, true, where);
}
Array avg_pool1d(const Array& x, std::int64_t window, std::int64_t stride, std::int64_t padding,
                 Here where) {
  return pool1d(x, window, stride, padding, false, where);
}
Array softmin(const Array& x, std::int64_t axis, Here where) {
  return softmax(neg(x, where), axis, where);
}
Array hardtanh(const Array& x, double low, double high, Here where) {
  return clip(x, low, high, where);
}
Array hardshrink(const Array& x, double lambda, Here where) {
  return ricci::where(le(abs(x, where), lambda, where), 0.0, x, where);
}
Array softshrink(const Array& x, double lambda, Here where) {
  const Array nearer = sub(x, mul(sign(x, where), lambda, where), where);
  return ricci::where(le(abs(x, where), lambda, where), 0.0, nearer, where);
}
Array tanhshrink(const Array& x, Here where) { return sub(x, tanh(x, where), where); }
Array threshold(const Array& x, double at, double value, Here where) {
  return ricci::where(le(x, at, where), value, x, where);
}
Array prelu(const Array& x, const Array& w, Here where) {
  Array slope = w;
  if (w.rank() == 1 && x.rank() > 1) {
    Dims shape(x.rank(), 1);
    shape[1] = w.dim(0);
    slope = reshape(w, shape, where);
  }
  return ricci::where(gt(x, 0, where), x, mul(slope, x, where), where);
}
Array squareplus(const Array& x, double b, Here where) {
  return mul(add(x, sqrt(add(square(x, where), b, where), where), where), 0.5, where);
}
Array standardize(const Array& x, std::int64_t axis, double eps, Here where) {
  const auto of = [&](const Array& v) {
    const Array centred = sub(v, mean(v, axis, true, where), where);
    const Array variance = mean(square(centred, where), axis, true, where);
    return mul(centred, rsqrt(add(variance, eps, where), where), where);
  };
  return detail::in_wide(where, of, x);
}
Array instance_norm(const Array& x, double eps, Here where) {
  if (x.rank() < 3) {
    detail::refuse(ErrorCode::Shape, "shape",
                   fmt::format("'instance_norm' of {}", x.type().to_string()),
                   "x is [examples, channels, …]", where);
  }
  const Array flat = flatten(x, 2, where);
  return reshape(standardize(flat, -1, eps, where), x.shape(), where);
}
Array gumbel_softmax(const Key& key, const Array& logits, double temperature, std::int64_t axis,
                     Here where) {
  const Array noise = gumbel(key, logits.shape(), {.dtype = logits.dtype()}, where);
  return softmax(div(add(logits, noise, where), temperature, where), axis, where);
}
Array smooth_l1_loss(const Array& a, const Array& b, double beta, Here where) {
  if (beta == 0) return l1_loss(a, b, where);
  return div(huber_loss(a, b, beta, where), beta, where);
}
Array margin_ranking_loss(const Array& a, const Array& b, const Array& y, double margin,
                          Here where) {
  return mean(relu(sub(margin, mul(y, sub(a, b, where), where), where), where), {}, false, where);
}
Array triplet_margin_loss(const Array& anchor, const Array& positive, const Array& negative,
                          double margin, Here where) {
  const Array near = pairwise_distance(anchor, positive, 1e-6, where);
  const Array far = pairwise_distance(anchor, negative, 1e-6, where);
  return mean(relu(add(sub(near, far, where), margin, where), where), {}, false, where);
}
Array gaussian_nll_loss(const Array& x, const Array& target, const Array& variance, Here where) {
  const auto of = [&](const Array& mean_of, const Array& y, const Array& v) {
    const Array spread = ricci::where(lt(v, 1e-6, where), 1e-6, v, where);
    const Array misses = div(square(sub(mean_of, y, where), where), spread, where);
    return mul(mean(add(log(spread, where), misses, where), {}, false, where), 0.5, where);
  };
  return detail::in_wide(where, of, x, target, variance);
}

}  // namespace ricci
