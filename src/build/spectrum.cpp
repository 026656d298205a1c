#include "ricci/build/spectrum.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <ranges>

#include <fmt/format.h>

#include "ricci/build/elementwise.h"
#include "ricci/compat/spectrum.h"
#include "ricci/support/error.h"

#include "support/float_environment.h"
#include "support/machine_memory.h"

namespace ricci {
namespace {

Axis last_axis(Value x) { return static_cast<std::int64_t>(x.rank()) - 1; }

[[noreturn]] void refuse(const char* what, std::string message, std::string help = {}) {
  throw UserError(Diagnostic{ErrorCode::Shape, what, std::move(message), {}, {}, std::move(help)});
}

// The last axis, which must be there and known.
std::int64_t samples_of(Value x, const char* what) {
  if (x.rank() == 0) refuse(what, "a rank-0 value has no axis of samples");
  return x.dims().back().value();
}

Value vector_constant(Graph& graph, const std::vector<double>& numbers, DType dtype,
                      std::source_location loc) {
  const Type type{dtype, {static_cast<std::int64_t>(numbers.size())}};
  return graph.constant(Tensor::from_numbers<double>(type, numbers), loc);
}

Value padded(Value x, std::int64_t low, std::int64_t high, std::source_location loc) {
  if (low == 0 && high == 0) return x;
  Dims before(x.rank(), Dim(0));
  Dims behind(x.rank(), Dim(0));
  before.back() = low;
  behind.back() = high;
  return pad(x, scalar_like(x, 0, loc), {.low = before, .high = behind}, loc);
}

// x without its first and last sample as in a mirror, on both sides.
Value reflected(Value x, std::int64_t amount, std::source_location loc) {
  const Axis axis = last_axis(x);
  const std::int64_t n = samples_of(x, "stft");
  if (amount >= n) {
    refuse("stft", fmt::format("{} samples cannot be mirrored by {}", n, amount),
           "pad with zeros, or take shorter frames");
  }
  const auto mirrored = [&](std::int64_t start) {
    return reverse(narrow(x, {.axis = axis, .start = start, .len = amount}, loc), {.axes = {axis}},
                   loc);
  };
  return concat({mirrored(1), x, mirrored(n - 1 - amount)}, {.axis = axis}, loc);
}

Value rolled(Value x, Axes axes, bool back, std::source_location loc) {
  if (axes.empty()) {
    for (std::size_t a = 0; a < x.rank(); ++a) axes.emplace_back(static_cast<std::int64_t>(a));
  }
  for (const Axis given : axes) {
    const Axis axis = given < 0 ? given + static_cast<std::int64_t>(x.rank()) : given.value;
    if (axis < 0 || axis.index() >= x.rank()) {
      refuse("fftshift", fmt::format("{} has no axis {}", x.type().to_string(), given.value));
    }
    const std::int64_t n = x.dims()[axis.index()].value();
    const std::int64_t cut = back ? n / 2 : n - n / 2;
    const Value first = narrow(x, {.axis = axis, .start = 0, .len = cut}, loc);
    const Value rest = narrow(x, {.axis = axis, .start = cut, .len = n - cut}, loc);
    x = concat({rest, first}, {.axis = axis}, loc);
  }
  return x;
}

// `window` as operand of a product with [.., frame_len].
void check_window(const StftOptions& o, const char* what) {
  if (o.frame_len < 1 || o.hop < 1) {
    refuse(what, fmt::format("frame_len is {} and hop {}", o.frame_len, o.hop));
  }
  if (!o.window.valid()) return;
  if (o.window.rank() == 1 && o.window.dims()[0].is(o.frame_len)) return;
  refuse(what, fmt::format("the window is {}, the frames have {} samples",
                           o.window.type().to_string(), o.frame_len));
}

// Weighted as asked; `power` is |bin|².
Value density(Value power, std::int64_t n, const PsdOptions& o, std::source_location loc) {
  const DefaultFloatEnvironment floats;
  const double weight = o.window_power.value_or(static_cast<double>(n)) * o.sample_rate;
  if (!o.one_sided) return mul(power, 1 / weight, loc);
  const std::int64_t bins = samples_of(power, "psd");
  std::vector<double> weights(static_cast<std::size_t>(bins), 2 / weight);
  for (std::int64_t k = 0; k < bins; ++k) {
    if (k == 0 || 2 * k == n) weights[static_cast<std::size_t>(k)] = 1 / weight;
  }
  return mul(power, vector_constant(power.graph(), weights, power.dtype(), loc), loc);
}

}  // namespace

Value ifft(Value x, IfftOptions options, std::source_location loc) {
  return fft(x, {.axis = options.axis, .inverse = true, .norm = options.norm}, loc);
}

Value fft_norm(Value x, bool inverse, FftNorm norm, std::source_location loc) {
  return fft(x, {.inverse = inverse, .norm = norm}, loc);
}

Value fft_axis(Value x, Axis axis, bool inverse, FftNorm norm, std::source_location loc) {
  return fft(x, {.axis = axis, .inverse = inverse, .norm = norm}, loc);
}

Value fftn(Value x, Axes axes, bool inverse, FftNorm norm, std::source_location loc) {
  for (Axis& a : axes) {
    if (a < 0) a = a + static_cast<std::int64_t>(x.rank());
  }
  std::ranges::sort(axes, {}, &Axis::value);
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  if (axes.size() > 1 && !is_complex(x.dtype())) {
    refuse("fftn", fmt::format("{} has its blocks along one axis", x.type().to_string()),
           "cast to a complex dtype to transform several axes");
  }
  // The last axis first: its transforms leave their lines in the cache.
  for (const Axis& a : std::views::reverse(axes)) x = fft_axis(x, a, inverse, norm, loc);
  return x;
}

Value ifftn(Value x, Axes axes, FftNorm norm, std::source_location loc) {
  return fftn(x, std::move(axes), true, norm, loc);
}

Value fftshift(Value x, Axes axes, std::source_location loc) {
  return rolled(x, std::move(axes), false, loc);
}
Value ifftshift(Value x, Axes axes, std::source_location loc) {
  return rolled(x, std::move(axes), true, loc);
}

RealAndImaginary split_spectrum(Value spectrum, std::source_location loc) {
  if (is_complex(spectrum.dtype())) {
    return {real(spectrum, loc), imag(spectrum, loc)};
  }
  const std::int64_t half = samples_of(spectrum, "split_spectrum") / 2;
  const Axis axis = last_axis(spectrum);
  return {narrow(spectrum, {.axis = axis, .start = 0, .len = half}, loc),
          narrow(spectrum, {.axis = axis, .start = half, .len = half}, loc)};
}

Value join_spectrum(Value re, Value im, std::source_location loc) {
  const DType part = real_part_of(complex_of(re.dtype()));
  return make_complex(cast_to(re, part, loc), cast_to(im, part, loc), loc);
}

Value pad_last_axis_to_pow2(Value x, std::source_location loc) {
  const std::int64_t n = samples_of(x, "pad_last_axis_to_pow2");
  return padded(x, 0, next_pow2(n) - n, loc);
}

RealAndImaginary fft_real(Value x, FftNorm norm, std::source_location loc) {
  const Value blocks = padded(x, 0, samples_of(x, "fft_real"), loc);
  return split_spectrum(fft(blocks, {.norm = norm}, loc), loc);
}
RealAndImaginary fft_batch_real(Value x, FftNorm norm, std::source_location loc) {
  return fft_real(x, norm, loc);
}

Value irfft(Value re, Value im, Dim n, FftNorm norm, std::source_location loc) {
  return irfft(join_spectrum(re, im, loc), {.n = std::move(n), .norm = norm}, loc);
}

Value ifft_spectrum(Value re, Value im, FftNorm norm, std::source_location loc) {
  const Value blocks = concat({re, im}, {.axis = last_axis(re)}, loc);
  return split_spectrum(fft(blocks, {.inverse = true, .norm = norm}, loc), loc).first;
}

std::vector<double> fftfreq(std::int64_t n, double sample_rate) {
  const DefaultFloatEnvironment floats;
  require_memory(std::max<std::int64_t>(n, 0), sizeof(double), "the number of samples");
  std::vector<double> out;
  for (std::int64_t k = 0; k < n; ++k) {
    const std::int64_t signed_k = k < n - k ? k : k - n;
    out.push_back(static_cast<double>(signed_k) * sample_rate / static_cast<double>(n));
  }
  return out;
}
std::vector<double> rfftfreq(std::int64_t n, double sample_rate) {
  const DefaultFloatEnvironment floats;
  require_memory(std::max<std::int64_t>(n, 0) / 2, sizeof(double), "the number of bins");
  std::vector<double> out;
  for (std::int64_t k = 0; n > 0 && k <= n / 2; ++k) {
    out.push_back(static_cast<double>(k) * sample_rate / static_cast<double>(n));
  }
  return out;
}
Value fftfreq(Graph& graph, std::int64_t n, DType dtype, double sample_rate,
              std::source_location loc) {
  return vector_constant(graph, fftfreq(n, sample_rate), dtype, loc);
}
Value rfftfreq(Graph& graph, std::int64_t n, DType dtype, double sample_rate,
               std::source_location loc) {
  return vector_constant(graph, rfftfreq(n, sample_rate), dtype, loc);
}

std::vector<double> window_of(Window window, std::int64_t n) {
  const DefaultFloatEnvironment floats;
  static constexpr std::array<std::array<double, 3>, 4> Terms = {
      {{1, 0, 0}, {0.5, 0.5, 0}, {0.54, 0.46, 0}, {0.42, 0.5, 0.08}}};
  const auto& [a, b, c] = Terms[static_cast<std::size_t>(window)];
  require_memory(std::max<std::int64_t>(n, 0), sizeof(double), "the length of a window");
  std::vector<double> out;
  for (std::int64_t i = 0; i < n; ++i) {
    const double turn = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(n);
    out.push_back(a - b * std::cos(turn) + c * std::cos(2 * turn));
  }
  return out;
}
Value window_of(Graph& graph, Window window, std::int64_t n, DType dtype,
                std::source_location loc) {
  return vector_constant(graph, window_of(window, n), dtype, loc);
}

Value psd(Value spectrum, std::int64_t n, PsdOptions options, std::source_location loc) {
  if (!is_complex(spectrum.dtype())) {
    const auto [re, im] = split_spectrum(spectrum, loc);
    return psd(re, im, n, options, loc);
  }
  const Value power = mul(spectrum, conjugate(spectrum, loc), loc);
  return density(cast_to(power, real_part_of(spectrum.dtype()), loc), n, options, loc);
}
Value psd(Value re, Value im, std::int64_t n, PsdOptions options, std::source_location loc) {
  return density(add(mul(re, re, loc), mul(im, im, loc), loc), n, options, loc);
}
Value psd_real(Value x, PsdOptions options, std::source_location loc) {
  const std::int64_t n = samples_of(x, "psd_real");
  return psd(rfft(x, {}, loc), n, options, loc);
}

Value stft(Value x, const StftOptions& options, std::source_location loc) {
  check_window(options, "stft");
  (void)samples_of(x, "stft");
  if (options.centre) {
    const std::int64_t half = options.frame_len / 2;
    x = options.padding == EdgePadding::Zero ? padded(x, half, half, loc) : reflected(x, half, loc);
  }
  Value frames = frame(x, {.frame_len = options.frame_len, .hop = options.hop}, loc);
  if (options.window.valid()) frames = mul(frames, options.window, loc);
  return rfft(frames, {.norm = options.norm}, loc);
}

Value istft(Value spectrum, const StftOptions& options, std::source_location loc) {
  check_window(options, "istft");
  if (spectrum.rank() < 2) refuse("istft", "a spectrum has an axis of frames and one of bins");
  // Forward undoes what has no factor.
  const FftNorm norm = options.norm == FftNorm::Ortho ? FftNorm::Ortho : FftNorm::Forward;
  Value frames = irfft(spectrum, {.n = options.frame_len, .norm = norm}, loc);
  Value window = options.window;
  if (!window.valid()) {
    window = filled(spectrum.graph(), Type{frames.dtype(), {options.frame_len}}, 1, loc);
  }
  const Value total = overlap_add(mul(frames, window, loc), {.hop = options.hop}, loc);
  const Dim count = frames.dims()[frames.rank() - 2];
  const Value squares = broadcast_to(mul(window, window, loc), {count, options.frame_len}, loc);
  const Value weight = overlap_add(squares, {.hop = options.hop}, loc);
  const Value nothing = eq(weight, 0, loc);
  const Value divisor = where(nothing, scalar_like(weight, 1, loc), weight, {}, loc);
  const Value x = div(total, divisor, loc);
  const std::int64_t half = options.centre ? options.frame_len / 2 : 0;
  return padded(x, -half, -half, loc);
}

Value fft_conv1d(Value a, Value b, std::int64_t n_fft, FftNorm norm, std::source_location loc) {
  const DefaultFloatEnvironment floats;
  const std::int64_t length = samples_of(a, "fft_conv1d") + samples_of(b, "fft_conv1d") - 1;
  if (length < 1) refuse("fft_conv1d", "there is nothing to convolve");
  const std::int64_t n = n_fft == 0 ? next_fast_length(length) : std::max(n_fft, length);
  const FftNorm there = norm == FftNorm::Ortho ? FftNorm::Ortho : FftNorm::Backward;
  const FftNorm back = norm == FftNorm::Ortho ? FftNorm::Ortho : FftNorm::Forward;
  const Value product =
      mul(rfft(a, {.n = n, .norm = there}, loc), rfft(b, {.n = n, .norm = there}, loc), loc);
  Value out = irfft(product, {.n = n, .norm = back}, loc);
  out = narrow(out, {.axis = last_axis(out), .start = 0, .len = length}, loc);
  // Both transforms of an orthonormal product are divided by √n.
  return there == FftNorm::Ortho ? mul(out, std::sqrt(static_cast<double>(n)), loc) : out;
}

}  // namespace ricci
