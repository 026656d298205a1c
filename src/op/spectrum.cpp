#include "ricci/op/spectrum.h"

#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "ricci/support/error.h"

#include "op/infer_rules.h"
#include "op/mel_spectrum.h"

namespace ricci {
namespace {

bool is_below(const Dim& d, std::int64_t least) { return d.try_value().value_or(least) < least; }

Dim require_bins(const InferContext& in, std::string_view positive, std::string_view known,
                 const Dim& n) {
  if (is_below(n, 1)) {
    in.reject(positive, fmt::format("a transform of {} numbers", n.to_string()), "n is 1 or more");
  }
  const auto bins = rfft_bins(n);
  if (!bins) {
    in.reject(known, fmt::format("⌊({}) / 2⌋ is not a whole number of symbols", n.to_string()),
              "bind the size, or write it as twice another");
  }
  return *bins;
}

template <class Op>
void require_numbers(const Op& op, const InferContext& in) {
  const bool fits =
      op.base.value > 1 && op.least.value > 0 && op.floor.value >= 0 && op.scale.value != 0;
  if (fits) return;
  in.reject("c4", fmt::format("base is {}, least {}, floor {} and scale {}", op.base.value,
                              op.least.value, op.floor.value, op.scale.value));
}

// Checks c1 to c4 and gives the type of the result.
template <class Op>
Type check_log_mel(const Op& op, const InferContext& in) {
  const Type& spectrum = in[0];
  const Type& filters = in[1];
  const DTypeSet allowed = dtypes::floats | dtypes::complexes;
  if (!allowed.has(spectrum.dtype) || filters.dtype != real_part_of(spectrum.dtype)) {
    in.reject(
        "c1",
        fmt::format("spectrum is {} and filters are {}", name(spectrum.dtype), name(filters.dtype)),
        "cast the filters to the real dtype of the spectrum");
  }
  const std::size_t least = op.scope == MelScope::Utterance ? 2 : 1;
  if (spectrum.rank() < least || filters.rank() != 2 || is_below(filters.dims[0], 1)) {
    in.reject("c2", fmt::format("spectrum is {} and filters are {}", spectrum.to_string(),
                                filters.to_string()));
  }
  if (!mel_spectrum(spectrum, filters.dims[1])) {
    in.reject("c3",
              fmt::format("{} does not hold the {} bins of filters", spectrum.to_string(),
                          filters.dims[1].to_string()),
              "filters have ⌊n_fft/2⌋ + 1 bins");
  }
  require_numbers(op, in);
  Type out = spectrum.with(spectrum.dims);
  out.dtype = filters.dtype;
  out.dims.back() = filters.dims[0];
  return out;
}

}  // namespace

double fft_scale(FftNorm norm, bool inverse, std::int64_t n) {
  switch (norm) {
    case FftNorm::Backward: return 1;
    case FftNorm::Forward: return inverse ? 1 / static_cast<double>(n) : 1;
    case FftNorm::Ortho: break;
  }
  return 1 / std::sqrt(static_cast<double>(n));
}

std::int64_t next_pow2(std::int64_t n) {
  if (n > LargestSize) {
    throw UserError(Diagnostic{ErrorCode::Shape, "next_pow2", fmt::format("{} is too large", n)});
  }
  return n <= 1 ? 1 : static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n)));
}

std::int64_t next_fast_length(std::int64_t n) {
  std::int64_t best = next_pow2(n);
  for (std::int64_t seven = 1; seven < best; seven *= 7) {
    for (std::int64_t five = seven; five < best; five *= 5) {
      for (std::int64_t three = five; three < best; three *= 3) {
        std::int64_t length = three;
        while (length < n) length *= 2;
        best = std::min(best, length);
      }
    }
  }
  return best;
}

std::optional<Dim> rfft_bins(const Dim& n) {
  const auto half = floor_divide(n, 2);
  if (!half) return std::nullopt;
  return *half + 1;
}

std::optional<MelSpectrum> mel_spectrum(const Type& spectrum, const Dim& bins) {
  using Form = MelSpectrum::Form;
  const Dim& size = spectrum.dims.back();
  const auto is_whole = [&](const Dim& n) { return rfft_bins(n) == std::optional(bins); };
  if (is_complex(spectrum.dtype)) {
    if (size == bins || is_whole(size)) return MelSpectrum{Form::Complex};
    return std::nullopt;
  }
  if (size == bins) return MelSpectrum{Form::Power};
  if (size == bins * 2) return MelSpectrum{Form::Blocks, bins};
  const auto half = Dim::divide(size, 2);
  if (half && is_whole(*half)) return MelSpectrum{Form::Blocks, *half};
  return std::nullopt;
}

void op::Rfft::normalize(std::span<const Type> operands) {
  // A length that says what the axis says is left out.
  if (n && axis.index() < operands[0].rank() && *n == operands[0].dims[axis.index()]) n.reset();
}

Inferred infer(const op::Fft& op, const InferContext& in) {
  require_dtypes(in, "c1", 0, 1, dtypes::floats | dtypes::complexes);
  const Dim& size = in[0].dims[op.axis.index()];
  if (!is_complex(in[0].dtype) && size.is_static() && size.value() % 2 != 0) {
    in.reject("c2",
              fmt::format("axis {} of {} has no two blocks of one size", op.axis.value,
                          in[0].to_string()),
              "put the imaginary parts behind the real ones, cast to complex, or use rfft");
  }
  return in[0];
}

Inferred infer(const op::Rfft& op, const InferContext& in) {
  require_dtypes(in, "c1", 0, 1, dtypes::floats);
  Type out = in[0];
  out.dims[op.axis.index()] =
      require_bins(in, "c2", "c3", op.n.value_or(in[0].dims[op.axis.index()]));
  out.dtype = in[0].dtype == DType::F64 ? DType::C128 : DType::C64;
  return out;
}

Inferred infer(const op::Irfft& op, const InferContext& in) {
  require_dtypes(in, "c1", 0, 1, dtypes::complexes);
  const Dim bins = require_bins(in, "c2", "c4", op.n);
  const Dim& given = in[0].dims[op.axis.index()];
  if (given != bins) {
    in.reject("c3",
              fmt::format("axis {} of {} has {} bins, {} numbers have {}", op.axis.value,
                          in[0].to_string(), given.to_string(), op.n.to_string(), bins.to_string()),
              "narrow or pad the axis, or choose another n");
  }
  Type out = in[0];
  out.dims[op.axis.index()] = op.n;
  out.dtype = real_part_of(in[0].dtype);
  return out;
}

Inferred infer(const op::Frame& op, const InferContext& in) {
  if (op.hop < 1 || is_below(op.frame_len, 0)) {
    in.reject("c1", fmt::format("hop is {} and frame_len {}", op.hop, op.frame_len.to_string()));
  }
  const auto at = static_cast<std::ptrdiff_t>(op.axis.index());
  const Dim room = in[0].dims[op.axis.index()] - op.frame_len;
  if (is_below(room, 0)) {
    in.reject("c2",
              fmt::format("a frame of {} does not fit into axis {} of {}", op.frame_len.to_string(),
                          op.axis.value, in[0].to_string()),
              "pad the signal");
  }
  const auto steps = floor_divide(room, op.hop);
  if (!steps) {
    in.reject("c3",
              fmt::format("({}) / {} is not a whole number of symbols", room.to_string(), op.hop),
              "bind the size, or write it as a multiple of the hop");
  }
  Type out = in[0];
  out.dims[op.axis.index()] = *steps + 1;
  out.dims.insert(out.dims.begin() + at + 1, op.frame_len);
  return out;
}

Inferred infer(const op::OverlapAdd& op, const InferContext& in) {
  if (op.hop < 1) in.reject("c1", fmt::format("hop is {}", op.hop));
  const std::size_t at = op.axis.index();
  if (at + 1 >= in[0].rank() || is_below(in[0].dims[at], 1)) {
    in.reject("c2", fmt::format("axis {} of {} is not one of frames before that of their elements",
                                op.axis.value, in[0].to_string()));
  }
  require_dtypes(in, "c3", 0, 1, dtypes::floats | dtypes::ints | dtypes::complexes);
  Type out = in[0];
  out.dims[at] = (in[0].dims[at] - 1) * Dim(op.hop) + in[0].dims[at + 1];
  out.dims.erase(out.dims.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  return out;
}

Inferred infer(const op::LogMel& op, const InferContext& in) { return check_log_mel(op, in); }

Inferred infer(const op::LogMelBackward& op, const InferContext& in) {
  const Type y = check_log_mel(op, in);
  if (in[2].dims != y.dims) {
    in.reject("c5", fmt::format("dy is {}, the result {}", in[2].to_string(), y.to_string()));
  }
  if (in[2].dtype != y.dtype) {
    in.reject("c6", fmt::format("dy is {}, filters are {}", name(in[2].dtype), name(y.dtype)));
  }
  return std::vector<Type>{in[0], in[1]};
}

}  // namespace ricci
