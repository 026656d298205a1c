// Fourier transforms and frames.
#include "ricci/op/spectrum.h"

#include <complex>

#include "ricci/build/build.h"
#include "ricci/compiler/loop/call.h"

#include "rule/spectrum_parts.h"
#include "rule/tables/eval_rules.h"
#include "rule/tables/expand_rules.h"
#include "support/unit_root.h"

namespace ricci::rule {
namespace {

using Complex = std::complex<double>;

// y[k] = s · Σ_n x[n] · e^(∓2πi·nk/N), k < bins
std::vector<Complex> transform(const std::vector<Complex>& x, bool inverse, FftNorm norm,
                               std::size_t bins) {
  const auto n = static_cast<std::int64_t>(x.size());
  const double scale = fft_scale(norm, inverse, n);
  std::vector<Complex> roots;
  for (std::int64_t k = 0; k < n; ++k) roots.push_back(unit_root(inverse ? k : -k, n));
  std::vector<Complex> y(bins);
  for (std::size_t k = 0; k < bins; ++k) {
    double re = 0;
    double im = 0;
    std::size_t at = 0;  // n·k mod N
    for (const Complex& v : x) {
      const Complex w = roots[at];
      re += v.real() * w.real() - v.imag() * w.imag();
      im += v.real() * w.imag() + v.imag() * w.real();
      at = (at + k) % x.size();
    }
    y[k] = {scale * re, scale * im};
  }
  return y;
}

// Calls f(from, to, step) for every line along the axis: the places of its first elements in two
// arrays with `rows` and `rows_out` elements along it, and the distance of neighbours.
template <class F>
void for_each_line(const StaticDims& dims, const StaticDims& out, Axis axis, const F& f) {
  const loop::AxisSplit x = loop::split_at(dims, axis.index());
  const loop::AxisSplit y = loop::split_at(out, axis.index());
  if (count_elements(out) == 0) return;
  for (std::int64_t o = 0; o < x.outer; ++o) {
    for (std::int64_t i = 0; i < x.inner; ++i) {
      f(static_cast<std::size_t>(o * x.size * x.inner + i),
        static_cast<std::size_t>(o * y.size * y.inner + i), static_cast<std::size_t>(x.inner));
    }
  }
}

std::size_t size_along(const StaticDims& dims, Axis axis) {
  return static_cast<std::size_t>(dims[axis.index()]);
}

}  // namespace

void eval(const op::Fft& op, EvalContext& c) {
  if (is_complex(c.dtype(0))) {
    const ComplexNd x = c.numbers<Complex>(0);
    ComplexNd out(x.dims);
    for_each_line(x.dims, x.dims, op.axis, [&](std::size_t at, std::size_t, std::size_t step) {
      std::vector<Complex> line(size_along(x.dims, op.axis));
      for (std::size_t n = 0; n < line.size(); ++n) line[n] = x.data[at + n * step];
      line = transform(line, op.inverse, op.norm, line.size());
      for (std::size_t k = 0; k < line.size(); ++k) out.data[at + k * step] = line[k];
    });
    return c.give(0, out);
  }
  // Two blocks: the imaginary parts lie behind the real ones.
  const RealNd x = c.real(0);
  RealNd out(x.dims);
  for_each_line(x.dims, x.dims, op.axis, [&](std::size_t at, std::size_t, std::size_t step) {
    std::vector<Complex> line(size_along(x.dims, op.axis) / 2);
    const std::size_t imaginary = at + line.size() * step;
    for (std::size_t n = 0; n < line.size(); ++n) {
      line[n] = {x.data[at + n * step], x.data[imaginary + n * step]};
    }
    line = transform(line, op.inverse, op.norm, line.size());
    for (std::size_t k = 0; k < line.size(); ++k) {
      out.data[at + k * step] = line[k].real();
      out.data[imaginary + k * step] = line[k].imag();
    }
  });
  c.give(0, out);
}

void eval(const op::Rfft& op, EvalContext& c) {
  const RealNd x = c.real(0);
  ComplexNd out(c.result_dims(0));
  const std::size_t given = size_along(x.dims, op.axis);
  const auto n = op.n ? static_cast<std::size_t>(op.n->value()) : given;
  for_each_line(x.dims, out.dims, op.axis, [&](std::size_t from, std::size_t to, std::size_t step) {
    std::vector<Complex> line(n);
    for (std::size_t j = 0; j < std::min(n, given); ++j) line[j] = x.data[from + j * step];
    line = transform(line, false, op.norm, n / 2 + 1);
    for (std::size_t k = 0; k < line.size(); ++k) out.data[to + k * step] = line[k];
  });
  c.give(0, out);
}

// The other bins are the conjugates of those given.
void eval(const op::Irfft& op, EvalContext& c) {
  const ComplexNd x = c.numbers<Complex>(0);
  RealNd out(c.result_dims(0));
  const std::size_t n = size_along(out.dims, op.axis);
  for_each_line(x.dims, out.dims, op.axis, [&](std::size_t from, std::size_t to, std::size_t step) {
    std::vector<Complex> line(n);
    for (std::size_t k = 0; k <= n / 2; ++k) {
      line[k] = x.data[from + k * step];
      if (k == 0 || 2 * k == n) line[k] = line[k].real();
      if (k > 0) line[n - k] = std::conj(line[k]);
    }
    line = transform(line, true, op.norm, n);
    for (std::size_t j = 0; j < n; ++j) out.data[to + j * step] = line[j].real();
  });
  c.give(0, out);
}

// A length of one's own is padding or cutting; else all bins of complex numbers are computed, and
// half are kept.
std::vector<Value> expand(const op::Rfft& op, const ExpandContext& c) {
  const Value x = c[0];
  if (op.n) {
    const Value fitted = resized(x, op.axis, *op.n);
    return {rfft(fitted, {.axis = op.axis, .norm = op.norm})};
  }
  const Value z = cast_to(x, complex_of(x.dtype()));
  const Value bins = fft(z, {.axis = op.axis, .norm = op.norm});
  return {narrow(bins, {.axis = op.axis, .len = c.node.types[0].dims[op.axis.index()]})};
}

// What an imaginary part of the first or middle bin adds is imaginary.
std::vector<Value> expand(const op::Irfft& op, const ExpandContext& c) {
  const Value x = c[0];
  const Dim mirrored = op.n - x.dims()[op.axis.index()];
  const Value inner = narrow(x, {.axis = op.axis, .start = 1, .len = mirrored});
  const Value rest = reverse(conjugate(inner), {.axes = {op.axis}});
  const Value bins = concat({x, rest}, {.axis = op.axis});
  const Value z = fft(bins, {.axis = op.axis, .inverse = true, .norm = op.norm});
  return {cast_to(z, c.node.types[0].dtype)};
}

void eval(const op::Frame& op, EvalContext& c) {
  const std::size_t a = op.axis.index();
  c.give_moved(0, [&](const StaticDims& index) {
    StaticDims from = index;
    from[a] = index[a] * op.hop + index[a + 1];
    from.erase(from.begin() + static_cast<std::ptrdiff_t>(a) + 1);
    return EvalContext::Source{0, flat_index(c.dims(0), from)};
  });
}

void eval(const op::OverlapAdd& op, EvalContext& c) {
  with_number_class(c.dtype(0), [&]<class N>() {
    const std::size_t a = op.axis.index();
    const Nd<N> x = c.numbers<N>(0);
    Nd<N> out(c.result_dims(0));
    for_each_index(x.dims, [&](const StaticDims& index) {
      StaticDims to = index;
      to[a] = index[a] * op.hop + index[a + 1];
      to.erase(to.begin() + static_cast<std::ptrdiff_t>(a) + 1);
      N& total = out.data[static_cast<std::size_t>(flat_index(out.dims, to))];
      total = add_wrapping(total, x.at(index));
    });
    c.give(0, out);
  });
}

// A frame is some pieces as long as the hop: [.., F, r, hop, ..]. The pieces at one place of the
// result lie on a diagonal of [r, F], which becomes a column when rows of F + r pieces are read as
// rows of one piece fewer.
std::vector<Value> expand(const op::OverlapAdd& op, const ExpandContext& c) {
  const std::size_t a = op.axis.index();
  const Dims& dims = c[0].dims();
  const Dim hop = op.hop;
  const Dim frames = dims[a];
  const std::int64_t len = dims[a + 1].value();
  const Dim pieces = (len + op.hop - 1) / op.hop;
  const auto shaped = [&](Value v, std::initializer_list<Dim> middle) {
    Dims to(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(a));
    to.insert(to.end(), middle);
    to.insert(to.end(), dims.begin() + static_cast<std::ptrdiff_t>(a) + 2, dims.end());
    return reshape_to(v, std::move(to));
  };
  const Axis axis = op.axis;
  Value v = resized(c[0], axis + 1, pieces * hop);
  v = shaped(v, {frames, pieces, hop});
  Axes perm;
  for (std::size_t k = 0; k < v.rank(); ++k) perm.emplace_back(static_cast<std::int64_t>(k));
  std::swap(perm[a], perm[a + 1]);
  v = resized(transpose(v, {.perm = perm}), axis + 1, frames + pieces);
  v = resized(shaped(v, {pieces * (frames + pieces), hop}), axis, pieces * (frames + pieces - 1));
  v = sum(shaped(v, {pieces, frames + pieces - 1, hop}), {axis});
  v = shaped(v, {(frames + pieces - 1) * hop});
  return {resized(v, axis, c.node.types[0].dims[a])};
}

}  // namespace ricci::rule
