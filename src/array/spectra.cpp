#include "ricci/array/spectra.h"

#include <numbers>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "ricci/array/create.h"
#include "ricci/array/ops.h"
#include "ricci/op/ops.h"
#include "ricci/support/error.h"

#include "array/node.h"
#include "support/float_environment.h"

namespace ricci {

using detail::apply;

namespace {

// A float that transforms are there for: integers and narrow floats are f32.
Array wide_real(const Array& x, std::string_view what, Here where) {
  detail::require_valid(x, what, where);
  const Array strong = detail::strengthened(x, where);
  const DType d = strong.dtype();
  if (d == DType::F64 || d == DType::F32) return strong;
  if (is_complex(d)) {
    detail::refuse(ErrorCode::DType, "spectrum",
                   fmt::format("'{}' of {}", what, strong.type().to_string()),
                   "it takes real numbers: fft(x), or real(x)", where);
  }
  return cast(strong, DType::F32, where);
}

Array as_complex(const Array& x, std::string_view what, Here where) {
  detail::require_valid(x, what, where);
  if (is_complex(x.dtype())) return detail::strengthened(x, where);
  const Array real = wide_real(x, what, where);
  return make_complex(real, zeros_like(real, where), where);
}

Axis known_axis(const Array& x, std::int64_t axis, std::string_view what, Here where) {
  const auto a = normalized_axis(axis, x.rank());
  if (!a) {
    detail::refuse(ErrorCode::Attr, "axis",
                   fmt::format("'{}' of {} along axis {}", what, x.type().to_string(), axis),
                   "there is no such axis", where);
  }
  return Axis(*a);
}

// Cut at n along an axis, or followed by zeros.
Array of_length(const Array& x, std::optional<std::int64_t> n, std::int64_t axis,
                std::string_view what, Here where) {
  const std::int64_t a = known_axis(x, axis, what, where).value;
  if (!n || x.dim(a) == Dim(*n)) return x;
  if (*n < 1) {
    detail::refuse(ErrorCode::Attr, "length", fmt::format("'{}' of {} numbers", what, *n),
                   "at least one is transformed", where);
  }
  const std::int64_t now = x.dim(a).value();
  if (now > *n) return narrow(x, a, 0, *n, where);
  std::vector<std::pair<Dim, Dim>> amounts(x.rank(), {0, 0});
  amounts[static_cast<std::size_t>(a)].second = *n - now;
  return pad(x, amounts, cast(array(0.0), x.dtype(), where), where);
}

Array transformed(const Array& x, bool inverse, const FftOptions& options, Here where) {
  const char* what = inverse ? "ifft" : "fft";
  const Array z = of_length(as_complex(x, what, where), options.n, options.axis, what, where);
  return apply(Op(op::Fft{.axis = known_axis(z, options.axis, what, where),
                          .inverse = inverse,
                          .norm = options.norm}),
               {z}, where);
}

Axes all_axes(const Array& x, const Axes& axes) {
  Axes out = axes;
  if (out.empty()) {
    for (std::size_t i = 0; i < x.rank(); ++i) out.emplace_back(static_cast<std::int64_t>(i));
  }
  return out;
}

// The axes but the last, and that.
std::pair<Axes, std::int64_t> last_apart(const Array& x, const Axes& axes, std::string_view what,
                                         Here where) {
  detail::require_valid(x, what, where);
  Axes all = all_axes(x, axes);
  if (all.empty()) {
    detail::refuse(ErrorCode::Attr, "axis", fmt::format("'{}' of a number", what),
                   "it has no axis to transform", where);
  }
  const std::int64_t last = all.back().value;
  all.pop_back();
  return {std::move(all), last};
}

Array over_axes(const Array& x, const Axes& axes, bool inverse, Here where) {
  Array out = as_complex(x, inverse ? "ifftn" : "fftn", where);
  for (const Axis a : all_axes(out, axes)) {
    out = transformed(out, inverse, {.n = {}, .axis = a.value, .norm = FftNorm::Forward}, where);
  }
  return out;
}

Array shifted(const Array& x, const AxisList& axes, bool back, Here where) {
  detail::require_valid(x, "fftshift", where);
  Array out = x;
  for (const Axis a : all_axes(x, axes.axes)) {
    const std::int64_t n = x.dim(a.value).value();
    out = roll(out, back ? -(n / 2) : n / 2, a.value, where);
  }
  return out;
}

// w[0] - w[1]·cos(2πk/(n - 1)) + w[2]·cos(4πk/(n - 1))
Array cosine_window(std::int64_t n, double a, double b, double c, Here where) {
  const DefaultFloatEnvironment floats;
  if (n <= 1) return ones({std::max<std::int64_t>(n, 0)}, {}, where);
  const Array k = arange(n, {.dtype = DType::F64}, where);
  const Array t = mul(k, 2 * std::numbers::pi / static_cast<double>(n - 1), where);
  const Array w = a - b * cos(t, where) + c * cos(mul(t, 2.0, where), where);
  return cast(w, DType::F32, where);
}

}  // namespace

Array fft(const Array& x, const FftOptions& options, Here where) {
  return transformed(x, false, options, where);
}
Array ifft(const Array& x, const FftOptions& options, Here where) {
  return transformed(x, true, options, where);
}
Array rfft(const Array& x, const FftOptions& options, Here where) {
  const Array real = wide_real(x, "rfft", where);
  const Array cut = of_length(real, options.n, options.axis, "rfft", where);
  return apply(
      Op(op::Rfft{
          .n = {}, .axis = known_axis(cut, options.axis, "rfft", where), .norm = options.norm}),
      {cut}, where);
}
Array irfft(const Array& x, const FftOptions& options, Here where) {
  const Array z = as_complex(x, "irfft", where);
  const Axis axis = known_axis(z, options.axis, "irfft", where);
  const std::int64_t n = options.n.value_or(2 * (z.dim(axis.value).value() - 1));
  const Array bins = of_length(z, n / 2 + 1, axis.value, "irfft", where);
  return apply(Op(op::Irfft{.n = n, .axis = axis, .norm = options.norm}), {bins}, where);
}

Array fft2(const Array& x, const Axes& axes, Here where) {
  return over_axes(x, axes, false, where);
}
Array ifft2(const Array& x, const Axes& axes, Here where) {
  return over_axes(x, axes, true, where);
}
Array fftn(const Array& x, const Axes& axes, Here where) {
  return over_axes(x, axes, false, where);
}
Array ifftn(const Array& x, const Axes& axes, Here where) {
  return over_axes(x, axes, true, where);
}
Array rfft2(const Array& x, const Axes& axes, Here where) {
  auto [all, last] = last_apart(x, axes, "rfft2", where);
  const Array half = rfft(x, {.n = {}, .axis = last, .norm = FftNorm::Forward}, where);
  return all.empty() ? half : over_axes(half, all, false, where);
}
Array irfft2(const Array& x, std::optional<std::int64_t> n, const Axes& axes, Here where) {
  auto [all, last] = last_apart(x, axes, "irfft2", where);
  const Array half = all.empty() ? x : over_axes(x, all, true, where);
  return irfft(half, {.n = n, .axis = last, .norm = FftNorm::Forward}, where);
}

Array fftshift(const Array& x, const AxisList& axes, Here where) {
  return shifted(x, axes, false, where);
}
Array ifftshift(const Array& x, const AxisList& axes, Here where) {
  return shifted(x, axes, true, where);
}
Array fftfreq(std::int64_t n, double spacing, Here where) {
  const DefaultFloatEnvironment floats;
  const Array k = arange(n, {.dtype = DType::F32}, where);
  const Array from =
      ricci::where(k < static_cast<double>((n + 1) / 2), k, k - static_cast<double>(n), where);
  return div(from, static_cast<double>(n) * spacing, where);
}
Array rfftfreq(std::int64_t n, double spacing, Here where) {
  const DefaultFloatEnvironment floats;
  const Array k = arange(n / 2 + 1, {.dtype = DType::F32}, where);
  return div(k, static_cast<double>(n) * spacing, where);
}
Array angle(const Array& x, Here where) {
  detail::require_valid(x, "angle", where);
  const Array z = as_complex(x, "angle", where);
  return atan2(imag(z, where), real(z, where), where);
}

namespace {

// Two vectors of one dtype.
void unify_vectors(std::string_view what, Array& x, Array& w, Here where) {
  detail::unify(what, x, w, where);
  if (x.rank() != 1 || w.rank() != 1 || x.size() == 0 || w.size() == 0) {
    detail::refuse(
        ErrorCode::Shape, std::string(what),
        fmt::format("'{}' of {} and {}", what, x.type().to_string(), w.type().to_string()),
        "both are vectors of one number or more; conv1d takes batches and channels", where);
  }
}

// out[i] = Σ_j x[i + j - before]·w[j], w no longer than x.
Array slid(const Array& x, const Array& w, ConvolveMode mode, Here where) {
  const std::int64_t k = w.size();
  const std::int64_t before = mode == ConvolveMode::Full   ? k - 1
                              : mode == ConvolveMode::Same ? k / 2
                                                           : 0;
  const std::int64_t after = mode == ConvolveMode::Full   ? k - 1
                             : mode == ConvolveMode::Same ? k - 1 - k / 2
                                                          : 0;
  const Array padded = pad(x, {{before, after}}, cast(array(0), x.dtype(), where), where);
  const Array image = reshape(padded, {1, 1, -1}, where);
  const Array kernel = reshape(w, {1, 1, -1}, where);
  return reshape(conv1d(image, kernel, {}, where), {-1}, where);
}

}  // namespace

Array convolve(const Array& a, const Array& b, ConvolveMode mode, Here where) {
  Array x = a;
  Array w = b;
  unify_vectors("convolve", x, w, where);
  if (x.size() < w.size()) std::swap(x, w);
  return slid(x, flip(w, 0, where), mode, where);
}
Array correlate(const Array& a, const Array& b, ConvolveMode mode, Here where) {
  detail::require_valid(b, "correlate", where);
  Array x = a;
  Array w = conj(b, where);
  unify_vectors("correlate", x, w, where);
  if (x.size() >= w.size()) return slid(x, w, mode, where);
  return flip(slid(w, x, mode, where), 0, where);
}

Array hanning(std::int64_t n, Here where) { return cosine_window(n, 0.5, 0.5, 0, where); }
Array hamming(std::int64_t n, Here where) { return cosine_window(n, 0.54, 0.46, 0, where); }
Array blackman(std::int64_t n, Here where) { return cosine_window(n, 0.42, 0.5, 0.08, where); }

}  // namespace ricci
