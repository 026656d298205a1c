#include "ricci/compiler/loop/call.h"

#include <algorithm>
#include <cmath>

#include "ricci/support/checked.h"

namespace ricci::loop {
namespace {

double number(std::int64_t n) { return static_cast<double>(n); }

// Scaling the state, adding to it and reading it, for each of its elements and every step; the
// gradient goes through the steps twice, with two terms for each of the first's.
constexpr double StateOperations = 7;
double times_passed(Pass pass) { return pass == Pass::Forward ? 1 : 3; }

// Keys that a query sees, on average.
double keys_seen(const Attention& a) {
  switch (a.mask.kind) {
    // The last query sees all keys, each before it one fewer.
    case MaskKind::Kind::Causal: return number(a.keys) - (number(a.queries) - 1) / 2;
    case MaskKind::Kind::SlidingWindow: return std::min(number(a.keys), number(a.mask.window) + 1);
    case MaskKind::Kind::None:
    case MaskKind::Kind::Custom:
    case MaskKind::Kind::Bias: break;
  }
  return number(a.keys);
}

// One an element, unless a role has more to say.
double flops(const auto& /*role*/, const WantedResults& wanted) { return wanted.elements; }

double flops(const MatrixProduct& p, const WantedResults& wanted) {
  return 2 * wanted.elements * number(p.depth);
}

double flops(const GroupedProduct& p, const WantedResults& wanted) {
  const double once = 2 * number(p.rows) * number(p.picks) * number(p.depth) * number(p.columns);
  return p.pass == Pass::Forward ? once : once * number(wanted.count);
}

double flops(const PackedProduct& p, const WantedResults& /*wanted*/) {
  return 2 * number(p.rows) * number(p.picks) * number(p.depth) * number(p.columns);
}

double flops(const IntegerProduct& p, const WantedResults& /*wanted*/) {
  return 2 * number(p.batch) * number(p.rows) * number(p.depth) * number(p.columns);
}

double flops(const Convolution& c, const WantedResults& /*wanted*/) {
  return 2 * number(c.images) * number(c.y_image()) * number(c.taps());
}

double flops(const IntegerConvolution& c, const WantedResults& wanted) {
  return flops(c.geometry, wanted);
}

double flops(const Pooling& p, const WantedResults& /*wanted*/) {
  return number(p.planes) * number(p.size_out[0]) * number(p.size_out[1]) * number(p.kernel[0]) *
         number(p.kernel[1]);
}

// Each product, of scores or values, has two operations for every element of the queries and every
// key. The gradient makes the scores again, and four products.
double flops(const Attention& a, const WantedResults& /*wanted*/) {
  // Products with keys as wide as these, and with values.
  const double width = a.pass == Pass::Forward ? number(a.width) + number(a.value_width)
                                               : 3 * number(a.width) + 2 * number(a.value_width);
  return 2 * width * number(a.batch) * number(a.heads) * number(a.queries) * keys_seen(a);
}

double flops(const Solve& s, const WantedResults& /*wanted*/) {
  const double n = number(s.rows);
  const double substitution = number(s.systems) * n * n * number(s.columns);
  if (s.matrix != Solve::Matrix::Dense) return substitution;
  return number(s.systems) * n * n * n * 2 / 3 + 2 * substitution;
}

// The usual counts for real numbers. Those that iterate take about so many.
double flops(const MatrixFunction& f, const WantedResults& wanted) {
  using Of = MatrixFunction::Of;
  const double k = number(f.smaller());
  const double long_side = number(std::max(f.rows, f.columns));
  const double cube = k * k * k;
  const auto one = [&] {
    switch (f.of) {
      case Of::Cholesky: return cube / 3;
      case Of::Lu: return k * k * (long_side - k / 3);
      case Of::Qr: return 4 * k * k * (long_side - k / 3);
      case Of::Eigh: return wanted.count > 1 ? 9 * cube : cube * 4 / 3;
      case Of::Svd: return k * k * (wanted.count > 1 ? 8 * long_side + 9 * k : 4 * long_side);
      case Of::Exponential: return 18 * cube;
      case Of::Adjugate: return 3 * cube;
    }
    return cube;
  };
  return number(f.matrices) * one();
}

// Comparisons, n log n.
double flops(const Sort& s, const WantedResults& /*wanted*/) {
  const double n = number(s.x.outer) * number(s.x.size) * number(s.x.inner);
  return n * std::log2(std::max(n, 2.0));
}

double flops(const SelectiveScan& s, const WantedResults& /*wanted*/) {
  return times_passed(s.pass) * StateOperations * number(s.batch) * number(s.steps) *
         number(s.channels) * number(s.states);
}

double flops(const GatedDelta& d, const WantedResults& /*wanted*/) {
  return times_passed(d.pass) * StateOperations * number(d.batch) * number(d.steps) *
         number(d.heads) * number(d.value_width) * number(d.key_width);
}

// 5 n log n for complex numbers, half of it for real ones.
double flops(const FourierTransform& f, const WantedResults& /*wanted*/) {
  const double n = number(f.length);
  const double lines = number(f.batch) * number(f.inner);
  return lines * (f.is_real() ? 2.5 : 5) * n * std::log2(std::max(n, 2.0));
}

// What a splat costs where it is seen is known; how many pixels see it is not. One in eight tiles
// is about what scenes have that fill an image.
double flops(const Splats& s, const WantedResults& /*wanted*/) {
  constexpr double PerHit = 40;
  const double forward = number(s.batch) * number(s.count) * number(s.pixels()) * PerHit / 8;
  switch (s.stage) {
    case Splats::Stage::Prepare: return number(s.batch) * number(s.count) * PerHit;
    case Splats::Stage::Rasterize:
    case Splats::Stage::Render: return forward;
    case Splats::Stage::Backward: return 4 * forward;
  }
  return forward;
}

}  // namespace

AxisSplit split_at(std::span<const std::int64_t> dims, std::size_t axis) {
  // Sizes are more than 64 bits hold only where the array is empty.
  const auto product = [](std::span<const std::int64_t> sizes) {
    std::int64_t all = 1;
    for (const std::int64_t n : sizes) all = saturating_mul(all, n);
    return all;
  };
  return {product(dims.first(axis)), dims[axis], product(dims.subspan(axis + 1))};
}

std::string_view role_of(const Call& call) {
  return std::visit([](const auto& c) { return std::string_view(c.role); }, call);
}

double flops_of(const Call& call, const WantedResults& wanted) {
  return std::visit([&](const auto& c) { return flops(c, wanted); }, call);
}

}  // namespace ricci::loop
