// The log-mel spectrum and its gradients.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numeric>

#include "ricci/build/reduce.h"
#include "ricci/op/spectrum.h"

#include "op/mel_spectrum.h"
#include "rule/derivative_parts.h"
#include "rule/spectrum_parts.h"
#include "rule/tables/eval_rules.h"
#include "rule/tables/expand_rules.h"
#include "rule/tables/vjp_rules.h"

namespace ricci::rule {
namespace {

using Form = MelSpectrum::Form;

MelSpectrum form_of(const Type& spectrum, const Type& filters) {
  return *mel_spectrum(spectrum, filters.dims[1]);
}

// The numbers of the reference kernels, frame by frame.
struct Mels {
  std::size_t frames = 0;
  std::size_t size = 0;  // of spectrum's last axis
  std::size_t bins = 0;
  std::size_t mels = 0;
  MelSpectrum form;
  std::vector<std::complex<double>> spectrum;  // of real numbers, in two blocks: re alone
  RealNd filters;
  std::vector<double> power;   // [frames, bins]
  std::vector<double> energy;  // [frames, mels]
  std::vector<double> level;   // L

  template <class Op>
  Mels(const Op& op, EvalContext& c) : filters(c.real(1)) {
    form = form_of(c.tensor(0).type(), c.tensor(1).type());
    if (form.form == Form::Complex) {
      spectrum = c.numbers<std::complex<double>>(0).data;
    } else {
      const RealNd real = c.real(0);
      spectrum.assign(real.data.begin(), real.data.end());
    }
    size = static_cast<std::size_t>(c.dims(0).back());
    mels = static_cast<std::size_t>(filters.dims[0]);
    bins = static_cast<std::size_t>(filters.dims[1]);
    frames = 1;
    for (std::size_t a = 0; a + 1 < c.dims(0).size(); ++a) {
      frames *= static_cast<std::size_t>(c.dims(0)[a]);
    }
    for (std::size_t f = 0; f < frames; ++f) measure(op, f);
  }

  [[nodiscard]] std::size_t imaginary() const {
    return static_cast<std::size_t>(form.imaginary.value());
  }

  template <class Op>
  void measure(const Op& op, std::size_t f) {
    for (std::size_t k = 0; k < bins; ++k) {
      const std::size_t at = f * size + k;
      const std::complex<double> z = spectrum[at];
      switch (form.form) {
        case Form::Power: power.push_back(z.real()); break;
        case Form::Complex: power.push_back(z.real() * z.real() + z.imag() * z.imag()); break;
        case Form::Blocks: {
          const double im = spectrum[at + imaginary()].real();
          power.push_back(z.real() * z.real() + im * im);
        }
      }
    }
    for (std::size_t m = 0; m < mels; ++m) {
      double e = 0;
      for (std::size_t k = 0; k < bins; ++k) e += filters.data[m * bins + k] * power[f * bins + k];
      energy.push_back(e);
      level.push_back(std::log(eval_binary(BinaryKind::Max, e, op.least.value)) /
                      std::log(op.base.value));
    }
  }

  // Calls f(begin, end, place of the first maximum) for every part of `level` with one maximum.
  template <class F>
  void for_each_scope(MelScope scope, const StaticDims& dims, const F& f) const {
    std::size_t part = mels;
    if (scope == MelScope::Utterance) part *= static_cast<std::size_t>(dims[dims.size() - 2]);
    for (std::size_t begin = 0; part != 0 && begin < level.size(); begin += part) {
      std::size_t best = begin;
      for (std::size_t i = begin; i < begin + part; ++i) {
        if (std::isnan(level[best])) break;
        if (level[i] > level[best] || std::isnan(level[i])) best = i;
      }
      f(begin, begin + part, best);
    }
  }
};

Axes scope_axes(MelScope scope, std::size_t rank) {
  const auto last = static_cast<std::int64_t>(rank) - 1;
  return scope == MelScope::Frame ? Axes{last} : Axes{last - 1, last};
}

// The same as values of a graph. Where equal numbers are the largest, the first counts, in value
// and derivative: a plain maximum would share its gradient among them.
struct MelValues {
  Value spectrum;
  Value filters;
  MelSpectrum form;
  Value power;
  Value energy;
  Value level;
  Axes scope;
  Value is_first;  ///< is this the maximum? bool
  Value largest;   ///< M, with sizes 1

  template <class Op>
  MelValues(const Op& op, Value x, Value f)
      : spectrum(x), filters(f), form(form_of(x.type(), f.type())) {
    const auto last = static_cast<std::int64_t>(x.rank()) - 1;
    power = power_of_bins();
    energy = dot_general(power, filters, {.lhs_contracting = {last}, .rhs_contracting = {1}});
    // Selected before the logarithm, so that its derivative is 0 there; a NaN is not below.
    const Value audible = where(le(energy, op.least), scalar_like(energy, op.least), energy);
    level = log(audible) * (1 / std::log(op.base.value));
    scope = scope_axes(op.scope, level.rank());
    const Value m = stop_gradient(reduce_max(level, scope, true));
    find_first(m);
    const Value picked = sum(where(is_first, level, zero_like(level)), scope, true);
    largest = where(ne(m, m), m, picked);
  }

  [[nodiscard]] Value bins_from(const Dim& start) const {
    const auto last = static_cast<std::int64_t>(spectrum.rank()) - 1;
    return narrow(spectrum, {.axis = last, .start = start, .len = filters.dims()[1]});
  }

  [[nodiscard]] Value power_of_bins() const {
    const Value first = bins_from(0);
    switch (form.form) {
      case Form::Power: return first;
      case Form::Complex: return cast_to(first * conjugate(first), filters.dtype());
      case Form::Blocks: break;
    }
    const Value imaginary = bins_from(form.imaginary);
    return first * first + imaginary * imaginary;
  }

  void find_first(Value m) {
    Graph& graph = level.graph();
    const Dims& dims = level.dims();
    const auto last = static_cast<std::int64_t>(level.rank()) - 1;
    const auto counted = [&](std::int64_t axis) {
      const std::size_t a = static_cast<std::size_t>(axis);
      const Value i = iota(graph, {.shape = {dims[a]}, .axis = 0, .dtype = DType::I64});
      Dims shape(level.rank(), Dim(1));
      shape[a] = dims[a];
      return reshape_to(i, std::move(shape));
    };
    Value place = counted(last);
    if (scope.size() == 2) place = counted(last - 1) * size_as_number(dims.back(), place) + place;
    const Value nowhere = scalar_like(place, 0x1p62);
    const Value first = reduce_min(where(eq(level, m), place, nowhere), scope, true);
    is_first = eq(place, first);
  }
};

// A part along the last axis, with zeros up to `end`.
Value placed(Value part, const Dim& end) {
  return resized(part, static_cast<std::int64_t>(part.rank()) - 1, end);
}

// The gradient of the spectrum from that of the power.
Value spectrum_gradient(const MelValues& v, Value d_power) {
  const Dim& size = v.spectrum.dims().back();
  switch (v.form.form) {
    case Form::Power: return d_power;
    case Form::Complex: {
      const Value z = v.bins_from(0);
      return placed(z * cast_to(d_power, z.dtype()), size);
    }
    case Form::Blocks: break;
  }
  const Value twice = d_power + d_power;
  const Value re = placed(v.bins_from(0) * twice, v.form.imaginary);
  const Value im = placed(v.bins_from(v.form.imaginary) * twice, size - v.form.imaginary);
  return concat({re, im}, {.axis = static_cast<std::int64_t>(re.rank()) - 1});
}

}  // namespace

void eval(const op::LogMel& op, EvalContext& c) {
  const Mels m(op, c);
  RealNd out(c.result_dims(0));
  m.for_each_scope(op.scope, out.dims, [&](std::size_t begin, std::size_t end, std::size_t best) {
    const double floor = m.level[best] - op.floor.value;
    for (std::size_t i = begin; i < end; ++i) {
      const double above = eval_binary(BinaryKind::Max, m.level[i], floor);
      out.data[i] = (above + op.offset.value) / op.scale.value;
    }
  });
  c.give(0, out);
}

std::vector<Value> expand(const op::LogMel& op, const ExpandContext& c) {
  const MelValues v(op, c[0], c[1]);
  const Value floor = v.largest - op.floor;
  return {(where(gt(v.level, floor), v.level, floor) + op.offset) / op.scale};
}

void eval(const op::LogMelBackward& op, EvalContext& c) {
  const Mels m(op, c);
  const RealNd dy = c.real(2);
  std::vector<double> d_level(m.level.size());
  m.for_each_scope(op.scope, dy.dims, [&](std::size_t begin, std::size_t end, std::size_t best) {
    for (std::size_t i = begin; i < end; ++i) {
      const bool above = m.level[i] > m.level[best] - op.floor.value;
      d_level[above ? i : best] += dy.data[i] / op.scale.value;
    }
  });
  std::vector<std::complex<double>> d_spectrum(m.spectrum.size());
  RealNd d_filters(m.filters.dims);
  for (std::size_t f = 0; f < m.frames; ++f) {
    for (std::size_t k = 0; k < m.bins; ++k) {
      double d_power = 0;
      for (std::size_t b = 0; b < m.mels; ++b) {
        const double e = m.energy[f * m.mels + b];
        if (e <= op.least.value) continue;
        const double de = d_level[f * m.mels + b] / (e * std::log(op.base.value));
        d_power += de * m.filters.data[b * m.bins + k];
        d_filters.data[b * m.bins + k] += de * m.power[f * m.bins + k];
      }
      const std::size_t at = f * m.size + k;
      switch (m.form.form) {
        case Form::Power: d_spectrum[at] = d_power; break;
        case Form::Complex: d_spectrum[at] = d_power * m.spectrum[at]; break;
        case Form::Blocks:
          d_spectrum[at] = 2 * d_power * m.spectrum[at];
          d_spectrum[at + m.imaginary()] = 2 * d_power * m.spectrum[at + m.imaginary()];
      }
    }
  }
  if (m.form.form == Form::Complex) {
    c.give(0, ComplexNd(c.dims(0), d_spectrum));
  } else {
    RealNd real(c.dims(0));
    std::ranges::transform(d_spectrum, real.data.begin(), [](auto z) { return z.real(); });
    c.give(0, real);
  }
  c.give(1, d_filters);
}

std::vector<Value> expand(const op::LogMelBackward& op, const ExpandContext& c) {
  const MelValues v(op, c[0], c[1]);
  const Value none = zero_like(v.level);
  const Value dy = c[2] / op.scale;
  const Value above = gt(v.level, v.largest - op.floor);
  const Value at_floor = sum(where(above, none, dy), v.scope, true);
  const Value d_level = where(above, dy, none) + where(v.is_first, at_floor, none);
  const Value silent = le(v.energy, op.least);
  const Value divisor = where(silent, scalar_like(v.energy, 1), v.energy);
  const Value share = d_level / (divisor * std::log(op.base.value));
  const Value d_energy = where(silent, none, share);

  const auto last = static_cast<std::int64_t>(v.level.rank()) - 1;
  std::vector<Value> out(2);
  if (c.wanted(0)) {
    const Value d_power =
        dot_general(d_energy, v.filters, {.lhs_contracting = {last}, .rhs_contracting = {0}});
    out[0] = spectrum_gradient(v, d_power);
  }
  if (c.wanted(1)) {
    Axes frames;
    for (std::int64_t a = 0; a < last; ++a) frames.emplace_back(a);
    out[1] = dot_general(d_energy, v.power, {.lhs_contracting = frames, .rhs_contracting = frames});
  }
  return out;
}

Cotangents vjp(const op::LogMel& op, const VjpContext& c) {
  const op::LogMelBackward backward{.scope = op.scope,
                                    .floor = op.floor,
                                    .base = op.base,
                                    .least = op.least,
                                    .offset = op.offset,
                                    .scale = op.scale};
  return add_wanted(c.graph(), Op(backward), std::array{c[0], c[1], c.cotangent()}, c.needs());
}

}  // namespace ricci::rule
